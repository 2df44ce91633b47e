/**
 * @file The mathematical functions of kernels, written in the scalar functions of `expr.ts` alone: no branches (lanes
 * differ) and no fused multiply-add, so every target that follows IEEE 754 computes the same bits. Each takes f32 or f64
 * and gives the same. The parts are in math-exp, math-log, math-pow, math-trig, math-erf and random.
 *
 * `ULP_BOUNDS` states how far results are from the true ones, in units of the last place of the true result; the tests
 * assert it. Special values follow IEEE 754 and the C library: NaN gives NaN, infinities and signed zeros as usual.
 */
import type { FloatScalar } from "./dtype.ts";
import type { Expr } from "./expr.ts";
import { sigmoid } from "./math-exp.ts";
import { add, div, max, mul, sqrt } from "./scalar-ops.ts";

export { erf } from "./math-erf.ts";
export { exp, expm1, sigmoid, tanh } from "./math-exp.ts";
export { log, log1p, softplus } from "./math-log.ts";
export { pow } from "./math-pow.ts";
export { cos, sin, tan } from "./math-trig.ts";
export { normalFromBits, threefry, uniformFromBits } from "./random.ts";

export type MathName =
  | "exp"
  | "expm1"
  | "log"
  | "log1p"
  | "sin"
  | "cos"
  | "tan"
  | "tanh"
  | "sigmoid"
  | "erf"
  | "pow"
  | "rsqrt"
  | "softplus"
  | "gelu"
  | "silu";

/**
 * Greatest error in units of the last place. sin, cos and tan: for |x| ≤ 5e4 (f32) and 1.6e6 (f64); see math-trig for
 * what is beyond. silu: where sigmoid(x) is not subnormal. gelu: times 1 + max(0, -2u), the exponent of
 * its tail, whose rounding it carries.
 */
export const ULP_BOUNDS: Readonly<Record<FloatScalar, Readonly<Record<MathName, number>>>> = {
  f32: {
    exp: 1.1,
    expm1: 2,
    log: 1,
    log1p: 1,
    sin: 1.75,
    cos: 1.75,
    tan: 3.25,
    tanh: 2.5,
    sigmoid: 2.5,
    erf: 2.25,
    pow: 1.1,
    rsqrt: 1.5,
    softplus: 2,
    gelu: 3,
    silu: 3.5,
  },
  f64: {
    exp: 1.1,
    expm1: 2,
    log: 1,
    log1p: 1,
    sin: 1.5,
    cos: 1.5,
    tan: 2.75,
    tanh: 2.5,
    sigmoid: 2.5,
    erf: 1.1,
    pow: 1.1,
    rsqrt: 1.5,
    softplus: 2,
    gelu: 4,
    silu: 3.5,
  },
};

export function rsqrt(x: Expr): Expr {
  return div(1, sqrt(x));
}

/** x·sigmoid(x). The factor is bounded so that -∞ gives -0, not ∞·0. */
export function silu(x: Expr): Expr {
  return mul(max(x, -1e30), sigmoid(x));
}

/**
 * The tanh form of x·Φ(x), ½x(1 + tanh u) with u = √(2/π)(x + 0.044715x³), as x·sigmoid(2u): the same function, without
 * the cancellation that costs the tanh form its relative accuracy at negative x.
 */
export function gelu(x: Expr): Expr {
  const cube = mul(mul(x, x), x);
  const twiceU = mul(add(x, mul(cube, 0.044715)), 2 * 0.7978845608028654);
  return mul(max(x, -1e30), sigmoid(twiceU));
}
