/** @file Attention: every query takes a mean of values, weighted by how well it matches their keys. */

import { at } from "../base/invariant.ts";
import { type Shape, sameShape } from "../ir/type.ts";
import { isBool } from "../kernel/dtype.ts";
import { attend } from "../ops/attend.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction, asPart } from "../trace/trace.ts";
import { applyOp, placed } from "./apply.ts";
import {
  type AttentionShape,
  attentionShape,
  type Operands,
  requireDropout,
  requireLength,
  requireMask,
} from "./attention-shape.ts";
import { autocastMode, isHalf } from "./autocast-mode.ts";
import { arange } from "./create.ts";
import { customJvp } from "./custom.ts";
import { dropout as dropped } from "./dropout.ts";
import { add, cast, div, equal, greaterEqual, less, maximum, minimum, mul, sub, where } from "./elementwise.ts";
import { inTypeOf, wide } from "./full-precision.ts";
import { matmul } from "./linear.ts";
import { shiftOf } from "./log-sum.ts";
import { exp } from "./math.ts";
import { broadcastToShape } from "./operands.ts";
import { sum } from "./reduce.ts";
import { broadcastTo, expandDims, reshape } from "./shape.ts";

/** Options of {@link attention}. */
export interface AttentionOptions {
  /**
   * Bool, true where a query may see a key; or floats of q's type, added to the scores: -∞ hides a key, other numbers are a
   * bias, which may be differentiated. Broadcasts to [..., queries, keys]. A query that sees no key gets zeros.
   */
  readonly mask?: Tensor;
  /**
   * How many keys there are, i32: one number, or one for each batch, [...] of q [..., heads, queries, depth]. The result is
   * that of the first so many keys and values, whatever is behind them; `causal` and `window` count from there. Numbers
   * below 0 are 0, those above the keys are all. Where scores are streamed, keys from there on cost no time.
   */
  readonly length?: Tensor;
  /** Query i sees keys up to position i, counted from the ends when there are more keys than queries. */
  readonly causal?: boolean;
  /** Query i sees keys less than so many positions away, counted as with `causal`, which it may be combined with. */
  readonly window?: number;
  /** 1 / √depth by default. */
  readonly scale?: number;
  /**
   * Part of the weights that is dropped, at random, after the softmax, the others scaled up; needs a `key`. Both forms drop the same:
   * those where `random.bernoulli(key, 1 - dropout, shape of the scores)` is false. Default: 0.
   */
  readonly dropout?: number;
  /** From `random.key`; use a new one for every step. */
  readonly key?: Tensor;
  /**
   * Both compute the same up to rounding. `stored`: all scores are a tensor, which the planner may keep or recompute.
   * `streamed`: scores are computed block by block and never stored, going forward and again in reverse. By default
   * streamed from 1,024 queries and keys on, and with a length, unless the mask is one of floats, whose gradient would
   * need all scores.
   */
  readonly form?: AttentionForm;
}

/** Whether {@link attention} stores its scores, or computes them block by block. */
export type AttentionForm = "stored" | "streamed";

const OPTIONS: OptionKinds<AttentionOptions> = {
  mask: "a tensor",
  length: "a tensor",
  causal: "a boolean",
  window: "a number",
  scale: "a number",
  dropout: "a number",
  key: "a tensor",
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
function weightedMean(scores: Tensor, v: Tensor, mayBeEmpty: boolean, { dropout = 0, key }: AttentionOptions): Tensor {
  const e = asPart("weights", () => (isHalf(scores.dtype) ? halfWeights(scores) : weightsOf(scores)));
  // A sum over no keys is zero, as softmax's: there is nothing to divide by.
  if (e.shape.at(-1) === 0) return matmul(e, v);
  // Before the product: it divides what it stores.
  const total = asPart("weights", () => sum(wide(e), -1, { keepDims: true }));
  // Of a query that sees no key both are zero, and so should be the quotient.
  const kept = key && dropout > 0 ? dropped(e, dropout, key) : e;
  return asPart("mean", () => {
    const sums = matmul(kept, v);
    const by = inTypeOf(mayBeEmpty ? where(equal(total, 0), 1, total) : total, sums);
    return inTypeOf(div(sums, by), v);
  });
}

const weightsOf = (scores: Tensor): Tensor => exp(sub(scores, shiftOf(scores, -1)));

/** Computed in f32, and rounded before they are summed: what the backward pass keeps, e alone, takes half the bytes. */
const halfWeights = (scores: Tensor): Tensor => {
  const value = (v: Tensor): Tensor => cast(weightsOf(wide(v)), v.dtype);
  return customJvp(value, ([v], [t]) => mul(value(v), t))(scores);
};

/** Scores after a mask: chosen by bools, or shifted by floats. */
const masked = (scores: Tensor, mask: Tensor): Tensor =>
  isBool(mask.dtype) ? where(mask, scores, Number.NEGATIVE_INFINITY) : add(scores, mask);

/** Keys that there are, along the axes of the scores. */
function lengthOf(length: Tensor, { keys }: AttentionShape): Tensor {
  const own = minimum(maximum(length, 0), keys);
  return length.rank === 0 ? own : reshape(own, [...length.shape, 1, 1, 1]);
}

/** How well queries match the keys that they see, -∞ for other keys. */
function seenScores(q: Tensor, k: Tensor, options: AttentionOptions, shape: AttentionShape): Tensor {
  const { queries, keys, depth } = shape;
  return asPart("scores", () => {
    // scaling q costs less than scaling the scores
    const scores = matmul(mul(q, options.scale ?? 1 / Math.sqrt(depth)), k, { tb: true });
    const seen = options.mask ? masked(scores, options.mask) : scores;
    const length = options.length && lengthOf(options.length, shape);
    if (!options.causal && !options.window && !length) return seen;
    const hidden = Number.NEGATIVE_INFINITY;
    const first = Math.max(0, keys - queries);
    const other = expandDims(arange(keys), 0);
    const own = length
      ? add(expandDims(arange(queries), 1), maximum(sub(length, queries), 0))
      : expandDims(arange(first, first + queries), 1);
    const there = length ? where(less(other, length), seen, hidden) : seen;
    const past = options.causal ? where(greaterEqual(own, other), there, hidden) : there;
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

/** The shape of a mask with as many axes as the scores. */
const maskShape = (mask: Tensor, rank: number): Shape => [
  ...new Array<number>(Math.max(0, rank - mask.rank)).fill(1),
  ...mask.shape,
];

/** Whether `attend` takes them as they are: it repeats heads of keys and axes of a mask, and nothing else. */
function isPlain([q, k, v]: Operands, { heads, keyHeads }: AttentionShape): boolean {
  const lead = q.shape.slice(0, -3);
  return (
    [k, v].every(({ rank, shape }) => rank === q.rank && sameShape(shape.slice(0, -3), lead)) &&
    sameShape(k.shape.slice(0, -1), v.shape.slice(0, -1)) &&
    (q.shape.at(-3) ?? 1) === heads &&
    keyHeads > 0
  );
}

/** Whether scores are streamed: as asked, or where they are many, or where keys may be left out. */
function isStreamed(all: Operands, options: AttentionOptions, shape: AttentionShape): boolean {
  const { form, mask, scale = 1, length } = options;
  if (form !== undefined) return form === "streamed";
  const isLong = length !== undefined || Math.min(shape.queries, shape.keys) >= STREAMED_FROM;
  const isUsual = shape.depth > 0 && Number.isFinite(scale);
  return isLong && isUsual && (!mask || isBool(mask.dtype)) && isPlain(all, shape);
}

/** One node instead of scores; a lone matrix is a head of its own. */
function streamed([q, k, v]: Operands, options: AttentionOptions, shape: AttentionShape): Tensor {
  const { lead, heads, keyHeads, queries, keys, depth, width, scores } = shape;
  // of keys without elements all scores are 0, whatever they are multiplied with
  const { scale = depth === 0 ? 1 : 1 / Math.sqrt(depth), causal = false, window = 0, dropout = 0 } = options;
  if (!Number.isFinite(scale)) {
    fail("InvalidArgument", `attention: scale is ${scale}`, 'give a finite number, or form: "stored"');
  }
  const mask = options.mask ? [reshape(options.mask, maskShape(options.mask, Math.max(3, scores.length)))] : [];
  const made = applyOp(
    attend,
    [
      broadcastToShape(q, [...lead, heads, queries, depth]),
      broadcastToShape(k, [...lead, keyHeads, keys, depth]),
      broadcastToShape(v, [...lead, keyHeads, keys, width]),
      ...mask,
      ...(options.length ? [options.length] : []),
      ...(options.key && dropout > 0 ? [options.key] : []),
    ],
    { scale, causal, window, rate: dropout },
  );
  return scores.length === 2 ? reshape(made, made.shape.slice(1)) : made;
}

function requireForm({ form, window }: AttentionOptions): void {
  if (form !== undefined && form !== "stored" && form !== "streamed") {
    fail("InvalidArgument", `attention: form is "${form}"`, 'it is "stored" or "streamed"');
  }
  if (window === undefined || (Number.isSafeInteger(window) && window > 0 && window < 2 ** 30)) return;
  fail("InvalidArgument", `attention: window is ${window}`, "give a whole number of keys, 1 or more");
}

/** Operands of one type; `autocast` converts what differs. */
function inProducts(...all: Operands): Operands {
  const mode = autocastMode();
  if (!mode || all.every(({ dtype }) => dtype === all[0].dtype)) return all;
  return all.map((x) => placed(x, { dtype: mode.products })) as unknown as Operands;
}

/**
 * softmax(q·kᵀ · scale) · v for q [..., queries, depth], k [..., keys, depth], v [..., keys, width]. Where q has a multiple of
 * the heads of k and v, [..., heads, positions, depth], neighbouring heads share keys and values; leading axes broadcast. A query
 * that sees no key gets zeros.
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
  requireForm(options);
  return asFunction("attention", () => {
    const all = inProducts(q, k, v);
    const shape = attentionShape(all);
    if (options.mask) requireMask(options.mask, shape, all[0]);
    if (options.length) requireLength(options.length, shape);
    requireDropout(options);
    if (isStreamed(all, options, shape)) return streamed(all, options, shape);
    const [queries, ...others] = all;
    const [keys, values] = sharesHeads(q, k) ? others.map((x) => shared(x, at(q.shape, q.rank - 3))) : others;
    const scores = seenScores(queries, keys as Tensor, options, shape);
    // With a causal mask alone every query sees the first key.
    const mayBeEmpty = [options.mask, options.window, options.length].some((option) => option !== undefined);
    return weightedMean(scores, values as Tensor, mayBeEmpty, options);
  });
}
