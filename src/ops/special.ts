/**
 * @file Inverse, hyperbolic and special functions, one element at a time; the usual ones are in math.ts. Each derivative has its
 * formula above it, in y rather than x where both are possible.
 */
import { at } from "../base/invariant.ts";
import * as reference from "../base/special.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import * as kernel from "../kernel/math.ts";
import { fullLike } from "./create.ts";
import { apply, elementwise, FEW_SHAPES } from "./define.ts";
import { add, div, mul, neg, square, sub } from "./elementwise.ts";
import { exp, rsqrt, scale, shift, type UnarySpec, unary } from "./math.ts";

const few = (spec: UnarySpec): UnarySpec => ({ ...spec, shapes: FEW_SHAPES });

/** c / x */
const over = (b: Build, c: number, x: Value): Value => apply(b, div, fullLike(b, x, c), x);
/** 1 - x² = (1 - x)(1 + x) */
const oneMinusSquare = (b: Build, x: Value): Value => {
  const one = fullLike(b, x, 1);
  return apply(b, mul, apply(b, sub, one, x), apply(b, add, one, x));
};
/** 1 + x² */
const onePlusSquare = (b: Build, x: Value): Value => apply(b, add, fullLike(b, x, 1), apply(b, square, x));

// y' = y · ln 2
export const exp2: OpDef<NoAttrs> = unary(
  "exp2",
  kernel.exp2,
  (x) => 2 ** x,
  few({ partial: (b, _x, y) => scale(b, y, Math.LN2), flops: 13 }),
);

// y' = 1 / (x · ln 2)
export const log2: OpDef<NoAttrs> = unary(
  "log2",
  kernel.log2,
  Math.log2,
  few({ partial: (b, x) => over(b, Math.LOG2E, x), flops: 16, range: [0.2, 3] }),
);

// y' = 1 / (x · ln 10)
export const log10: OpDef<NoAttrs> = unary(
  "log10",
  kernel.log10,
  Math.log10,
  few({ partial: (b, x) => over(b, Math.LOG10E, x), flops: 18, range: [0.2, 3] }),
);

// y' = 1 / (3y²)
export const cbrt: OpDef<NoAttrs> = unary(
  "cbrt",
  kernel.cbrt,
  Math.cbrt,
  few({ partial: (b, _x, y) => over(b, 1 / 3, apply(b, square, y)), flops: 24, range: [0.2, 3] }),
);

// y' = 1 / √(1 - x²)
export const asin: OpDef<NoAttrs> = unary(
  "asin",
  kernel.asin,
  Math.asin,
  few({ partial: (b, x) => apply(b, rsqrt, oneMinusSquare(b, x)), flops: 36, range: [-0.9, 0.9] }),
);

// y' = -1 / √(1 - x²)
export const acos: OpDef<NoAttrs> = unary(
  "acos",
  kernel.acos,
  Math.acos,
  few({ partial: (b, x) => apply(b, neg, apply(b, rsqrt, oneMinusSquare(b, x))), flops: 38, range: [-0.9, 0.9] }),
);

// y' = 1 / (1 + x²)
export const atan: OpDef<NoAttrs> = unary(
  "atan",
  kernel.atan,
  Math.atan,
  few({ partial: (b, x) => over(b, 1, onePlusSquare(b, x)), flops: 28 }),
);

/** The angle of the point (x, y) = (x₁, x₀). */
// ∂/∂y = x / (x² + y²), ∂/∂x = -y / (x² + y²)
export const atan2: OpDef<NoAttrs> = elementwise("atan2", {
  inputs: 2,
  domain: "float",
  partials: [
    (b, x) => apply(b, div, at(x, 1), squaredRadius(b, x)),
    (b, x) => apply(b, neg, apply(b, div, at(x, 0), squaredRadius(b, x))),
  ],
  scalar: (x) => kernel.atan2(at(x, 0), at(x, 1)),
  reference: (x) => Math.atan2(at(x, 0), at(x, 1)),
  flops: 36,
  shapes: FEW_SHAPES,
});

const squaredRadius = (b: Build, x: readonly Value[]): Value =>
  apply(b, add, apply(b, square, at(x, 0)), apply(b, square, at(x, 1)));

// y' = cosh x
export const sinh: OpDef<NoAttrs> = unary(
  "sinh",
  kernel.sinh,
  Math.sinh,
  few({ partial: (b, x) => apply(b, cosh, x), flops: 24 }),
);

// y' = sinh x
export const cosh: OpDef<NoAttrs> = unary(
  "cosh",
  kernel.cosh,
  Math.cosh,
  few({ partial: (b, x) => apply(b, sinh, x), flops: 20 }),
);

// y' = 1 / √(1 + x²)
export const asinh: OpDef<NoAttrs> = unary(
  "asinh",
  kernel.asinh,
  Math.asinh,
  few({ partial: (b, x) => apply(b, rsqrt, onePlusSquare(b, x)), flops: 36 }),
);

// y' = 1 / √(x² - 1) = 1 / √((x - 1)(x + 1))
export const acosh: OpDef<NoAttrs> = unary(
  "acosh",
  kernel.acosh,
  Math.acosh,
  few({
    partial: (b, x) => apply(b, rsqrt, apply(b, mul, shift(b, x, -1), shift(b, x, 1))),
    flops: 34,
    range: [1.2, 4],
  }),
);

// y' = 1 / (1 - x²)
export const atanh: OpDef<NoAttrs> = unary(
  "atanh",
  kernel.atanh,
  Math.atanh,
  few({ partial: (b, x) => over(b, 1, oneMinusSquare(b, x)), flops: 30, range: [-0.9, 0.9] }),
);

// y' = -2/√π · e^(-x²)
export const erfc: OpDef<NoAttrs> = unary(
  "erfc",
  kernel.erfc,
  reference.erfc,
  few({
    partial: (b, x) => scale(b, apply(b, exp, apply(b, neg, apply(b, square, x))), -2 / Math.sqrt(Math.PI)),
    flops: 80,
  }),
);

// y' = √π/2 · e^(y²)
export const erfinv: OpDef<NoAttrs> = unary(
  "erfinv",
  kernel.erfinv,
  reference.erfinv,
  few({
    partial: (b, _x, y) => scale(b, apply(b, exp, apply(b, square, y)), Math.sqrt(Math.PI) / 2),
    flops: 60,
    range: [-0.9, 0.9],
  }),
);

export type PolygammaAttrs = { readonly n: number };

/** The derivative of order n + 1 of lgamma; n = 0 is digamma. */
// ψₙ' = ψₙ₊₁
export const polygamma: OpDef<PolygammaAttrs> = elementwise<PolygammaAttrs>("polygamma", {
  inputs: 1,
  domain: "float",
  partials: [(b, x, _y, { n }) => b.call(polygamma, [at(x, 0)], { n: n + 1 })],
  scalar: (x, { n }) => kernel.polygamma(at(x, 0), n),
  reference: (x, { n }) => reference.polygamma(at(x, 0), n),
  flops: 120,
  range: [0.3, 3],
  attrSamples: [{ n: 0 }, { n: 2 }],
  shapes: FEW_SHAPES,
});

// y' = ψ₀(x)
export const lgamma: OpDef<NoAttrs> = unary(
  "lgamma",
  kernel.lgamma,
  reference.lgamma,
  few({ partial: (b, x) => b.call(polygamma, [x], { n: 0 }), flops: 110, range: [0.3, 4] }),
);
