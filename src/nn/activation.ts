/** @file Layers without parameters: any function of one tensor, the usual activations, flattening, pooling, dropout. */
import {
  add,
  erf,
  gelu as geluOf,
  mul,
  relu as reluOf,
  sigmoid as sigmoidOf,
  silu as siluOf,
  tanh as tanhOf,
} from "../api/elementwise.ts";
import { softmax as softmaxOf } from "../api/normalize.ts";
import { avgPool2d as avgPool2dOf, maxPool2d as maxPool2dOf, type PoolOptions } from "../api/pool.ts";
import { dropout as dropoutOf } from "../api/random.ts";
import { reshape } from "../api/shape.ts";
import type { PerAxis } from "../api/window.ts";
import { elementsOf, typeText } from "../ir/type.ts";
import { fail, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { APPLY_OPTIONS, type Layer, type NoParams } from "./layer.ts";

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

/** max(x, 0). */
export function relu(): Layer<NoParams> {
  return lambda(reluOf);
}

/** x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))) (D. Hendrycks, K. Gimpel, 2016), as GPT-2 has it. */
export function gelu(): Layer<NoParams> {
  return lambda(geluOf);
}

/** x · Φ(x) with the normal distribution function Φ(x) = (1 + erf(x/√2)) / 2, which the other form is close to. */
export function geluExact(): Layer<NoParams> {
  return lambda((x) => mul(mul(x, 0.5), add(erf(mul(x, Math.SQRT1_2)), 1)));
}

/** x · sigmoid(x). */
export function silu(): Layer<NoParams> {
  return lambda(siluOf);
}

export function tanh(): Layer<NoParams> {
  return lambda(tanhOf);
}

export function sigmoid(): Layer<NoParams> {
  return lambda(sigmoidOf);
}

/** eˣ / Σ eˣ along an axis, the last by default. */
export function softmax(axis = -1): Layer<NoParams> {
  return lambda((x) => softmaxOf(x, axis));
}

/** [batch, …] → [batch, features]; `from` is the first axis that is flattened. */
export function flatten(from = 1): Layer<NoParams> {
  return lambda((x) => {
    if (!(Number.isInteger(from) && from >= 0 && from <= x.rank)) {
      fail("ShapeMismatch", `flatten: ${typeText(x)} has no axis ${from}`, "flatten from an axis that the input has");
    }
    return reshape(x, [...x.shape.slice(0, from), elementsOf(x.shape.slice(from))]);
  });
}

/** The largest of each window over the last two axes. */
export function maxPool2d(window: PerAxis, options: PoolOptions = {}): Layer<NoParams> {
  return lambda((x) => maxPool2dOf(x, window, options));
}

/** The mean of each window over the last two axes. */
export function avgPool2d(window: PerAxis, options: PoolOptions = {}): Layer<NoParams> {
  return lambda((x) => avgPool2dOf(x, window, options));
}

/** While training, sets elements to zero at a rate and scales the others up; needs a key then. Otherwise the identity. */
export function dropout(rate: number): Layer<NoParams> {
  if (!(typeof rate === "number" && rate >= 0 && rate < 1)) {
    fail("InvalidArgument", `dropout: rate ${String(rate)}`, "a rate is at least 0 and below 1");
  }
  return {
    random: rate > 0,
    init: () => ({}),
    apply: (_, x, options = {}) => {
      requireOptions("dropout", options, APPLY_OPTIONS);
      const { train = false, key } = options;
      if (!train || rate === 0) return x;
      if (!key) {
        fail(
          "InvalidArgument",
          "dropout: training draws random numbers, and there is no key to draw them from",
          "pass { train: true, key: random.foldIn(key, step) } to apply",
        );
      }
      return dropoutOf(x, rate, key);
    },
  };
}
