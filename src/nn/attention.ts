/**
 * @file Multi-head self-attention (A. Vaswani and others, 2017). Queries, keys and values of all heads come from one
 * product, since three products that read the same input are slower than one:
 *
 *   x [..., t, d] ── qkv [d, 3d] ── [..., t, 3, heads, d/heads] ── q, k, v each [..., heads, t, d/heads]
 *                                                                   └── attention ── [..., t, d] ── out [d, d]
 *
 * With a cache, keys and values of new positions are written behind those of the positions before, and queries of the new
 * ones see all up to their own. The length of attention leaves out the rest of the cache.
 */
import { type AttentionForm, attention } from "../api/attention.ts";
import { zeros as filled } from "../api/create.ts";
import { add } from "../api/elementwise.ts";
import { dynamicUpdate } from "../api/indexing.ts";
import { split } from "../api/join.ts";
import { reshape, swapAxes } from "../api/shape.ts";
import { typeText } from "../ir/type.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asPart } from "../trace/trace.ts";
import { glorotUniform, type Initializer, type ParamDType, zeros } from "./distributions.ts";
import { partKey } from "./key.ts";
import {
  APPLY_OPTIONS,
  type ApplyOptions,
  type CachedLayer,
  type KeyValueCache,
  requireCounts,
  requireDrawKey,
  requireExtent,
  requireRate,
  type Weights,
} from "./layer.ts";
import { linear } from "./linear.ts";

/** Options of {@link multiHeadAttention}. */
export interface MultiHeadAttentionOptions<B extends boolean = true> {
  readonly heads: number;
  /** A position sees itself and those before it. */
  readonly causal?: boolean;
  readonly bias?: B;
  /** Part of the weights that is dropped while training; 0 by default. */
  readonly dropout?: number;
  /** Whether scores are stored; by default as `attention` chooses. */
  readonly form?: AttentionForm;
  /** Of both products; Glorot uniform by default, with offsets zero. */
  readonly weight?: Initializer;
  readonly dtype?: ParamDType;
}

const OPTIONS: OptionKinds<MultiHeadAttentionOptions> = {
  heads: "a number",
  causal: "a boolean",
  bias: "a boolean",
  dropout: "a number",
  form: "a text",
  weight: "a function",
  dtype: "a float type",
};

/** Parameters of {@link multiHeadAttention}. */
export interface AttentionParams<B extends boolean = true> {
  /** w [features, 3 · features]: columns of queries, of keys, of values, each one head after the other. */
  readonly qkv: Weights<B>;
  readonly out: Weights<B>;
}

/** Dropout while training. */
function drawing({ train = false, key }: ApplyOptions, dropout: number) {
  if (!train || dropout === 0) return {};
  return { dropout, key: requireDrawKey("multiHeadAttention", key) };
}

/** A cache with the rows of some positions replaced. */
const written = (cache: Tensor, rows: Tensor, position: Tensor): Tensor =>
  dynamicUpdate(cache, rows, [...cache.shape.slice(2).map(() => 0), position, 0]);

function requireCache(
  x: Tensor,
  { k }: KeyValueCache,
  { heads, causal }: { readonly heads: number; readonly causal: boolean },
): void {
  if (!causal) {
    const message = "multiHeadAttention: a cache is for attention that sees no later position";
    fail("InvalidArgument", message, "make the layer with causal: true");
  }
  const [lead, positions] = [x.shape.slice(0, -2), x.shape.at(-2) ?? 0];
  const own = [...lead, heads];
  const fits = own.length === k.rank - 2 && own.every((n, axis) => n === k.shape[axis]);
  if (fits && positions <= (k.shape.at(-2) ?? 0)) return;
  const message = `multiHeadAttention: a cache of keys ${typeText(k)} for ${typeText(x)} in ${heads} heads`;
  fail(
    "ShapeMismatch",
    message,
    "make it with initCache(capacity, batch): no more positions at once than its capacity",
  );
}

/**
 * Self-attention of [..., positions, features] with several heads.
 *
 * @example
 * import { ones } from "tidemark";
 * import { multiHeadAttention } from "tidemark/nn";
 *
 * const layer = multiHeadAttention(16, { heads: 4, causal: true });
 * console.log(layer.apply(layer.init(0), ones([2, 5, 16])).shape); // [2, 5, 16]
 */
export function multiHeadAttention<B extends boolean = true>(
  features: number,
  options: MultiHeadAttentionOptions<B>,
): CachedLayer<AttentionParams<B>, KeyValueCache> {
  requireOptions<MultiHeadAttentionOptions<boolean>>("multiHeadAttention", options, OPTIONS);
  const { heads, causal = false, dtype = "f32", form, dropout = 0 } = options;
  requireRate("multiHeadAttention", dropout);
  requireCounts("multiHeadAttention", { features, heads });
  if (features % heads !== 0) {
    const message = `multiHeadAttention: ${features} features in ${heads} heads`;
    fail("InvalidArgument", message, "choose a number of heads that divides the features");
  }
  // each of the three is a map of its own: it scales by its own fans
  const weight = options.weight ?? glorotUniform({ fanIn: features, fanOut: features });
  const shared = { weight, offset: zeros(), dtype, ...(options.bias === undefined ? {} : { bias: options.bias }) };
  const qkv = linear<B>(features, 3 * features, shared);
  const out = linear<B>(features, features, shared);
  const byHead = (x: Tensor): Tensor =>
    swapAxes(reshape(x, [...x.shape.slice(0, -1), heads, features / heads]), -2, -3);
  const split3 = (params: AttentionParams<B>, x: Tensor) =>
    split(qkv.apply(params.qkv, x), 3, -1).map(byHead) as [Tensor, Tensor, Tensor];
  const joined = (params: AttentionParams<B>, y: Tensor, { shape }: Tensor): Tensor =>
    out.apply(params.out, reshape(swapAxes(y, -2, -3), shape));
  const requireInput = (x: Tensor): void => {
    requireExtent("multiHeadAttention", x, -1, ["features", features]);
    if (x.rank >= 2) return;
    const message = `multiHeadAttention: takes [..., positions, features], got ${typeText(x)}`;
    fail("ShapeMismatch", message, "add the axis of positions: expandDims(x, 0)");
  };
  return {
    random: dropout > 0,
    init: (key) => ({ qkv: qkv.init(partKey(key, 0)), out: out.init(partKey(key, 1)) }),
    apply: (params, x, given = {}) => {
      requireOptions("multiHeadAttention", given, APPLY_OPTIONS);
      const { mask, length } = given;
      const more = { ...(mask ? { mask } : {}), ...(length ? { length } : {}), ...(form ? { form } : {}) };
      requireInput(x);
      return asPart("attention", () => {
        const y = attention(...split3(params, x), { causal, ...more, ...drawing(given, dropout) });
        return joined(params, y, x);
      });
    },
    initCache: (capacity, batch = []) => {
      requireCounts("multiHeadAttention", { capacity });
      const shape = [...batch, heads, capacity, features / heads];
      return { k: filled(shape, dtype), v: filled(shape, dtype) };
    },
    extend: (params, x, cache, position) => {
      requireInput(x);
      requireCache(x, cache, { heads, causal });
      return asPart("attention", () => {
        const [q, k, v] = split3(params, x);
        const next = { k: written(cache.k, k, position), v: written(cache.v, v, position) };
        const length = add(position, x.shape.at(-2) ?? 0);
        const y = attention(q, next.k, next.v, { causal, length, ...(form ? { form } : {}) });
        return [joined(params, y, x), next];
      });
    },
  };
}
