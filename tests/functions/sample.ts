/**
 * @file What a sample of an API function is, and data to run it on. The functions that users call are composed of
 * operations; a sample names one, says on what types to call it, and, where the meaning is not obvious from one line,
 * gives a reference that is written as plain loops and shares nothing with the project.
 */
import { type Tensor, tensor } from "../../src/api/index.ts";
import { elementsOf, type Shape, type TensorType, tensorType } from "../../src/ir/type.ts";
import { isFloat } from "../../src/kernel/dtype.ts";
import type { Plain } from "./plain.ts";

export type Float = "f32" | "f64";
export type Range = readonly [number, number];

export interface FunctionSample {
  /** The exported function that is called. */
  readonly name: string;
  readonly inputs: readonly TensorType[];
  call(...inputs: Tensor[]): Tensor | readonly Tensor[];
  /** Inputs are drawn from [lo, hi), integers rounded down; for all or for each. Default [-2, 2). */
  readonly range?: Range | readonly Range[];
  /** Has two derivatives over this range, away from multiples of 1/64. Default true. */
  readonly smooth?: boolean;
  /** Other samples of the function have the same derivatives. */
  readonly valuesOnly?: boolean;
  reference?(...inputs: Plain[]): Plain | readonly Plain[];
}

/** The samples of a family of functions for one float type. */
export type Family = (t: Float) => readonly FunctionSample[];

export const i32 = (...shape: Shape): TensorType => tensorType("i32", shape);
export const bool = (...shape: Shape): TensorType => tensorType("bool", shape);

/** Uniform in [0, 1), from a seed and an index. */
function noise(seed: number, i: number): number {
  const v = Math.sin(127.1 * (i + 1) + 311.7 * (seed + 1)) * 43758.5453;
  return v - Math.floor(v);
}

/** In [0, 1), clear of the multiples of 1/64, where floor, clamp and their kin have corners; no two alike. */
function clear(seed: number, i: number): number {
  return (Math.floor(64 * noise(seed, i)) + 0.25 + noise(seed + 1000, i) / 2) / 64;
}

function rangeOf({ range = [-2, 2] }: FunctionSample, i: number): Range {
  return (typeof range[0] === "number" ? range : range[i]) as Range;
}

/** Elements of one input: representable in its type, held as doubles. */
export function draw(type: TensorType, seed: number, [lo, hi]: Range): Float64Array {
  return Float64Array.from({ length: elementsOf(type.shape) }, (_, i) => {
    const v = lo + (hi - lo) * clear(seed, i);
    if (type.dtype === "f32") return Math.fround(v);
    return isFloat(type.dtype) ? v : Math.floor(v);
  });
}

/** Elements of all inputs of a sample. Bools are drawn from {0, 1} whatever the range. */
export function dataFor(sample: FunctionSample, seed: number): readonly Float64Array[] {
  return sample.inputs.map((type, i) => draw(type, seed + 13 * i, type.dtype === "bool" ? [0, 2] : rangeOf(sample, i)));
}

export function tensorOf(type: TensorType, data: Float64Array): Tensor {
  return tensor(data, { dtype: type.dtype, shape: type.shape });
}

export function tensorsFor(sample: FunctionSample, data: readonly Float64Array[]): readonly Tensor[] {
  return sample.inputs.map((type, i) => tensorOf(type, data[i]!));
}

/** Results as a list. */
export const listOf = <T>(results: T | readonly T[]): readonly T[] =>
  Array.isArray(results) ? (results as readonly T[]) : [results as T];

/** `softmax(f32[3,5]) #2`, for messages. */
export function labelOf(sample: FunctionSample, number: number): string {
  return `${sample.name}(${sample.inputs.map((x) => `${x.dtype}[${x.shape.join(",")}]`).join(", ")}) #${number}`;
}

/** Elements of a tensor as doubles. */
export const doubles = (x: Tensor): Float64Array => Float64Array.from(x.data());
