/**
 * @file The usual transcendental functions, one element at a time; more are in special.ts. The kernels compute them with `kernel/math.ts`, which every
 * target shares; the reference uses doubles. Each derivative has its formula above it, in y rather than x where both
 * are possible: y usually lives anyway.
 */
import { at } from "../base/invariant.ts";
import { erf as erfReference } from "../base/special.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import type { Expr } from "../kernel/expr.ts";
import * as kernel from "../kernel/math.ts";
import { fullLike } from "./create.ts";
import { apply, type ElementwiseSpec, elementwise } from "./define.ts";
import { add, and, div, eq, min, mul, neg, square, sub } from "./elementwise.ts";
import { where } from "./select.ts";

export type UnarySpec = Pick<ElementwiseSpec<NoAttrs>, "flops" | "range" | "shapes" | "facts"> & {
  partial(b: Build, x: Value, y: Value): Value;
};

/** y = f(x) on floats with y' = `partial`. */
export function unary(
  name: string,
  scalar: (x: Expr) => Expr,
  reference: (x: number) => number,
  spec: UnarySpec,
): OpDef<NoAttrs> {
  const { partial, ...rest } = spec;
  return elementwise(name, {
    ...rest,
    inputs: 1,
    domain: "float",
    partials: [(b, x, y) => partial(b, at(x, 0), y)],
    scalar: (x) => scalar(at(x, 0)),
    reference: (x) => reference(at(x, 0)),
  });
}

/** c · x */
export const scale = (b: Build, x: Value, c: number): Value => apply(b, mul, x, fullLike(b, x, c));
/** c + x */
export const shift = (b: Build, x: Value, c: number): Value => apply(b, add, x, fullLike(b, x, c));
/** min(x, 64²) */
const bounded = (b: Build, x: Value): Value => apply(b, min, x, fullLike(b, x, 64 ** 2));
/** 1 - x */
const oneMinus = (b: Build, x: Value): Value => apply(b, sub, fullLike(b, x, 1), x);
/** 1 / x */
const inverse = (b: Build, x: Value): Value => apply(b, div, fullLike(b, x, 1), x);

// y' = y
export const exp: OpDef<NoAttrs> = unary("exp", kernel.exp, Math.exp, {
  partial: (_b, _x, y) => y,
  flops: 12,
});

// y' = y + 1
export const expm1: OpDef<NoAttrs> = unary("expm1", kernel.expm1, Math.expm1, {
  partial: (b, _x, y) => shift(b, y, 1),
  flops: 16,
});

// y' = 1 / x
export const log: OpDef<NoAttrs> = unary("log", kernel.log, Math.log, {
  partial: (b, x) => inverse(b, x),
  flops: 14,
  range: [0.2, 3],
});

// y' = 1 / (1 + x)
export const log1p: OpDef<NoAttrs> = unary("log1p", kernel.log1p, Math.log1p, {
  partial: (b, x) => inverse(b, shift(b, x, 1)),
  flops: 18,
  range: [-0.5, 2],
});

// y' = cos x
export const sin: OpDef<NoAttrs> = unary("sin", kernel.sin, Math.sin, {
  partial: (b, x) => apply(b, cos, x),
  flops: 20,
});

// y' = -sin x
export const cos: OpDef<NoAttrs> = unary("cos", kernel.cos, Math.cos, {
  partial: (b, x) => apply(b, neg, apply(b, sin, x)),
  flops: 20,
});

// y' = 1 + y²
export const tan: OpDef<NoAttrs> = unary("tan", kernel.tan, Math.tan, {
  partial: (b, _x, y) => shift(b, apply(b, square, y), 1),
  flops: 32,
  range: [-1.2, 1.2],
});

// y' = 1 - y²
export const tanh: OpDef<NoAttrs> = unary("tanh", kernel.tanh, Math.tanh, {
  partial: (b, _x, y) => oneMinus(b, apply(b, square, y)),
  flops: 18,
});

const sigmoidReference = (x: number): number => 1 / (1 + Math.exp(-x));

// y' = y (1 - y)
export const sigmoid: OpDef<NoAttrs> = unary("sigmoid", kernel.sigmoid, sigmoidReference, {
  partial: (b, _x, y) => apply(b, mul, y, oneMinus(b, y)),
  flops: 16,
});

// y' = 2/√π · e^(-x²)
export const erf: OpDef<NoAttrs> = unary("erf", kernel.erf, erfReference, {
  partial: (b, x) => scale(b, apply(b, exp, apply(b, neg, apply(b, square, x))), 2 / Math.sqrt(Math.PI)),
  flops: 26,
});

// y' = -1/2 · y³
export const rsqrt: OpDef<NoAttrs> = unary("rsqrt", kernel.rsqrt, (x) => 1 / Math.sqrt(x), {
  partial: (b, _x, y) => scale(b, apply(b, mul, y, apply(b, square, y)), -0.5),
  flops: 8,
  range: [0.2, 3],
});

// As in the kernels, the factor of gelu and silu is bounded so that -∞ gives -0 and not ∞·0.
const GELU_CUBIC = 0.044715;
const GELU_SLOPE = 2 * Math.sqrt(2 / Math.PI);

/**
 * x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), written with ½(1 + tanh u) = σ(2u).
 *
 * With v = 2√(2/π) (x + 0.044715 x³) and s = σ(v):  y = x·s,  y' = s + x·s·(1-s)·v' = s + y·(1-s)·v'
 */
export const gelu: OpDef<NoAttrs> = unary(
  "gelu",
  kernel.gelu,
  (x) => Math.max(x, -1e30) * sigmoidReference(GELU_SLOPE * (x + GELU_CUBIC * x ** 3)),
  {
    partial(b, x, y) {
      // σ(v) is 0 or 1 long before |x| is 64: there both are bounded, so that neither overflows, and 0·∞ does not follow.
      const x2 = bounded(b, apply(b, square, x));
      // v = x · (k + k·c·x²),  v' = k + 3·k·c·x²
      const v = apply(b, mul, x, shift(b, scale(b, x2, GELU_SLOPE * GELU_CUBIC), GELU_SLOPE));
      const dv = shift(b, scale(b, x2, 3 * GELU_SLOPE * GELU_CUBIC), GELU_SLOPE);
      const s = apply(b, sigmoid, v);
      return apply(b, add, s, apply(b, mul, apply(b, mul, bounded(b, y), oneMinus(b, s)), dv));
    },
    flops: 24,
    facts: { torchReads: [[0]] },
  },
);

// y = x·s with s = σ(x):  y' = s + y (1 - s)
export const silu: OpDef<NoAttrs> = unary("silu", kernel.silu, (x) => Math.max(x, -1e30) * sigmoidReference(x), {
  partial(b, x, y) {
    const s = apply(b, sigmoid, x);
    return apply(b, add, s, apply(b, mul, bounded(b, y), oneMinus(b, s)));
  },
  flops: 18,
  facts: { torchReads: [[0]] },
});

/** log(1 + eˣ) = max(x, 0) + log1p(e^-|x|), which never overflows. */
// y' = σ(x)
export const softplus: OpDef<NoAttrs> = unary(
  "softplus",
  kernel.softplus,
  (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
  { partial: (b, x) => apply(b, sigmoid, x), flops: 32 },
);

// ∂z/∂x = y·x^(y-1). At x = y = 0 that would be 0·∞ where the derivative of x⁰ is 0: the exponent is held at 0 there.
function powByBase(b: Build, x: Value, y: Value): Value {
  const zero = fullLike(b, x, 0);
  const both = apply(b, and, apply(b, eq, x, zero), apply(b, eq, y, zero));
  const exponent = apply(b, where, both, zero, shift(b, y, -1));
  return apply(b, mul, y, apply(b, pow, x, exponent));
}

// ∂z/∂y = z·log x, and 0 where x = 0. The logarithm is taken of 1 there, so that no ∞ enters higher derivatives.
function powByExponent(b: Build, x: Value, z: Value): Value {
  const isZero = apply(b, eq, x, fullLike(b, x, 0));
  const safe = apply(b, where, isZero, fullLike(b, x, 1), x);
  return apply(b, where, isZero, fullLike(b, x, 0), apply(b, mul, z, apply(b, log, safe)));
}

/** x to the power of y, elementwise. */
export const pow: OpDef<NoAttrs> = elementwise("pow", {
  inputs: 2,
  domain: "float",
  partials: [(b, x) => powByBase(b, at(x, 0), at(x, 1)), (b, x, z) => powByExponent(b, at(x, 0), z)],
  scalar: (x) => kernel.pow(at(x, 0), at(x, 1)),
  reference: (x) => at(x, 0) ** at(x, 1),
  flops: 36,
  range: [
    [0.2, 2],
    [-2, 2],
  ],
});
