/** @file Attention: every query takes a mean of values, weighted by how well it matches their keys. */

import { at } from "../base/invariant.ts";
import { type Shape, typeText } from "../ir/type.ts";
import { isBool } from "../kernel/dtype.ts";
import { attend } from "../ops/attend.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction, asPart } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { arange } from "./create.ts";
import { add, div, equal, exp, greaterEqual, less, mul, sub, where } from "./elementwise.ts";
import { matmul } from "./linear.ts";
import { shiftOf } from "./log-sum.ts";
import { requireFloat } from "./operands.ts";
import { sum } from "./reduce.ts";
import { broadcastTo, expandDims, reshape } from "./shape.ts";

export interface AttentionOptions {
  /**
   * Bool, true where a query may see a key; or floats of q's type, added to the scores: -∞ hides a key, other numbers are a
   * bias, which may be differentiated. Broadcasts to [..., queries, keys]. A query that sees no key gets zeros.
   */
  readonly mask?: Tensor;
  /** Query i sees keys up to position i, counted from the ends when there are more keys than queries. */
  readonly causal?: boolean;
  /** Query i sees keys less than so many positions away, counted as with `causal`, which it may be combined with. */
  readonly window?: number;
  /** 1 / √depth by default. */
  readonly scale?: number;
  /**
   * Both compute the same up to rounding. `stored`: all scores are a tensor, which the planner may keep or recompute.
   * `streamed`: scores are computed block by block and never stored, going forward and again in reverse. By default
   * streamed from 1,024 queries and keys on, unless the mask is one of floats, whose gradient would need all scores.
   */
  readonly form?: AttentionForm;
}

export type AttentionForm = "stored" | "streamed";

const OPTIONS: OptionKinds<AttentionOptions> = {
  mask: "a tensor",
  causal: "a boolean",
  window: "a number",
  scale: "a number",
  form: "a text",
};

/** Queries and keys from which on scores are not stored by default (bench/attention.ts). */
const STREAMED_FROM = 1024;

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
    if (!options.causal && !options.window) return seen;
    const first = Math.max(0, keys - queries);
    const [own, other] = [expandDims(arange(first, first + queries), 1), expandDims(arange(keys), 0)];
    const hidden = Number.NEGATIVE_INFINITY;
    const past = options.causal ? where(greaterEqual(own, other), seen, hidden) : seen;
    if (!options.window) return past;
    const near = where(less(sub(own, other), options.window), past, hidden);
    return options.causal ? near : where(less(sub(other, own), options.window), near, hidden);
  });
}

/** Keys or values of heads that several heads of queries share, once for each of those. */
function shared(x: Tensor, heads: number): Tensor {
  const own = at(x.shape, x.rank - 3);
  const [lead, last] = [x.shape.slice(0, -3), x.shape.slice(-2)];
  const each = broadcastTo(expandDims(x, -3), [...lead, own, heads / own, ...last]);
  return reshape(each, [...lead, heads, ...last]);
}

/** Heads of queries that share those of keys: more of them, and a whole number for each. */
function sharesHeads(q: Tensor, k: Tensor): boolean {
  const [heads, own] = [q.shape.at(-3) ?? 1, k.shape.at(-3) ?? 1];
  return heads !== own && own > 1 && heads % own === 0;
}

// ---- streamed -------------------------------------------------------------------------------------------------------

const same = (a: Shape, b: Shape): boolean => a.length === b.length && a.every((n, i) => n === b[i]);

/** The shape of a mask with as many axes as the scores. */
const maskShape = (mask: Tensor, rank: number): Shape => [
  ...new Array<number>(Math.max(0, rank - mask.rank)).fill(1),
  ...mask.shape,
];

/** Whether `attend` takes them: it repeats heads of keys and axes of a mask, and nothing else. */
function canStream(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | undefined): boolean {
  const [heads, own] = [q.shape.at(-3) ?? 1, k.shape.at(-3) ?? 1];
  const fits =
    [k, v].every(({ dtype, rank }) => dtype === q.dtype && rank === q.rank) &&
    same(q.shape.slice(0, -3), k.shape.slice(0, -3)) &&
    same(k.shape.slice(0, -1), v.shape.slice(0, -1)) &&
    q.shape.at(-1) === k.shape.at(-1) &&
    own > 0 &&
    heads % own === 0;
  if (!fits || !mask) return fits;
  const scores = [...q.shape.slice(0, -1), k.shape.at(-2) ?? 1];
  const shape = maskShape(mask, q.rank);
  return shape.length === q.rank && shape.every((n, i) => n === 1 || n === scores[i]);
}

/** Whether scores are streamed: as asked, or where they are many. */
function isStreamed([q, k, v]: readonly [Tensor, Tensor, Tensor], options: AttentionOptions): boolean {
  const { form, mask, scale = 1 } = options;
  if (form !== undefined) return form === "streamed";
  const positions = Math.min(at(q.shape, q.rank - 2), at(k.shape, k.rank - 2));
  const isUsual = at(q.shape, q.rank - 1) > 0 && Number.isFinite(scale);
  return positions >= STREAMED_FROM && isUsual && (!mask || isBool(mask.dtype)) && canStream(q, k, v, mask);
}

/** One node instead of scores; a lone matrix is a head of its own. */
function streamed(inputs: readonly Tensor[], options: AttentionOptions): Tensor {
  const { rank, shape } = at(inputs, 0);
  const { scale = 1 / Math.sqrt(at(shape, rank - 1)), causal = false, window = 0 } = options;
  const mask = options.mask ? [reshape(options.mask, maskShape(options.mask, rank))] : [];
  const own = [...inputs, ...mask].map((x) => (rank === 2 ? expandDims(x, 0) : x));
  const made = applyOp(attend, own, { scale, causal, window });
  return rank === 2 ? reshape(made, made.shape.slice(1)) : made;
}

function requireForm({ form, window }: AttentionOptions): void {
  if (form !== undefined && form !== "stored" && form !== "streamed") {
    fail("InvalidArgument", `attention: form is "${form}"`, 'it is "stored" or "streamed"');
  }
  if (window === undefined || (Number.isSafeInteger(window) && window > 0 && window < 2 ** 30)) return;
  fail("InvalidArgument", `attention: window is ${window}`, "give a whole number of keys, 1 or more");
}

/**
 * softmax(q·kᵀ · scale) · v for q [..., queries, depth], k [..., keys, depth], v [..., keys, width]. Where q has a multiple of
 * the heads of k and v, [..., heads, positions, depth], neighbouring heads share keys and values.
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
  requireForm(options);
  return asFunction("attention", () => {
    if (isStreamed([q, k, v], options)) {
      if (canStream(q, k, v, options.mask)) return streamed([q, k, v], options);
      const all = [q, k, v, ...(options.mask ? [options.mask] : [])].map(typeText).join(", ");
      const help = "k and v have q's leading axes, but for fewer heads; a mask has extents of the scores, or 1";
      fail("ShapeMismatch", `attention: these cannot be streamed: ${all}`, help);
    }
    const [keys, values] = sharesHeads(q, k) ? [k, v].map((x) => shared(x, at(q.shape, q.rank - 3))) : [k, v];
    const scores = seenScores(q, keys as Tensor, options);
    // With a causal mask alone every query sees the first key.
    return weightedMean(scores, values as Tensor, options.mask !== undefined || options.window !== undefined);
  });
}
