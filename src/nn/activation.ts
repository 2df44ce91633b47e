/** @file Layers without parameters: any function of one tensor, the usual activations, flattening, pooling, dropout. */
import * as activations from "../api/activations.ts";
import { full } from "../api/create.ts";
import { dropout as dropoutOf } from "../api/dropout.ts";
import { add, mul } from "../api/elementwise.ts";
import {
  erf,
  gelu as geluOf,
  relu as reluOf,
  type SoftplusOptions,
  sigmoid as sigmoidOf,
  silu as siluOf,
  softplus as softplusOf,
  tanh as tanhOf,
} from "../api/math.ts";
import { softmax as softmaxOf } from "../api/normalize.ts";
import { avgPool2d as avgPool2dOf, maxPool2d as maxPool2dOf, type PoolOptions } from "../api/pool.ts";
import { reshape } from "../api/shape.ts";
import type { PerAxis } from "../api/window.ts";
import { elementsOf, typeText } from "../ir/type.ts";
import { fail, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { APPLY_OPTIONS, type Layer, type NoParams, requireCounts, requireDrawKey, requireRate } from "./layer.ts";

/**
 * A layer from a function of a tensor.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { lambda } from "tidemark/nn";
 *
 * const cube = lambda((x) => x.pow(3));
 * console.log(cube.apply(cube.init(0), tensor([2])).toArray()); // [8]
 */
export function lambda(fn: (x: Tensor) => Tensor): Layer<NoParams> {
  requireFunction("lambda", "its argument", fn);
  return { init: () => ({}), apply: (_, x) => fn(x) };
}

/**
 * max(x, 0).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { relu } from "tidemark/nn";
 *
 * const layer = relu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 2])).toArray()); // → [0, 2]
 */
export function relu(): Layer<NoParams> {
  return lambda(reluOf);
}

/**
 * x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))) (D. Hendrycks, K. Gimpel, 2016), as GPT-2 has it.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { gelu } from "tidemark/nn";
 *
 * const layer = gelu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 0, 1])).toArray()); // → [-0.158808, 0, 0.841192]
 */
export function gelu(): Layer<NoParams> {
  return lambda(geluOf);
}

/**
 * x · Φ(x) with the normal distribution function Φ(x) = (1 + erf(x/√2)) / 2, which the other form is close to.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { geluExact } from "tidemark/nn";
 *
 * const layer = geluExact();
 * console.log(layer.apply(layer.init(0), tensor([-1, 0, 1])).toArray()); // → [-0.158655, 0, 0.841345]
 */
export function geluExact(): Layer<NoParams> {
  return lambda((x) => mul(mul(x, 0.5), add(erf(mul(x, Math.SQRT1_2)), 1)));
}

/**
 * x · sigmoid(x).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { silu } from "tidemark/nn";
 *
 * const layer = silu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 0, 1])).toArray()); // → [-0.268941, 0, 0.731059]
 */
export function silu(): Layer<NoParams> {
  return lambda(siluOf);
}

/**
 * The hyperbolic tangent.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { tanh } from "tidemark/nn";
 *
 * const layer = tanh();
 * console.log(layer.apply(layer.init(0), tensor([0, 1])).toArray()); // → [0, 0.761594]
 */
export function tanh(): Layer<NoParams> {
  return lambda(tanhOf);
}

/**
 * 1 / (1 + e⁻ˣ).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { sigmoid } from "tidemark/nn";
 *
 * const layer = sigmoid();
 * console.log(layer.apply(layer.init(0), tensor([-100, 0])).toArray()); // → [3.78351e-44, 0.5]
 */
export function sigmoid(): Layer<NoParams> {
  return lambda(sigmoidOf);
}

/**
 * log(1 + eˣ).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { softplus } from "tidemark/nn";
 *
 * const layer = softplus();
 * console.log(layer.apply(layer.init(0), tensor([0, 100])).toArray()); // → [0.693147, 100]
 */
export function softplus(options: SoftplusOptions = {}): Layer<NoParams> {
  return lambda((x) => softplusOf(x, options));
}

/**
 * x above zero, slope·x below.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { leakyRelu } from "tidemark/nn";
 *
 * const layer = leakyRelu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 2])).toArray()); // → [-0.01, 2]
 */
export function leakyRelu(slope = 0.01): Layer<NoParams> {
  return lambda((x) => activations.leakyRelu(x, slope));
}

/**
 * x above zero, alpha·(eˣ - 1) below.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { elu } from "tidemark/nn";
 *
 * const layer = elu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 2])).toArray()); // → [-0.632121, 2]
 */
export function elu(alpha = 1): Layer<NoParams> {
  return lambda((x) => activations.elu(x, alpha));
}

/**
 * 1.0507·elu(x, 1.6733).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { selu } from "tidemark/nn";
 *
 * const layer = selu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 2])).toArray()); // → [-1.11133, 2.1014]
 */
export function selu(): Layer<NoParams> {
  return lambda(activations.selu);
}

/**
 * x above zero, alpha·(e^(x/alpha) - 1) below.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { celu } from "tidemark/nn";
 *
 * const layer = celu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 2])).toArray()); // → [-0.632121, 2]
 */
export function celu(alpha = 1): Layer<NoParams> {
  return lambda((x) => activations.celu(x, alpha));
}

/**
 * min(max(x, 0), 6).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { relu6 } from "tidemark/nn";
 *
 * const layer = relu6();
 * console.log(layer.apply(layer.init(0), tensor([-1, 2, 8])).toArray()); // → [0, 2, 6]
 */
export function relu6(): Layer<NoParams> {
  return lambda(activations.relu6);
}

/**
 * x between lo and hi, else the nearer of them.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { hardTanh } from "tidemark/nn";
 *
 * const layer = hardTanh();
 * console.log(layer.apply(layer.init(0), tensor([-3, 0.5, 3])).toArray()); // → [-1, 0.5, 1]
 */
export function hardTanh(lo = -1, hi = 1): Layer<NoParams> {
  return lambda((x) => activations.hardTanh(x, lo, hi));
}

/**
 * x/6 + 1/2, kept between 0 and 1.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { hardSigmoid } from "tidemark/nn";
 *
 * const layer = hardSigmoid();
 * console.log(layer.apply(layer.init(0), tensor([-3, 0, 3])).toArray()); // → [0, 0.5, 1]
 */
export function hardSigmoid(): Layer<NoParams> {
  return lambda(activations.hardSigmoid);
}

/**
 * x·hardSigmoid(x).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { hardSwish } from "tidemark/nn";
 *
 * const layer = hardSwish();
 * console.log(layer.apply(layer.init(0), tensor([-3, 0, 3])).toArray()); // → [0, 0, 3]
 */
export function hardSwish(): Layer<NoParams> {
  return lambda(activations.hardSwish);
}

/**
 * x·tanh(log(1 + eˣ)).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { mish } from "tidemark/nn";
 *
 * const layer = mish();
 * console.log(layer.apply(layer.init(0), tensor([-1, 0, 1])).toArray()); // → [-0.303401, 0, 0.865098]
 */
export function mish(): Layer<NoParams> {
  return lambda(activations.mish);
}

/**
 * x / (1 + |x|).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { softsign } from "tidemark/nn";
 *
 * const layer = softsign();
 * console.log(layer.apply(layer.init(0), tensor([-1, 3])).toArray()); // → [-0.5, 0.75]
 */
export function softsign(): Layer<NoParams> {
  return lambda(activations.softsign);
}

/**
 * log(sigmoid(x)).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { logSigmoid } from "tidemark/nn";
 *
 * const layer = logSigmoid();
 * console.log(layer.apply(layer.init(0), tensor([-100, 0])).toArray()); // → [-100, -0.693147]
 */
export function logSigmoid(): Layer<NoParams> {
  return lambda(activations.logSigmoid);
}

/**
 * 0 where |x| is not above a threshold, else x.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { hardShrink } from "tidemark/nn";
 *
 * const layer = hardShrink();
 * console.log(layer.apply(layer.init(0), tensor([-1, 0.2, 1])).toArray()); // → [-1, 0, 1]
 */
export function hardShrink(threshold = 0.5): Layer<NoParams> {
  return lambda((x) => activations.hardShrink(x, threshold));
}

/**
 * x moved towards zero by a threshold, and not beyond it.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { softShrink } from "tidemark/nn";
 *
 * const layer = softShrink();
 * console.log(layer.apply(layer.init(0), tensor([-1, 0.2, 1])).toArray()); // → [-0.5, 0, 0.5]
 */
export function softShrink(threshold = 0.5): Layer<NoParams> {
  return lambda((x) => activations.softShrink(x, threshold));
}

/**
 * x - tanh(x).
 *
 * @example
 * import { tensor } from "tidemark";
 * import { tanhShrink } from "tidemark/nn";
 *
 * const layer = tanhShrink();
 * console.log(layer.apply(layer.init(0), tensor([0, 1])).toArray()); // → [0, 0.238406]
 */
export function tanhShrink(): Layer<NoParams> {
  return lambda(activations.tanhShrink);
}

/**
 * The first half of an axis, the last by default, times the sigmoid of the second.
 *
 * @example
 * import { ones } from "tidemark";
 * import { glu } from "tidemark/nn";
 *
 * const layer = glu();
 * console.log(layer.apply(layer.init(0), ones([2, 6])).shape); // → [2, 3]
 */
export function glu(axis = -1): Layer<NoParams> {
  return lambda((x) => activations.glu(x, axis));
}

/** Parameters of {@link prelu}. */
export interface PreluParams {
  readonly slope: Tensor;
}

/**
 * x above zero, slope·x below, with one learned slope or one for each channel; they start at 0.25.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { prelu } from "tidemark/nn";
 *
 * const layer = prelu();
 * console.log(layer.apply(layer.init(0), tensor([-1, 2])).toArray()); // → [-0.25, 2]
 */
export function prelu(channels = 1, initial = 0.25): Layer<PreluParams> {
  requireCounts("prelu", { channels });
  return {
    init: () => ({ slope: full([channels], initial) }),
    apply: ({ slope }, x) => activations.prelu(x, slope),
  };
}

/**
 * eˣ / Σ eˣ along an axis, the last by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { softmax } from "tidemark/nn";
 *
 * const layer = softmax();
 * console.log(layer.apply(layer.init(0), tensor([[1, 1]])).toArray()); // → [[0.5, 0.5]]
 */
export function softmax(axis = -1): Layer<NoParams> {
  return lambda((x) => softmaxOf(x, axis));
}

/**
 * [batch, …] → [batch, features]; `from` is the first axis that is flattened.
 *
 * @example
 * import { ones } from "tidemark";
 * import { flatten } from "tidemark/nn";
 *
 * const layer = flatten();
 * console.log(layer.apply(layer.init(0), ones([2, 3, 4, 4])).shape); // → [2, 48]
 */
export function flatten(from = 1): Layer<NoParams> {
  return lambda((x) => {
    if (!(Number.isInteger(from) && from >= 0 && from <= x.rank)) {
      fail("ShapeMismatch", `flatten: ${typeText(x)} has no axis ${from}`, "flatten from an axis that the input has");
    }
    return reshape(x, [...x.shape.slice(0, from), elementsOf(x.shape.slice(from))]);
  });
}

/**
 * The largest of each window over the last two axes.
 *
 * @example
 * import { ones } from "tidemark";
 * import { maxPool2d } from "tidemark/nn";
 *
 * const layer = maxPool2d(2);
 * console.log(layer.apply(layer.init(0), ones([1, 3, 4, 4])).shape); // → [1, 3, 2, 2]
 */
export function maxPool2d(window: PerAxis, options: PoolOptions = {}): Layer<NoParams> {
  return lambda((x) => maxPool2dOf(x, window, options));
}

/**
 * The mean of each window over the last two axes.
 *
 * @example
 * import { ones } from "tidemark";
 * import { avgPool2d } from "tidemark/nn";
 *
 * const layer = avgPool2d(2);
 * console.log(layer.apply(layer.init(0), ones([1, 3, 4, 4])).shape); // → [1, 3, 2, 2]
 */
export function avgPool2d(window: PerAxis, options: PoolOptions = {}): Layer<NoParams> {
  return lambda((x) => avgPool2dOf(x, window, options));
}

/** A layer that draws from a key while training, and is the identity otherwise. */
function droppingLayer(name: string, rate: number, drop: (x: Tensor, key: Tensor) => Tensor): Layer<NoParams> {
  requireRate(name, rate);
  return {
    random: rate > 0,
    init: () => ({}),
    apply: (_, x, options = {}) => {
      requireOptions(name, options, APPLY_OPTIONS);
      const { train = false, key } = options;
      if (!train || rate === 0) return x;
      return drop(x, requireDrawKey(name, key));
    },
  };
}

/**
 * While training, sets elements to zero at a rate and scales the others up; needs a key then. Otherwise the identity.
 *
 * @example
 * import { ones, random } from "tidemark";
 * import { dropout } from "tidemark/nn";
 *
 * const layer = dropout(0.5);
 * const x = ones([8]);
 * console.log(layer.apply(layer.init(0), x).toArray()); // → [1, 1, 1, 1, 1, 1, 1, 1]
 * console.log(layer.apply(layer.init(0), x, { key: random.key(1), train: true }).toArray()); // → [2, 2, 2, 0, 0, 2, 0, 2]
 */
export function dropout(rate: number): Layer<NoParams> {
  return droppingLayer("dropout", rate, (x, key) => dropoutOf(x, rate, key));
}

/**
 * Dropout of whole channels of [batch, channels, …space]: all elements of a channel of an example are dropped, or none.
 *
 * @example
 * import { ones, random } from "tidemark";
 * import { channelDropout } from "tidemark/nn";
 *
 * const layer = channelDropout(0.5);
 * const x = ones([1, 4, 2, 2]);
 * console.log(layer.apply(layer.init(0), x, { key: random.key(0), train: true }).shape); // → [1, 4, 2, 2]
 */
export function channelDropout(rate: number): Layer<NoParams> {
  return droppingLayer("channelDropout", rate, (x, key) => {
    if (x.rank < 2) {
      fail("ShapeMismatch", `channelDropout: takes [batch, channels, …space], got ${typeText(x)}`, "use dropout");
    }
    const mask = full([...x.shape.slice(0, 2), ...x.shape.slice(2).map(() => 1)], 1, x.dtype);
    return mul(x, dropoutOf(mask, rate, key));
  });
}
