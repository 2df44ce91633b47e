/**
 * @file Batch normalisation (S. Ioffe, C. Szegedy, ICML 2015): each channel to zero mean and unit variance over the batch.
 * For use outside of training it keeps running averages of both, which are state: `apply` takes them and gives back the
 * next ones.
 *
 *   running = (1 - momentum) · running + momentum · batch        the variance with divisor n - 1
 */
import { add, mul, stopGradient } from "../api/elementwise.ts";
import { batchNorm as batchNormOf } from "../api/normalize.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { ones, zeros } from "./distributions.ts";
import { APPLY_OPTIONS, requireCounts, requireExtent, type StatefulLayer } from "./layer.ts";
import { type AffineParams, initialAffine, NORM_OPTIONS, type NormOptions } from "./norm.ts";

/** Running statistics of {@link batchNorm}. */
export interface BatchNormState {
  readonly mean: Tensor;
  readonly variance: Tensor;
}

/** Options of {@link batchNorm}. */
export interface BatchNormLayerOptions extends NormOptions {
  /** The weight of the new batch in the running averages; 0.1 by default. */
  readonly momentum?: number;
}

const OPTIONS: OptionKinds<BatchNormLayerOptions> = { ...NORM_OPTIONS, momentum: "a number" };

/**
 * Batch normalisation of [batch, channels, …space].
 *
 * @example
 * import { random } from "tidemark";
 * import { batchNorm } from "tidemark/nn";
 *
 * const layer = batchNorm(3);
 * const x = random.normal(random.key(0), [16, 3]);
 * const [y, state] = layer.apply(layer.init(0), layer.initState(), x, { train: true });
 * console.log(y.shape, state.mean.shape); // [16, 3] [3]
 */
export function batchNorm(
  channels: number,
  options: BatchNormLayerOptions = {},
): StatefulLayer<AffineParams, BatchNormState> {
  const { eps = 1e-5, momentum = 0.1, dtype } = options;
  requireCounts("batchNorm", { channels });
  requireOptions("batchNorm", options, OPTIONS);
  if (!(momentum >= 0 && momentum <= 1)) {
    fail("InvalidArgument", `batchNorm: momentum ${momentum}`, "a momentum is between 0 and 1");
  }
  const blend = (running: Tensor, batch: Tensor): Tensor =>
    add(mul(running, 1 - momentum), mul(stopGradient(batch), momentum));
  return {
    init: () => initialAffine(channels, dtype),
    initState: () => ({ mean: zeros()(0, [channels], dtype), variance: ones()(0, [channels], dtype) }),
    apply: (params, state, x, given = {}) => {
      requireOptions("batchNorm", given, APPLY_OPTIONS);
      const { train = false } = given;
      requireExtent("batchNorm", x, 1, ["channels", channels]);
      if (!train) return [batchNormOf(x, { ...params, ...state, eps }).y, state];
      const n = x.elements / channels;
      if (n < 2)
        fail("ShapeMismatch", "batchNorm: one value for each channel has no variance", "train on larger batches");
      const { y, mean, variance } = batchNormOf(x, { ...params, eps });
      return [y, { mean: blend(state.mean, mean), variance: blend(state.variance, mul(variance, n / (n - 1))) }];
    },
  };
}
