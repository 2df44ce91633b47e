/** @file Normalisation: to probabilities, and to zero mean and unit variance over various groups of axes. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { type FloatType, storedNumber } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { customJvp } from "./custom.ts";
import { add, mul, rsqrt, square, sub } from "./elementwise.ts";
import { inFull, likeGiven, wide, wideOrNone } from "./full-precision.ts";
import { logProbabilities, probabilities } from "./log-sum.ts";
import { type Axes, normalAxes, normalAxis, requireFloat } from "./operands.ts";
import { mean, variance } from "./reduce.ts";
import { reshape } from "./shape.ts";

/**
 * eˣ / Σ eˣ along an axis, the last by default.
 *
 * @example
 * import { softmax, tensor } from "tidemark";
 *
 * console.log(softmax(tensor([0, 0])).toArray()); // [0.5, 0.5]
 */
export function softmax(x: Tensor, axis = -1): Tensor {
  requireFloat("softmax", x);
  const along = normalAxis("softmax", axis, x);
  return asFunction("softmax", () => inFull(x, (v) => probabilities(v, along)));
}

/**
 * log softmax along an axis, the last by default.
 *
 * @example
 * import { logSoftmax, tensor } from "tidemark";
 *
 * console.log(logSoftmax(tensor([1, 1])).toArray()); // → [-0.693147, -0.693147]
 */
export function logSoftmax(x: Tensor, axis = -1): Tensor {
  requireFloat("logSoftmax", x);
  const along = normalAxis("logSoftmax", axis, x);
  return asFunction("logSoftmax", () => inFull(x, (v) => logProbabilities(v, along)));
}

/** Scale and offset that follow a normalisation, and what keeps its divisor from zero. */
export interface AffineOptions {
  readonly scale?: Tensor;
  readonly offset?: Tensor;
  readonly eps?: number;
}

const AFFINE: OptionKinds<AffineOptions> = { scale: "a tensor", offset: "a tensor", eps: "a number" };

function affine(x: Tensor, scale: Tensor | undefined, offset: Tensor | undefined): Tensor {
  const scaled = scale ? mul(x, scale) : x;
  return offset ? add(scaled, offset) : scaled;
}

/** The least power of two that is normal, where squares of ordinary size may overflow; and how far below eps they have to be right. */
const LEAST_NORMAL: Readonly<Record<FloatType, number | null>> = { f32: -126, f64: null, bf16: -126, f16: null };
const BELOW_EPS = 28;

/**
 * The power of two by which x is multiplied before it is squared, so that squares of large numbers do not overflow: as small as
 * can be without losing squares that matter beside eps. It changes no bit of what stays in range, and costs no pass over x.
 */
function squareScale(dtype: FloatType, eps: number, count: number): number {
  const least = LEAST_NORMAL[dtype];
  // Of a number that is traced nothing is known here.
  if (least === null || typeof eps !== "number" || eps <= 0) return 1;
  const exponent = (least + BELOW_EPS - Math.log2(eps) - Math.log2(Math.max(1, count))) / 2;
  return Math.min(1, 2 ** Math.floor(exponent));
}

/** x scaled to a mean square of one, and the scale. */
function unitPower(x: Tensor, axes: Axes, eps: number): readonly [unit: Tensor, scale: Tensor] {
  const count = normalAxes("norm", axes, x).reduce((n, axis) => n * at(x.shape, axis), 1);
  const s = squareScale(requireFloat("norm", x), eps, count);
  const power = mean(square(mul(x, s)), axes, { keepDims: true });
  const scale = mul(rsqrt(add(power, s === 1 ? eps : storedNumber(x.dtype, eps) * s * s)), s);
  return [mul(x, scale), scale];
}

/**
 * x (centred or not) scaled to a mean square of one. With u the result and r the scale the derivative is
 *
 *   t ↦ r · (t' - u · mean(u · t'))      t' = t - mean t if centred
 *
 * which needs u and r; what led there is not kept for the backward pass.
 */
function scaledToUnit(x: Tensor, axes: Axes, eps: number, centred: boolean): Tensor {
  const centre = (v: Tensor): Tensor => (centred ? sub(v, mean(v, axes, { keepDims: true })) : v);
  const normalized = customJvp(
    (v: Tensor) => unitPower(centre(v), axes, eps)[0],
    ([v], [t]) => {
      const [unit, scale] = unitPower(centre(v), axes, eps);
      const moved = centre(t);
      return mul(scale, sub(moved, mul(unit, mean(mul(unit, moved), axes, { keepDims: true }))));
    },
  );
  return normalized(x);
}

const standardized = (x: Tensor, axes: Axes, eps: number): Tensor => scaledToUnit(x, axes, eps, true);

/** Options of {@link layerNorm} and {@link rmsNorm}. */
export interface LayerNormOptions extends AffineOptions {
  /** The axes to normalise over; the last by default. */
  readonly axes?: Axes;
}

const LAYER_NORM: OptionKinds<LayerNormOptions> = { ...AFFINE, axes: "anything" };

/**
 * Zero mean and unit variance over the last axis, then scale and offset.
 *
 * @example
 * import { layerNorm, ones, tensor } from "tidemark";
 *
 * const y = layerNorm(tensor([[1, 3]]), { scale: ones([2]) });
 * console.log(y.mean().item()); // 0
 */
export function layerNorm(x: Tensor, options: LayerNormOptions = {}): Tensor {
  requireFloat("layerNorm", x);
  requireOptions("layerNorm", options, LAYER_NORM);
  const { axes = -1, eps = 1e-5, scale, offset } = options;
  return asFunction("layerNorm", () =>
    inFull(x, (v) => affine(standardized(v, axes, eps), wideOrNone(scale), wideOrNone(offset))),
  );
}

/**
 * x divided by its root mean square over the last axis, then scaled.
 *
 * @example
 * import { rmsNorm, tensor } from "tidemark";
 *
 * console.log(rmsNorm(tensor([3, 4])).toArray()); // → [0.848528, 1.13137]
 */
export function rmsNorm(x: Tensor, options: LayerNormOptions = {}): Tensor {
  requireFloat("rmsNorm", x);
  requireOptions("rmsNorm", options, LAYER_NORM);
  const { axes = -1, eps = 1e-5, scale, offset } = options;
  return asFunction("rmsNorm", () =>
    inFull(x, (v) => affine(scaledToUnit(v, axes, eps, false), wideOrNone(scale), wideOrNone(offset))),
  );
}

/** A vector over channels, shaped to meet [batch, channels, …space]. */
const perChannel = (v: Tensor, x: Tensor): Tensor => reshape(v, [-1, ...x.shape.slice(2).map(() => 1)]);

const perChannelOrNone = (v: Tensor | undefined, x: Tensor): Tensor | undefined => v && perChannel(wide(v), x);

/** Options of {@link batchNorm}. */
export interface BatchNormOptions extends AffineOptions {
  /** Statistics to use in place of the batch's own, one number for each channel: for inference. */
  readonly mean?: Tensor;
  readonly variance?: Tensor;
}

/** What {@link batchNorm} returns. */
export interface BatchNormResult {
  readonly y: Tensor;
  /** Statistics of this batch, for running averages. */
  readonly mean: Tensor;
  readonly variance: Tensor;
}

const BATCH_NORM: OptionKinds<BatchNormOptions> = { ...AFFINE, mean: "a tensor", variance: "a tensor" };

/**
 * Zero mean and unit variance for each channel of [batch, channels, …space] over all other axes.
 *
 * @example
 * import { batchNorm, random } from "tidemark";
 *
 * const x = random.normal(random.key(0), [8, 3, 4, 4]);
 * const { y, mean } = batchNorm(x);
 * console.log(y.shape, mean.shape); // → [8, 3, 4, 4] [3]
 */
export function batchNorm(images: Tensor, options: BatchNormOptions = {}): BatchNormResult {
  requireFloat("batchNorm", images);
  requireOptions("batchNorm", options, BATCH_NORM);
  if ((options.mean === undefined) !== (options.variance === undefined)) {
    const [given, missing] = options.mean === undefined ? ["variance", "mean"] : ["mean", "variance"];
    const help = "give both, { mean, variance }, or neither: then the statistics of the batch are used";
    fail("InvalidArgument", `batchNorm: got ${given} without ${missing}`, help);
  }
  if (images.rank < 2)
    fail(
      "ShapeMismatch",
      `batchNorm: takes [batch, channels, …], got ${typeText(images)}`,
      "add a batch axis: expandDims(x, 0)",
    );
  const axes = images.shape.map((_, axis) => axis).filter((axis) => axis !== 1);
  return asFunction("batchNorm", () => {
    const x = wide(images);
    const eps = options.eps ?? 1e-5;
    // computed when asked for: training without running averages does not read them
    const stats = {
      get mean(): Tensor {
        return wideOrNone(options.mean) ?? mean(x, axes);
      },
      get variance(): Tensor {
        return wideOrNone(options.variance) ?? variance(x, axes);
      },
    };
    const given = options.mean !== undefined;
    const scaledBy = (r: Tensor): Tensor => mul(sub(x, perChannel(stats.mean, x)), perChannel(r, x));
    const y = given ? scaledBy(rsqrt(add(stats.variance, eps))) : standardized(x, axes, eps);
    const scaled = affine(y, perChannelOrNone(options.scale, x), perChannelOrNone(options.offset, x));
    return Object.assign(stats, { y: likeGiven(scaled, images) });
  });
}

/**
 * Zero mean and unit variance over groups of channels of [batch, channels, …space], then scale and offset by channel.
 *
 * @example
 * import { groupNorm, tensor } from "tidemark";
 *
 * console.log(groupNorm(tensor([[1, 3, 10, 30]]), 2).toArray()); // → [[-0.999995, 0.999995, -1, 1]]
 */
export function groupNorm(x: Tensor, groups: number, options: AffineOptions = {}): Tensor {
  requireFloat("groupNorm", x);
  requireOptions("groupNorm", options, AFFINE);
  if (x.rank < 2 || !Number.isInteger(groups) || groups < 1 || at(x.shape, 1) % groups !== 0) {
    fail(
      "ShapeMismatch",
      `groupNorm: ${typeText(x)} does not have channels in ${groups} equal groups`,
      "choose a divisor of the channels",
    );
  }
  const normalized = (v: Tensor): Tensor => {
    const grouped = reshape(v, [at(v.shape, 0), groups, -1]);
    const y = reshape(standardized(grouped, -1, options.eps ?? 1e-5), v.shape);
    return affine(y, perChannelOrNone(options.scale, v), perChannelOrNone(options.offset, v));
  };
  return asFunction("groupNorm", () => inFull(x, normalized));
}
