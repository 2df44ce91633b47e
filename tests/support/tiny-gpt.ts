/** @file A small GPT with a cache, for tests and measurements of generation. */
import { add, arange, scope, type Tensor } from "../../src/api/index.ts";
import * as nn from "../../src/nn/index.ts";

export interface GptSizes {
  readonly vocabulary: number;
  readonly capacity: number;
  readonly width: number;
  readonly heads: number;
  readonly blocks: number;
}

/** Parameters, scores of all positions at once, and the two functions that generation needs. */
export function tinyGpt({ vocabulary, capacity, width, heads, blocks }: GptSizes) {
  const token = nn.embedding(vocabulary, width);
  const place = nn.embedding(capacity, width);
  const weight = nn.initializers.normal(0.3);
  const block = nn.transformerBlock(width, { heads, causal: true, weight });
  const norm = nn.layerNorm(width);
  const head = nn.linear(width, vocabulary);
  const init = (seed: number) => ({
    token: token.init(seed),
    place: place.init(seed + 1),
    blocks: Array.from({ length: blocks }, (_, i) => block.init(seed + 2 + i)),
    norm: norm.init(0),
    head: head.init(seed + 100),
  });
  type Params = ReturnType<typeof init>;
  const embedded = (params: Params, tokens: Tensor, positions: Tensor): Tensor =>
    add(token.apply(params.token, tokens), place.apply(params.place, positions));
  const scored = (params: Params, x: Tensor): Tensor => head.apply(params.head, norm.apply(params.norm, x));
  return {
    init,
    /** i32[n] → [n, vocabulary]. */
    scores(params: Params, tokens: Tensor): Tensor {
      const x = embedded(params, tokens, arange(tokens.shape[0] ?? 0));
      const y = params.blocks.reduce((h, own) => scope("block", () => block.apply(own, h)), x);
      return scored(params, y);
    },
    initCache: (positions: number) => Array.from({ length: blocks }, () => block.initCache(positions)),
    extend(params: Params, tokens: Tensor, cache: readonly nn.KeyValueCache[], position: Tensor) {
      let x = embedded(params, tokens, add(arange(tokens.shape[0] ?? 0), position));
      const next = cache.map((own, i) => {
        const [y, kept] = scope("block", () => block.extend(params.blocks[i] as Params["blocks"][0], x, own, position));
        x = y;
        return kept;
      });
      return [scored(params, x), next] as const;
    },
  };
}
