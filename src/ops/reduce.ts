/**
 * @file Reductions besides the sum (which stands with its transpose in `broadcast.ts`). Extrema propagate NaN and are
 * not defined over an empty axis; a product over nothing is 1, `any` false, `all` true.
 */

import { at } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { Derivative, OpDef } from "../ir/op.ts";
import { broadcastAlong, type ReduceAttrs, reduction, sum } from "./broadcast.ts";
import { fullLike } from "./create.ts";
import { apply } from "./define.ts";
import { div, eq, mul } from "./elementwise.ts";
import { mulIn } from "./reference.ts";
import { cast, where } from "./select.ts";

/** Which elements of x equal the extremum y of their group, and how many of each group do. */
function winners(b: Build, x: Value, y: Value, axes: readonly number[]): { mask: Value; count: Value } {
  const mask = apply(b, eq, x, broadcastAlong(b, y, x.type.shape, axes));
  return { mask, count: b.call(sum, [b.call(cast, [mask], { dtype: x.type.dtype })], { axes }) };
}

/**
 * The extremum moves with the elements that attain it; among ties each has an equal part.
 *
 *   ẏ = Σ [x = y] ẋ / n        x̄ = [x = y] ȳ / n        n = Σ [x = y]
 */
const extremum: Derivative<ReduceAttrs> = {
  kind: "general",
  jvp(b, { x, y, tangents: [t], attrs: { axes } }) {
    if (!t) return null;
    const { mask, count } = winners(b, at(x, 0), y, axes);
    const moved = apply(b, where, mask, t, fullLike(b, t, 0));
    return apply(b, div, b.call(sum, [moved], { axes }), count);
  },
  vjp(b, { x, y, ct, attrs: { axes } }) {
    const { mask, count } = winners(b, at(x, 0), y, axes);
    const part = broadcastAlong(b, apply(b, div, ct, count), at(x, 0).type.shape, axes);
    return apply(b, where, mask, part, fullLike(b, part, 0));
  },
};

export const reduceMax: OpDef<ReduceAttrs> = reduction("reduce_max", {
  domain: "number",
  combine: "max",
  empty: null,
  derivative: extremum,
  reference: (_, a, b) => Math.max(a, b),
});

export const reduceMin: OpDef<ReduceAttrs> = reduction("reduce_min", {
  domain: "number",
  combine: "min",
  empty: null,
  derivative: extremum,
  reference: (_, a, b) => Math.min(a, b),
});

/**
 * ∂y/∂xᵢ = Πⱼ≠ᵢ xⱼ. Where xᵢ ≠ 0 that is y / xᵢ, zeros elsewhere included. Where xᵢ = 0 it is the product of the
 * elements that are not zero if xᵢ is the only zero of its group, else 0.
 */
function productOfOthers(b: Build, x: Value, y: Value, axes: readonly number[]): Value {
  const { shape, dtype } = x.type;
  const isZero = apply(b, eq, x, fullLike(b, x, 0));
  const zeros = b.call(sum, [b.call(cast, [isZero], { dtype })], { axes });
  const safe = apply(b, where, isZero, fullLike(b, x, 1), x);
  const rest = b.call(reduceProd, [safe], { axes });
  const alone = apply(b, where, apply(b, eq, zeros, fullLike(b, zeros, 1)), rest, fullLike(b, rest, 0));
  const quotient = apply(b, div, broadcastAlong(b, y, shape, axes), safe);
  return apply(b, where, isZero, broadcastAlong(b, alone, shape, axes), quotient);
}

export const reduceProd: OpDef<ReduceAttrs> = reduction("reduce_prod", {
  domain: "number",
  combine: "mul",
  empty: 1,
  derivative: {
    kind: "general",
    jvp(b, { x, y, tangents: [t], attrs: { axes } }) {
      if (!t) return null;
      return b.call(sum, [apply(b, mul, t, productOfOthers(b, at(x, 0), y, axes))], { axes });
    },
    vjp(b, { x, y, ct, attrs: { axes } }) {
      const others = productOfOthers(b, at(x, 0), y, axes);
      return apply(b, mul, broadcastAlong(b, ct, at(x, 0).type.shape, axes), others);
    },
  },
  reference: mulIn,
});

export const any: OpDef<ReduceAttrs> = reduction("any", {
  domain: "bool",
  combine: "or",
  empty: 0,
  derivative: { kind: "none" },
  reference: (_, a, b) => a | b,
});

export const all: OpDef<ReduceAttrs> = reduction("all", {
  domain: "bool",
  combine: "and",
  empty: 1,
  derivative: { kind: "none" },
  reference: (_, a, b) => a & b,
});
