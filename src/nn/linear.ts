/** @file Linear maps of the last axis, and tables of vectors by number. */

import { add } from "../api/elementwise.ts";
import { take } from "../api/indexing.ts";
import { matmul } from "../api/linear.ts";
import { max, mean, sum } from "../api/reduce.ts";
import { typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { describe, fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { fanInUniform, type Initializer, normal, type ParamDType } from "./distributions.ts";
import { partKey } from "./key.ts";
import { type Layer, requireCounts, requireExtent, WEIGHT_OPTIONS, type WeightOptions, type Weights } from "./layer.ts";

/**
 * x·w + b over the last axis, with w [in, out]. Starts uniform in ±√(1 / in), like its offset.
 *
 * @example
 * import { ones } from "tidemark";
 * import { linear } from "tidemark/nn";
 *
 * const layer = linear(3, 2);
 * const params = layer.init(0);
 * console.log(params.w.shape, params.b.shape, layer.apply(params, ones([5, 3])).shape); // [3, 2] [2] [5, 2]
 */
export function linear<B extends boolean = true>(
  inFeatures: number,
  outFeatures: number,
  options: WeightOptions<B> = {},
): Layer<Weights<B>> {
  requireCounts("linear", { inFeatures, outFeatures });
  requireOptions<WeightOptions<boolean>>("linear", options, WEIGHT_OPTIONS);
  const { bias = true, dtype = "f32" } = options;
  const fans = { fanIn: inFeatures, fanOut: outFeatures };
  const weight = options.weight ?? fanInUniform(fans);
  const offset = options.offset ?? fanInUniform(fans);
  return {
    init: (key) => {
      const w = weight(partKey(key, 0), [inFeatures, outFeatures], dtype);
      return (bias ? { w, b: offset(partKey(key, 1), [outFeatures], dtype) } : { w }) as Weights<B>;
    },
    apply: (params, x) => {
      requireExtent("linear", x, -1, ["features", inFeatures]);
      const { w, b } = params as { readonly w: Tensor; readonly b?: Tensor };
      const y = matmul(x, w);
      return b ? add(y, b) : y;
    },
  };
}

/** Parameters of {@link embedding} and {@link embeddingBag}. */
export interface EmbeddingParams {
  readonly table: Tensor;
}

/** Options of {@link embedding}. */
export interface EmbeddingOptions {
  /** Standard normal by default. */
  readonly table?: Initializer;
  readonly dtype?: ParamDType;
}

const EMBEDDING_OPTIONS: OptionKinds<EmbeddingOptions> = { table: "a function", dtype: "a float type" };

function requireNumbers(name: string, x: Tensor): void {
  if (isIndexType(x.dtype)) return;
  fail("DtypeMismatch", `${name}: takes i32 numbers, got ${typeText(x)}`, 'convert them: x.cast("i32")');
}

/**
 * A vector for each number: i32 [...] becomes [..., features]. A number outside of the table gives NaN.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { embedding } from "tidemark/nn";
 *
 * const layer = embedding(100, 16);
 * console.log(layer.apply(layer.init(0), tensor([[1, 2, 3]], { dtype: "i32" })).shape); // → [1, 3, 16]
 */
export function embedding(count: number, features: number, options: EmbeddingOptions = {}): Layer<EmbeddingParams> {
  requireCounts("embedding", { count, features });
  requireOptions("embedding", options, EMBEDDING_OPTIONS);
  const table = options.table ?? normal(1);
  return {
    init: (key) => ({ table: table(partKey(key, 0), [count, features], options.dtype ?? "f32") }),
    apply: (params, x) => {
      requireNumbers("embedding", x);
      return take(params.table, x);
    },
  };
}

/** What becomes of the vectors of a bag. */
export type BagMode = "sum" | "mean" | "max";

const BAGS: Readonly<Record<BagMode, (vectors: Tensor) => Tensor>> = {
  sum: (vectors) => sum(vectors, -2),
  mean: (vectors) => mean(vectors, -2),
  max: (vectors) => max(vectors, -2),
};

/** Options of {@link embeddingBag}. */
export interface EmbeddingBagOptions extends EmbeddingOptions {
  /** "mean" by default. */
  readonly mode?: BagMode;
}

/**
 * One vector for each bag of numbers: i32 [..., n] becomes [..., features], the mean, sum or maximum of n vectors.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { embeddingBag } from "tidemark/nn";
 *
 * const layer = embeddingBag(100, 16);
 * console.log(layer.apply(layer.init(0), tensor([[1, 2, 3]], { dtype: "i32" })).shape); // → [1, 16]
 */
export function embeddingBag(
  count: number,
  features: number,
  options: EmbeddingBagOptions = {},
): Layer<EmbeddingParams> {
  const { mode = "mean", ...rest } = options;
  if (!Object.hasOwn(BAGS, mode)) {
    fail("InvalidArgument", `embeddingBag: mode ${describe(mode)}`, 'choose "mean", "sum" or "max"');
  }
  const single = embedding(count, features, rest);
  return {
    init: single.init,
    apply: (params, x) => {
      requireNumbers("embeddingBag", x);
      if (x.rank === 0) fail("ShapeMismatch", `embeddingBag: ${typeText(x)} is no bag`, "give at least one axis");
      return BAGS[mode](single.apply(params, x));
    },
  };
}
