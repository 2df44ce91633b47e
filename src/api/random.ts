/**
 * @file Random tensors. A key is a tensor of two words, and what is drawn is a function of the key: the same key gives the
 * same numbers. Draw with fresh keys by splitting. Programs keep keys, not masks: what is needed again is drawn again.
 */

import type { Shape } from "../ir/type.ts";
import type { FloatType } from "../kernel/dtype.ts";
import * as ops from "../ops/random.ts";
import { describe, fail, type OptionKinds, requireOptions, requireShape, requireTensor } from "../trace/arguments.ts";
import { tensor } from "../trace/literal.ts";
import { numberOf, Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp, ownCopy } from "./apply.ts";
import { add, minimum, mul, where } from "./elementwise.ts";
import { concat } from "./join.ts";
import { constantOf } from "./operands.ts";
import { expandDims, slice } from "./shape.ts";

/** Uses of one key that must not see each other's numbers. */
const STREAM = { draw: 0, split: 1, fold: 2 } as const;

/** A key from a seed: a whole number up to 2⁵³. */
function key(seed: number): Tensor {
  if (!Number.isSafeInteger(seed))
    fail("InvalidArgument", `random.key: seed ${describe(seed)}`, "a seed is a whole number up to 2^53");
  return tensor(new Int32Array([Math.floor(seed / 2 ** 32) | 0, seed | 0]));
}

function requireKey(name: string, from: unknown): asserts from is Tensor {
  requireTensor(name, "the key", from, `make one: random.key(${typeof from === "number" ? from : 0})`);
}

/** N tensors: a tuple when N is known to the compiler. */
export type Tensors<N extends number, A extends readonly Tensor[] = readonly []> = number extends N
  ? readonly Tensor[]
  : A["length"] extends N
    ? A
    : Tensors<N, readonly [...A, Tensor]>;

/** Independent keys from one, which should not be used again. */
function split<N extends number = 2>(from: Tensor, count?: N): Tensors<N> {
  const n = count ?? 2;
  requireKey("random.split", from);
  requireShape("random.split", [n]);
  const bits = applyOp(ops.randomBits, [from], { shape: [n, 2], stream: STREAM.split });
  return Array.from({ length: n }, (_, i) => slice(bits, [i])) as readonly Tensor[] as Tensors<N>;
}

/** A key for each number, from one key: for step numbers and the like. */
function foldIn(from: Tensor, data: number | Tensor): Tensor {
  requireKey("random.foldIn", from);
  const isTensor = data instanceof Tensor && !numberOf(data);
  const number = isTensor ? data : constantOf("random.foldIn", data, "i32", []);
  const words = concat([constantOf("random.foldIn", 0, "i32", [1]), expandDims(number, 0)]);
  return applyOp(ops.randomBits, [add(from, words)], { shape: [2], stream: STREAM.fold });
}

export interface DrawOptions {
  readonly dtype?: FloatType;
}

interface UniformOptions extends DrawOptions {
  readonly lo?: number;
  readonly hi?: number;
}

interface NormalOptions extends DrawOptions {
  readonly mean?: number;
  readonly std?: number;
}

const UNIFORM: OptionKinds<UniformOptions> = { dtype: "a float type", lo: "a number", hi: "a number" };
const NORMAL: OptionKinds<NormalOptions> = { dtype: "a float type", mean: "a number", std: "a number" };

/** The element type by its name is short for the options with it. */
const optionsOf = <T extends DrawOptions>(given: T | FloatType): T =>
  (typeof given === "string" ? { dtype: given } : given) as T;

/** What all draws take. */
function requireDraw(name: string, from: unknown, shape: Shape): void {
  requireKey(name, from);
  requireShape(name, shape);
}

/** The largest number of an element type below x; numbers of one sign are ordered like their bits. */
const BELOW: Readonly<Record<FloatType, (x: number) => number>> = {
  f32(x) {
    if (x === 0) return -(2 ** -149);
    const view = new DataView(new ArrayBuffer(4));
    view.setFloat32(0, x);
    if (view.getFloat32(0) < x) return view.getFloat32(0);
    view.setInt32(0, view.getInt32(0) - Math.sign(x));
    return view.getFloat32(0);
  },
  f64(x) {
    if (x === 0) return -Number.MIN_VALUE;
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, x);
    view.setBigInt64(0, view.getBigInt64(0) - BigInt(Math.sign(x)));
    return view.getFloat64(0);
  },
};

/** Uniform in [lo, hi), [0, 1) by default. */
function uniform(from: Tensor, shape: Shape, given: UniformOptions | FloatType = {}): Tensor {
  const options = optionsOf(given);
  requireDraw("random.uniform", from, shape);
  requireOptions("random.uniform", options, UNIFORM);
  const { dtype = "f32", lo = 0, hi = 1 } = options;
  if (!(lo < hi)) fail("InvalidArgument", `random.uniform: nothing is in [${lo}, ${hi})`, "lo must be below hi");
  const u = applyOp(ops.randomUniform, [from], { shape, dtype, stream: STREAM.draw });
  if (lo === 0 && hi === 1) return u;
  // rounding must not carry a draw up to the open bound
  return minimum(add(mul(u, hi - lo), lo), BELOW[dtype](hi));
}

/** Normal, with mean 0 and deviation 1 by default. */
function normal(from: Tensor, shape: Shape, given: NormalOptions | FloatType = {}): Tensor {
  const options = optionsOf(given);
  requireDraw("random.normal", from, shape);
  requireOptions("random.normal", options, NORMAL);
  const { dtype = "f32", mean = 0, std = 1 } = options;
  const z = applyOp(ops.randomNormal, [from], { shape, dtype, stream: STREAM.draw });
  const scaled = std === 1 ? z : mul(z, std);
  return mean === 0 ? scaled : add(scaled, mean);
}

/** True with probability p. */
function bernoulli(from: Tensor, p: number, shape: Shape): Tensor {
  requireDraw("random.bernoulli", from, shape);
  return applyOp(ops.randomBernoulli, [from], { shape, p, stream: STREAM.draw });
}

/** 0 … n-1 in random order, i32. */
function permutation(from: Tensor, n: number): Tensor {
  requireDraw("random.permutation", from, [n]);
  return applyOp(ops.shuffle, [applyOp(ops.randomBits, [from], { shape: [n], stream: STREAM.draw })], {});
}

/**
 * Random numbers from keys.
 *
 * @example
 * import { random } from "tidemark";
 *
 * const [a, b] = random.split(random.key(0), 2);
 * const x = random.normal(a, [2, 3]);
 * const order = random.permutation(b, 5);
 * console.log(x.shape, order.sum().item()); // [2, 3] 10
 */
export const random = { key, split, foldIn, uniform, normal, bernoulli, permutation } as const;

/**
 * x with elements set to zero at a rate, the others scaled up to keep the mean. The backward pass draws the mask again.
 *
 * @example
 * import { dropout, ones, random } from "tidemark";
 *
 * const y = dropout(ones([1000]), 0.5, random.key(1));
 * console.log(y.max().item()); // 2
 */
export function dropout(x: Tensor, rate: number, from: Tensor): Tensor {
  requireTensor("dropout", "x", x);
  requireKey("dropout", from);
  if (!(typeof rate === "number" && rate >= 0 && rate < 1)) {
    fail("InvalidArgument", `dropout: rate ${String(rate)}`, "a rate is at least 0 and below 1");
  }
  if (rate === 0) return ownCopy(x);
  return asFunction("dropout", () => where(bernoulli(from, 1 - rate, x.shape), mul(x, 1 / (1 - rate)), 0));
}
