/** @file Attention: every query takes a mean of values, weighted by how well it matches their keys. */

import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { isBool } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction, asPart } from "../trace/trace.ts";
import { arange } from "./create.ts";
import { add, div, equal, exp, greaterEqual, mul, sub, where } from "./elementwise.ts";
import { matmul } from "./linear.ts";
import { shiftOf } from "./log-sum.ts";
import { requireFloat } from "./operands.ts";
import { sum } from "./reduce.ts";
import { expandDims } from "./shape.ts";

export interface AttentionOptions {
  /**
   * Bool, true where a query may see a key; or floats of q's type, added to the scores: -∞ hides a key, other numbers are a
   * bias, which may be differentiated. Broadcasts to [..., queries, keys]. A query that sees no key gets zeros.
   */
  readonly mask?: Tensor;
  /** Query i sees keys up to position i, counted from the ends when there are more keys than queries. */
  readonly causal?: boolean;
  /** 1 / √depth by default. */
  readonly scale?: number;
}

const OPTIONS: OptionKinds<AttentionOptions> = { mask: "a tensor", causal: "a boolean", scale: "a number" };

/**
 * softmax(scores)·v as (e·v) / Σe for e = exp(scores - most): dividing [queries, width] instead of [queries, keys].
 *
 * Its derivative follows from that: for a cotangent g and g' = g / Σe it is e∘(g'·vᵀ - Σ g'∘result), one product with all else
 * behind it, which may be written over e. That of softmax itself would hold e∘(g·vᵀ) to sum it.
 */
function weightedMean(scores: Tensor, v: Tensor, mayBeEmpty: boolean): Tensor {
  const e = asPart("weights", () => exp(sub(scores, shiftOf(scores, -1))));
  // A sum over no keys is zero, as softmax's: there is nothing to divide by.
  if (e.shape.at(-1) === 0) return matmul(e, v);
  // Before the product: it divides what it stores.
  const total = asPart("weights", () => sum(e, -1, { keepDims: true }));
  // Of a query that sees no key both are zero, and so should be the quotient.
  return asPart("mean", () => div(matmul(e, v), mayBeEmpty ? where(equal(total, 0), 1, total) : total));
}

/** Scores after a mask: chosen by bools, or shifted by floats. */
function masked(scores: Tensor, mask: Tensor): Tensor {
  if (isBool(mask.dtype)) return where(mask, scores, Number.NEGATIVE_INFINITY);
  if (mask.dtype === scores.dtype) return add(scores, mask);
  return fail(
    "DtypeMismatch",
    `attention: the mask is ${typeText(mask)}, the scores are ${scores.dtype}`,
    `give bool, true where a query may see a key, or ${scores.dtype}, which is added to the scores`,
  );
}

/** How well queries match the keys that they see, -∞ for other keys. */
function seenScores(q: Tensor, k: Tensor, options: AttentionOptions): Tensor {
  const [queries, depth] = [at(q.shape, q.rank - 2), at(q.shape, q.rank - 1)];
  const keys = at(k.shape, k.rank - 2);
  return asPart("scores", () => {
    // scaling q costs less than scaling the scores
    const scores = matmul(mul(q, options.scale ?? 1 / Math.sqrt(depth)), k, { tb: true });
    const seen = options.mask ? masked(scores, options.mask) : scores;
    if (!options.causal) return seen;
    const first = Math.max(0, keys - queries);
    const past = greaterEqual(expandDims(arange(first, first + queries), 1), expandDims(arange(keys), 0));
    return where(past, seen, Number.NEGATIVE_INFINITY);
  });
}

/**
 * softmax(q·kᵀ · scale) · v for q [..., queries, depth], k [..., keys, depth], v [..., keys, width].
 *
 * @example
 * import { attention, ones } from "tidemark";
 *
 * const x = ones([2, 4, 8, 16]); // batch, heads, positions, depth
 * console.log(attention(x, x, x, { causal: true }).shape); // [2, 4, 8, 16]
 */
export function attention(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor {
  requireOptions("attention", options, OPTIONS);
  for (const [what, x] of Object.entries({ q, k, v })) requireTensor("attention", what, x);
  requireFloat("attention", q);
  if (q.rank < 2 || k.rank < 2) {
    fail(
      "ShapeMismatch",
      `attention: takes [..., positions, depth], got ${typeText(q)}, ${typeText(k)}`,
      "add axes with expandDims",
    );
  }
  // With a causal mask alone every query sees the first key.
  return asFunction("attention", () => weightedMean(seenScores(q, k, options), v, options.mask !== undefined));
}
