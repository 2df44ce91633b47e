/**
 * @file Initial values of parameters. The scaled kinds keep the variance of what flows through a layer near one, forward
 * (fan in), backward (fan out) or between the two:
 *
 *   Glorot: Var w = 2 / (fan in + fan out)      X. Glorot, Y. Bengio, AISTATS 2010
 *   He:     Var w = 2 / fan in                  K. He and others, ICCV 2015; the 2 makes up for relu
 *
 * Fans follow from the shape: weights of `linear` are [in, out], of convolutions [out, in, …window]; give fans
 * explicitly for other layouts.
 */

import { at } from "../base/invariant.ts";
import { normalFromBits, type Significand, threefry, uniformFromBits, type Words } from "../base/random.ts";
import { elementsOf, type Shape, shapeText } from "../ir/type.ts";
import { type FloatType, fillNumbers, significandBits } from "../kernel/dtype.ts";
import { fail, requireShape } from "../trace/arguments.ts";
import { LazyStorage, type TypedArray } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { DRAW, type Key, wordsOf } from "./key.ts";

/** Element types that parameters may have. */
export type ParamDType = FloatType;

/** Makes a parameter: the same key gives the same values. */
export type Initializer = (key: Key, shape: Shape, dtype?: ParamDType) => Tensor;

/**
 * How many inputs and outputs a weight connects.
 *
 * @example
 * import { type Fans, initializers } from "tidemark/nn";
 * import { random } from "tidemark";
 *
 * const fans: Fans = { fanIn: 100, fanOut: 50 };
 * console.log(fans.fanIn + fans.fanOut, initializers.heNormal()(random.key(0), [100, 50]).shape); // → 150 [100, 50]
 */
export interface Fans {
  readonly fanIn: number;
  readonly fanOut: number;
}

/** A concrete parameter that is drawn where it is needed, by a function that writes all of its numbers. @internal */
export function initial(shape: Shape, dtype: ParamDType, fill: (into: TypedArray) => void): Tensor {
  requireShape("an initializer", shape);
  return new Tensor(new LazyStorage(dtype, [...shape], (into) => fillNumbers(dtype, into, fill)));
}

/** The same from a function of the position. */
function drawn(shape: Shape, dtype: ParamDType, element: (index: number) => number): Tensor {
  return initial(shape, dtype, (into) => {
    for (let i = 0; i < into.length; i++) into[i] = element(i);
  });
}

/** The value throughout. */
export function constant(value: number): Initializer {
  return (_key, shape, dtype = "f32") => initial(shape, dtype, (into) => into.fill(value));
}

/** All zero. */
export function zeros(): Initializer {
  return constant(0);
}

/** All one. */
export function ones(): Initializer {
  return constant(1);
}

/** Uniform in [lo, hi); between -0.05 and 0.05 by default. */
export function uniform(lo = -0.05, hi = 0.05): Initializer {
  return (key, shape, dtype = "f32") => {
    const [words, bits] = [wordsOf(key), significandBits(dtype)];
    return drawn(shape, dtype, (i) => lo + (hi - lo) * uniformFromBits(threefry(words, [i, DRAW]), bits));
  };
}

/** Normal; deviation 0.02 by default. */
export function normal(std = 0.02, mean = 0): Initializer {
  return (key, shape, dtype = "f32") => {
    const [words, bits] = [wordsOf(key), significandBits(dtype)];
    return drawn(shape, dtype, (i) => mean + std * normalFromBits(threefry(words, [i, DRAW]), bits));
  };
}

/** Streams of further attempts at one element, clear of those that keys are used with elsewhere. */
const AGAIN = 16;

/** Normal, but drawn again while further than `limit` deviations from the mean. */
export function truncatedNormal(std = 0.02, mean = 0, limit = 2): Initializer {
  if (!(limit >= 0.1)) {
    const summary = `truncatedNormal: limit ${limit} leaves next to nothing to draw`;
    fail("InvalidArgument", summary, "give the limit in deviations, at least 0.1");
  }
  const within = (words: Words, i: number, bits: Significand): number => {
    for (let attempt = 0; ; attempt++) {
      const stream = attempt === 0 ? DRAW : AGAIN + attempt;
      const z = normalFromBits(threefry(words, [i, stream]), bits);
      if (Math.abs(z) <= limit) return z;
    }
  };
  return (key, shape, dtype = "f32") => {
    const [words, bits] = [wordsOf(key), significandBits(dtype)];
    return drawn(shape, dtype, (i) => mean + std * within(words, i, bits));
  };
}

/** Inputs and outputs of a weight: [in, out], or [out, in, …window]; a vector counts for both. */
export function fansOf(shape: Shape): Fans {
  if (shape.length === 0) {
    const help = "use constant, uniform or normal for scalars";
    fail("ShapeMismatch", `a scalar ${shapeText(shape)} has no fans to scale by`, help);
  }
  if (shape.length === 1) return { fanIn: at(shape, 0), fanOut: at(shape, 0) };
  if (shape.length === 2) return { fanIn: at(shape, 0), fanOut: at(shape, 1) };
  const window = elementsOf(shape.slice(2));
  return { fanIn: at(shape, 1) * window, fanOut: at(shape, 0) * window };
}

type Draw = (std: number) => Initializer;
/** A uniform distribution with deviation s has the half width √3·s. */
const uniformWith: Draw = (std) => uniform(-Math.sqrt(3) * std, Math.sqrt(3) * std);
const normalWith: Draw = (std) => normal(std);

function scaled(draw: Draw, std: (fans: Fans) => number, fans: Fans | undefined): Initializer {
  return (key, shape, dtype) => draw(std(fans ?? fansOf(shape)))(key, shape, dtype);
}

const glorotStd = ({ fanIn, fanOut }: Fans): number => Math.sqrt(2 / (fanIn + fanOut));
const heStd = ({ fanIn }: Fans): number => Math.sqrt(2 / fanIn);

/** Uniform with variance 2 / (fan in + fan out): for tanh, sigmoid and no activation. */
export function glorotUniform(fans?: Fans): Initializer {
  return scaled(uniformWith, glorotStd, fans);
}

/** Normal with variance 2 / (fan in + fan out). */
export function glorotNormal(fans?: Fans): Initializer {
  return scaled(normalWith, glorotStd, fans);
}

/** Uniform with variance 2 / fan in: for relu. */
export function heUniform(fans?: Fans): Initializer {
  return scaled(uniformWith, heStd, fans);
}

/** Normal with variance 2 / fan in. */
export function heNormal(fans?: Fans): Initializer {
  return scaled(normalWith, heStd, fans);
}

/** Uniform in ±√(1 / fan in): variance 1 / (3 · fan in), what PyTorch's linear and convolution layers start from. */
export function fanInUniform(fans?: Fans): Initializer {
  return scaled(uniformWith, ({ fanIn }) => Math.sqrt(1 / (3 * fanIn)), fans);
}
