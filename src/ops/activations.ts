/**
 * @file Activations whose derivative needs less than that of the operations they could be composed of: each reads its output, or its
 * input, and nothing else.
 */
import { at } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import * as kernel from "../kernel/math.ts";
import * as scalar from "../kernel/scalar-ops.ts";
import { fullLike } from "./create.ts";
import { apply, elementwise, FEW_SHAPES } from "./define.ts";
import { abs, add, gt, lt, mul, neg, square, sub } from "./elementwise.ts";
import { expm1, scale, shift, sigmoid, softplus, tanh, unary } from "./math.ts";
import { where } from "./select.ts";

export type EluAttrs = { readonly alpha: number; readonly scale: number; readonly rate: number };

/** scale·x above zero, scale·alpha·(e^(rate·x) - 1) below; alpha is not negative, scale and rate are positive. */
// y' = scale above zero, (y + scale·alpha)·rate below; y has the sign of x
export const elu: OpDef<EluAttrs> = elementwise<EluAttrs>("elu", {
  inputs: 1,
  domain: "float",
  partials: [
    (b, _x, y, attrs) => {
      const above = fullLike(b, y, attrs.scale);
      const below = scale(b, shift(b, y, attrs.scale * attrs.alpha), attrs.rate);
      return apply(b, where, apply(b, gt, y, fullLike(b, y, 0)), above, below);
    },
  ],
  scalar: (x, attrs) => {
    const v = at(x, 0);
    const below = scalar.mul(kernel.expm1(scalar.mul(v, attrs.rate)), attrs.scale * attrs.alpha);
    return scalar.pick(scalar.lt(0, v), scalar.mul(v, attrs.scale), below);
  },
  reference: (x, attrs) => {
    const v = at(x, 0);
    return v > 0 ? attrs.scale * v : attrs.scale * attrs.alpha * Math.expm1(attrs.rate * v);
  },
  flops: 20,
  attrSamples: [
    { alpha: 1, scale: 1, rate: 1 },
    { alpha: 1.5, scale: 1.25, rate: 0.75 },
  ],
  shapes: FEW_SHAPES,
});

const mishReference = (x: number): number =>
  Math.max(x, -1e30) * Math.tanh(Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))));

/** x·tanh(log(1 + eˣ)). */
// with t = tanh(softplus x):  y' = t + x·σ(x)·(1 - t²)
export const mish: OpDef<NoAttrs> = unary("mish", kernel.mish, mishReference, {
  partial(b, x) {
    const t = apply(b, tanh, apply(b, softplus, x));
    const rest = apply(b, sub, fullLike(b, x, 1), apply(b, square, t));
    return apply(b, add, t, apply(b, mul, apply(b, mul, bounded(b, x), apply(b, sigmoid, x)), rest));
  },
  flops: 22,
  shapes: FEW_SHAPES,
});

/** x, kept from -∞ and ∞, which zeros are multiplied with there. */
function bounded(b: Build, x: Value): Value {
  const limit = fullLike(b, x, 1e30);
  const below = apply(b, where, apply(b, lt, x, limit), x, limit);
  const lower = fullLike(b, x, -1e30);
  return apply(b, where, apply(b, lt, below, lower), lower, below);
}

// y' = (1 - |y|)²
export const softsign: OpDef<NoAttrs> = unary(
  "softsign",
  (x) => scalar.div(x, scalar.add(1, scalar.abs(x))),
  (x) => x / (1 + Math.abs(x)),
  {
    partial: (b, _x, y) => apply(b, square, apply(b, sub, fullLike(b, y, 1), apply(b, abs, y))),
    flops: 3,
    shapes: FEW_SHAPES,
  },
);

/** log σ(x) = -softplus(-x). */
// y' = 1 - e^y
export const logSigmoid: OpDef<NoAttrs> = unary(
  "log_sigmoid",
  (x) => scalar.neg(kernel.softplus(scalar.neg(x))),
  (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))),
  { partial: (b, _x, y) => apply(b, neg, apply(b, expm1, y)), flops: 34, shapes: FEW_SHAPES },
);

/** x·(x + 3)/6, with the second factor kept between 0 and 1. */
// y' = 0 below -3, 1 above 3, x/3 + ½ between
export const hardSwish: OpDef<NoAttrs> = unary(
  "hard_swish",
  (x) => scalar.mul(x, scalar.div(scalar.clamp(scalar.add(x, 3), 0, 6), 6)),
  (x) => x * (Math.min(Math.max(x + 3, 0), 6) / 6),
  {
    partial(b, x) {
      const middle = shift(b, scale(b, x, 1 / 3), 0.5);
      const upper = apply(b, where, apply(b, gt, x, fullLike(b, x, 3)), fullLike(b, x, 1), middle);
      return apply(b, where, apply(b, lt, x, fullLike(b, x, -3)), fullLike(b, x, 0), upper);
    },
    flops: 5,
    shapes: FEW_SHAPES,
  },
);
