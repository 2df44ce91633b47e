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
import { exp, sigmoid } from "./math-exp.ts";
import { add, div, max, min, mul, sqrt } from "./scalar-ops.ts";

export { acos, asin, atan, atan2 } from "./math-atan.ts";
export { erf, erfc } from "./math-erf.ts";
export { erfinv } from "./math-erfinv.ts";
export { exp, exp2, expm1, sigmoid, tanh } from "./math-exp.ts";
export { lgamma, polygamma } from "./math-gamma.ts";
export { acosh, asinh, atanh, cosh, sinh } from "./math-hyperbolic.ts";
export { log, log1p, log2, log10, softplus } from "./math-log.ts";
export { pow } from "./math-pow.ts";
export { cbrt } from "./math-root.ts";
export { cos, sin, tan } from "./math-trig.ts";
export { halfWord, normalFromBits, threefry, uniformFromBits } from "./random.ts";

export type MathName =
  | "exp"
  | "exp2"
  | "expm1"
  | "log"
  | "log2"
  | "log10"
  | "log1p"
  | "sin"
  | "cos"
  | "tan"
  | "asin"
  | "acos"
  | "atan"
  | "atan2"
  | "sinh"
  | "cosh"
  | "tanh"
  | "asinh"
  | "acosh"
  | "atanh"
  | "sigmoid"
  | "erf"
  | "erfc"
  | "erfinv"
  | "lgamma"
  | "digamma"
  | "trigamma"
  | "pow"
  | "rsqrt"
  | "cbrt"
  | "softplus"
  | "gelu"
  | "silu"
  | "mish";

/**
 * Greatest error in units of the last place. sin, cos and tan: for |x| ≤ 5e4 (f32) and 1.6e6 (f64); see math-trig for
 * what is beyond. silu: where sigmoid(x) is not subnormal. gelu: times 1 + max(0, -2u), the exponent of
 * its tail, whose rounding it carries. lgamma: of x > 0; digamma: of x > 0, in units of at least those of 1, because
 * no float is near enough to its zero. Of x < 0 both have the error of the larger term of their reflection.
 */
export const ULP_BOUNDS: Readonly<Record<FloatScalar, Readonly<Record<MathName, number>>>> = {
  f32: {
    exp: 1.1,
    exp2: 1.1,
    expm1: 2,
    log: 1,
    log2: 1.75,
    log10: 2.25,
    log1p: 1,
    sin: 1.75,
    cos: 1.75,
    tan: 3.25,
    asin: 3,
    acos: 2.75,
    atan: 2,
    atan2: 2.25,
    sinh: 2.25,
    cosh: 1.75,
    tanh: 2.5,
    asinh: 2,
    acosh: 2,
    atanh: 2,
    sigmoid: 2.5,
    erf: 2.25,
    erfc: 3.5,
    erfinv: 3.5,
    lgamma: 5.5,
    digamma: 6.5,
    trigamma: 2.5,
    pow: 1.1,
    rsqrt: 1.5,
    cbrt: 1.1,
    softplus: 2,
    gelu: 3,
    silu: 3.5,
    mish: 4,
  },
  f64: {
    exp: 1.1,
    exp2: 1.1,
    expm1: 2,
    log: 1,
    log2: 1.5,
    log10: 1.5,
    log1p: 1,
    sin: 1.5,
    cos: 1.5,
    tan: 2.75,
    asin: 2.5,
    acos: 2,
    atan: 1.25,
    atan2: 2,
    sinh: 1.75,
    cosh: 1.5,
    tanh: 2.5,
    asinh: 1.5,
    acosh: 2,
    atanh: 1.5,
    sigmoid: 2.5,
    erf: 1.1,
    erfc: 2.5,
    erfinv: 1.75,
    lgamma: 2.5,
    digamma: 4,
    trigamma: 2.5,
    pow: 1.1,
    rsqrt: 1.5,
    cbrt: 1.1,
    softplus: 2,
    gelu: 4,
    silu: 3.5,
    mish: 4,
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

/** x·tanh(log(1 + eˣ)) = x·n/(n + 2) with n = eˣ(eˣ + 2), which is 1 beyond 40. */
export function mish(x: Expr): Expr {
  const e = exp(min(x, 40));
  const n = mul(e, add(e, 2));
  return mul(max(x, -1e30), div(n, add(n, 2)));
}
