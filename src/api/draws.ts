/**
 * @file Numbers drawn from keys: uniform, normal, coin tosses, permutations. Programs keep keys, not masks: what is needed again is
 * drawn again.
 */
import type { Shape } from "../ir/type.ts";
import { elementReader, elementWriter, type FloatType, isComputed } from "../kernel/dtype.ts";
import * as ops from "../ops/random.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { add, minimum, mul } from "./elementwise.ts";
import { requireDraw, STREAM } from "./keys.ts";

/**
 * Options of functions that draw numbers.
 *
 * @example
 * import { type DrawOptions, random } from "tidemark";
 *
 * const options: DrawOptions = { dtype: "f64" };
 * console.log(random.exponential(random.key(0), [2], options).dtype); // → f64
 */
export interface DrawOptions {
  readonly dtype?: FloatType;
}

export interface UniformOptions extends DrawOptions {
  readonly lo?: number;
  readonly hi?: number;
}

export interface NormalOptions extends DrawOptions {
  readonly mean?: number;
  readonly std?: number;
}

const UNIFORM: OptionKinds<UniformOptions> = { dtype: "a float type", lo: "a number", hi: "a number" };
const NORMAL: OptionKinds<NormalOptions> = { dtype: "a float type", mean: "a number", std: "a number" };

/** The element type by its name is short for the options with it. @internal */
export const optionsOf = <T extends DrawOptions>(given: T | FloatType): T =>
  (typeof given === "string" ? { dtype: given } : given) as T;

/** The same in sixteen bits. */
function halfBelow(dtype: FloatType, x: number): number {
  const [read, write] = [elementReader(dtype), elementWriter(dtype)];
  const bits = write(x);
  if (read(bits) < x) return read(bits);
  if (x === 0) return read(0x8001);
  return read(x > 0 ? bits - 1 : bits + 1);
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
  bf16: (x) => halfBelow("bf16", x),
  f16: (x) => halfBelow("f16", x),
};

/** Uniform in [lo, hi), [0, 1) by default. */
export function uniform(from: Tensor, shape: Shape, given: UniformOptions | FloatType = {}): Tensor {
  const options = optionsOf(given);
  requireDraw("random.uniform", from, shape);
  requireOptions("random.uniform", options, UNIFORM);
  const { dtype = "f32", lo = 0, hi = 1 } = options;
  if (!(lo < hi)) fail("InvalidArgument", `random.uniform: nothing is in [${lo}, ${hi})`, "lo must be below hi");
  const u = applyOp(ops.randomUniform, [from], { shape, dtype, stream: STREAM.draw });
  const isUnit = lo === 0 && hi === 1;
  if (isUnit && isComputed(dtype)) return u;
  // rounding must not carry a draw up to the open bound
  return minimum(isUnit ? u : add(mul(u, hi - lo), lo), BELOW[dtype](hi));
}

/** Normal, with mean 0 and deviation 1 by default. */
export function normal(from: Tensor, shape: Shape, given: NormalOptions | FloatType = {}): Tensor {
  const options = optionsOf(given);
  requireDraw("random.normal", from, shape);
  requireOptions("random.normal", options, NORMAL);
  const { dtype = "f32", mean = 0, std = 1 } = options;
  const z = applyOp(ops.randomNormal, [from], { shape, dtype, stream: STREAM.draw });
  const scaled = std === 1 ? z : mul(z, std);
  return mean === 0 ? scaled : add(scaled, mean);
}

/** True with probability p. */
export function bernoulli(from: Tensor, p: number, shape: Shape): Tensor {
  requireDraw("random.bernoulli", from, shape);
  return applyOp(ops.randomBernoulli, [from], { shape, p, stream: STREAM.draw });
}

/** 0 … n-1 in random order, i32. */
export function permutation(from: Tensor, n: number): Tensor {
  requireDraw("random.permutation", from, [n]);
  return applyOp(ops.shuffle, [applyOp(ops.randomBits, [from], { shape: [n], stream: STREAM.draw })], {});
}
