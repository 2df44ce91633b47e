/**
 * @file The block that transformers are stacked from, with normalisation before each part (R. Xiong and others, ICML
 * 2020), so that a straight path of additions leads from the loss to every block:
 *
 *   x ─┬─ norm ── attention ─┬─ + ─┬─ norm ── up ── gelu ── down ─┬─ + ─ y
 *      └─────────────────────┘     └──────────────────────────────┘
 */

import { add } from "../api/elementwise.ts";
import { gelu } from "../api/math.ts";
import { scope } from "../api/scope.ts";
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { dropout as dropoutLayer } from "./activation.ts";
import { type AttentionParams, multiHeadAttention } from "./attention.ts";
import { type Initializer, normal, type ParamDType, zeros } from "./distributions.ts";
import { partKey } from "./key.ts";
import { type ApplyOptions, type CachedLayer, type KeyValueCache, requireExtent, type Weights } from "./layer.ts";
import { linear } from "./linear.ts";
import { type AffineParams, layerNorm } from "./norm.ts";
import { partOptions } from "./sequential.ts";

/** Options of {@link transformerBlock}. */
export interface TransformerBlockOptions {
  readonly heads: number;
  /** Width of the inner layer; four times the features by default. */
  readonly hidden?: number;
  readonly causal?: boolean;
  /** After attention and after the inner layer, while training; 0 by default. */
  readonly dropout?: number;
  /** Of the weights of attention, while training; 0 by default. */
  readonly attentionDropout?: number;
  readonly eps?: number;
  /** Of all products; normal with deviation 0.02 by default, offsets zero. */
  readonly weight?: Initializer;
  readonly dtype?: ParamDType;
}

const OPTIONS: OptionKinds<TransformerBlockOptions> = {
  heads: "a number",
  hidden: "a number",
  causal: "a boolean",
  dropout: "a number",
  attentionDropout: "a number",
  eps: "a number",
  weight: "a function",
  dtype: "a float type",
};

/** Parameters of {@link transformerBlock}. */
export interface TransformerBlockParams {
  readonly norm1: AffineParams;
  readonly attention: AttentionParams;
  readonly norm2: AffineParams;
  readonly up: Weights<true>;
  readonly down: Weights<true>;
}

/** The place of attention among the parts that draw; those of the two dropouts are 0 and 1. */
const ATTENTION = 2;

/**
 * A transformer block over [..., positions, features].
 *
 * @example
 * import { ones } from "tidemark";
 * import { transformerBlock } from "tidemark/nn";
 *
 * const block = transformerBlock(16, { heads: 4, causal: true });
 * console.log(block.apply(block.init(0), ones([2, 5, 16])).shape); // [2, 5, 16]
 */
export function transformerBlock(
  features: number,
  options: TransformerBlockOptions,
): CachedLayer<TransformerBlockParams, KeyValueCache> {
  requireOptions("transformerBlock", options, OPTIONS);
  const { heads, hidden = 4 * features, causal = false, eps = 1e-5, dtype = "f32" } = options;
  const weights = { weight: options.weight ?? normal(0.02), offset: zeros(), dtype };
  const norm = layerNorm(features, { eps, dtype });
  const { attentionDropout = 0 } = options;
  const attention = multiHeadAttention(features, {
    ...{ heads, causal, weight: weights.weight, dtype, dropout: attentionDropout },
  });
  const up = linear(features, hidden, weights);
  const down = linear(hidden, features, weights);
  const drop = dropoutLayer(options.dropout ?? 0);
  const dropped = (x: Tensor, given: ApplyOptions | undefined, place: number): Tensor =>
    drop.apply({}, x, partOptions(given, place, drop.random));
  const inner = (params: TransformerBlockParams, x: Tensor): Tensor =>
    down.apply(params.down, gelu(up.apply(params.up, norm.apply(params.norm2, x))));
  return {
    random: (drop.random || attention.random) ?? false,
    init: (key) => ({
      norm1: norm.init(key),
      attention: attention.init(partKey(key, 0)),
      norm2: norm.init(key),
      up: up.init(partKey(key, 1)),
      down: down.init(partKey(key, 2)),
    }),
    apply: (params, x, given) => {
      requireExtent("transformerBlock", x, -1, ["features", features]);
      const middle = scope("attention", () => {
        const own = partOptions(given, ATTENTION, attention.random);
        const seen = attention.apply(params.attention, norm.apply(params.norm1, x), own);
        return add(x, dropped(seen, given, 0));
      });
      return scope("feed-forward", () => add(middle, dropped(inner(params, middle), given, 1)));
    },
    initCache: (capacity, batch) => attention.initCache(capacity, batch),
    extend: (params, x, cache, position) => {
      requireExtent("transformerBlock", x, -1, ["features", features]);
      const [middle, next] = scope("attention", () => {
        const [seen, kept] = attention.extend(params.attention, norm.apply(params.norm1, x), cache, position);
        return [add(x, seen), kept] as const;
      });
      return [scope("feed-forward", () => add(middle, inner(params, middle))), next];
    },
  };
}
