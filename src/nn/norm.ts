/** @file Normalisation layers without memory: each example is normalised by its own statistics. */
import { groupNorm as groupNormOf, layerNorm as layerNormOf, rmsNorm as rmsNormOf } from "../api/normalize.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { ones, type ParamDType, zeros } from "./distributions.ts";
import { type Layer, requireCounts, requireExtent } from "./layer.ts";

/** Options of norm layers. */
export interface NormOptions {
  /** Keeps the divisor from zero; 1e-5 by default. */
  readonly eps?: number;
  readonly dtype?: ParamDType;
}

/** @internal */
export const NORM_OPTIONS: OptionKinds<NormOptions> = { eps: "a number", dtype: "a float type" };

/** Parameters of norms with a scale alone. */
export interface ScaleParams {
  readonly scale: Tensor;
}

/** Parameters of norms with scale and offset. */
export interface AffineParams extends ScaleParams {
  readonly offset: Tensor;
}

/** Scale one and offset zero, one number for each feature. @internal */
export function initialAffine(features: number, dtype: ParamDType = "f32"): AffineParams {
  return { scale: ones()(0, [features], dtype), offset: zeros()(0, [features], dtype) };
}

/**
 * Zero mean and unit variance over the last axis, then scale and offset.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { layerNorm } from "tidemark/nn";
 *
 * const layer = layerNorm(2);
 * console.log(layer.apply(layer.init(0), tensor([[1, 3]])).toArray()); // → [[-0.999995, 0.999995]]
 */
export function layerNorm(features: number, options: NormOptions = {}): Layer<AffineParams> {
  requireCounts("layerNorm", { features });
  requireOptions("layerNorm", options, NORM_OPTIONS);
  return {
    init: () => initialAffine(features, options.dtype),
    apply: ({ scale, offset }, x) => {
      requireExtent("layerNorm", x, -1, ["features", features]);
      return layerNormOf(x, { scale, offset, eps: options.eps ?? 1e-5 });
    },
  };
}

/**
 * Division by the root mean square over the last axis, then scale.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { rmsNorm } from "tidemark/nn";
 *
 * const layer = rmsNorm(2);
 * console.log(layer.apply(layer.init(0), tensor([[3, 4]])).toArray()); // → [[0.848528, 1.13137]]
 */
export function rmsNorm(features: number, options: NormOptions = {}): Layer<ScaleParams> {
  requireCounts("rmsNorm", { features });
  requireOptions("rmsNorm", options, NORM_OPTIONS);
  return {
    init: () => ({ scale: ones()(0, [features], options.dtype) }),
    apply: ({ scale }, x) => {
      requireExtent("rmsNorm", x, -1, ["features", features]);
      return rmsNormOf(x, { scale, eps: options.eps ?? 1e-5 });
    },
  };
}

/**
 * Zero mean and unit variance over groups of channels of [batch, channels, …space], then scale and offset by channel.
 *
 * @example
 * import { ones } from "tidemark";
 * import { groupNorm } from "tidemark/nn";
 *
 * const layer = groupNorm(2, 4);
 * console.log(layer.apply(layer.init(0), ones([1, 4, 2, 2])).shape); // → [1, 4, 2, 2]
 */
export function groupNorm(groups: number, channels: number, options: NormOptions = {}): Layer<AffineParams> {
  requireCounts("groupNorm", { groups, channels });
  requireOptions("groupNorm", options, NORM_OPTIONS);
  if (channels % groups !== 0) {
    fail("InvalidArgument", `groupNorm: ${channels} channels in ${groups} groups`, "choose a divisor of the channels");
  }
  return {
    init: () => initialAffine(channels, options.dtype),
    apply: ({ scale, offset }, x) => {
      requireExtent("groupNorm", x, 1, ["channels", channels]);
      return groupNormOf(x, groups, { scale, offset, eps: options.eps ?? 1e-5 });
    },
  };
}

/**
 * Zero mean and unit variance of every channel of every example of [batch, channels, …space], then scale and offset by channel.
 *
 * @example
 * import { ones } from "tidemark";
 * import { instanceNorm } from "tidemark/nn";
 *
 * const layer = instanceNorm(3);
 * console.log(layer.apply(layer.init(0), ones([1, 3, 4, 4])).shape); // → [1, 3, 4, 4]
 */
export function instanceNorm(channels: number, options: NormOptions = {}): Layer<AffineParams> {
  requireCounts("instanceNorm", { channels });
  requireOptions("instanceNorm", options, NORM_OPTIONS);
  return {
    init: () => initialAffine(channels, options.dtype),
    apply: ({ scale, offset }, x) => {
      requireExtent("instanceNorm", x, 1, ["channels", channels]);
      return groupNormOf(x, channels, { scale, offset, eps: options.eps ?? 1e-5 });
    },
  };
}
