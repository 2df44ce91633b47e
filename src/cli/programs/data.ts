/**
 * @file Numbers for programs, the same on every machine and in every library: number i of stream s is an integer hash of
 * i and s, so parameters and batches need no files and no library's own generator. tests/fixtures/torch/losses.py has the
 * same arithmetic in Python; with equal numbers to start from, losses can be compared step by step.
 *
 *   u(i, s) = mix(i · 0x9e3779b1 + s · 0x85ebca6b mod 2³²) / 2³²   in [0, 1)
 */
import { full, spec } from "../../api/create.ts";
import type { Shape } from "../../ir/type.ts";
import { tensor } from "../../trace/literal.ts";
import { LazyStorage, type TypedArray } from "../../trace/storage.ts";
import { Tensor } from "../../trace/tensor.ts";

/** Number i of stream `seed`, in [0, 1). */
export function hash01(i: number, seed: number): number {
  let x = (Math.imul(i, 0x9e3779b1) + Math.imul(seed, 0x85ebca6b)) >>> 0;
  for (let round = 0; round < 2; round++) {
    x ^= x >>> 16;
    x = Math.imul(x, 0x45d9f3b);
  }
  x ^= x >>> 16;
  return (x >>> 0) / 2 ** 32;
}

/** Uniform in [-scale, scale), computed in doubles and rounded once to f32, where it is needed. */
export function uniform(shape: Shape, seed: number, scale: number): Tensor {
  const fill = (into: TypedArray): void => {
    for (let i = 0; i < into.length; i++) into[i] = (hash01(i, seed) * 2 - 1) * scale;
  };
  return new Tensor(new LazyStorage("f32", shape, fill));
}

/** Class numbers below `count`. */
export function classIds(elements: number, seed: number, count: number): Int32Array {
  return Int32Array.from({ length: elements }, (_, i) => Math.floor(hash01(i, seed) * count));
}

/** Streams of the two halves of a batch. */
export const INPUT_STREAM = 10001;
export const TARGET_STREAM = 10002;

/** The bound of a uniform distribution that keeps variance through a layer with relu (He et al. 2015). */
export const he = (fanIn: number): number => Math.sqrt(6 / fanIn);

/** The source of a program's numbers: drawn for a run, only types for a plan. */
export interface Numbers {
  /** A parameter. Parameter number n, counted from 1 in the order of the calls, is drawn from stream n. */
  draw(shape: Shape, scale: number): Tensor;
  /** A parameter filled with one value; it still uses up a parameter number. */
  fill(shape: Shape, value: number): Tensor;
  /** Uniform in [-1, 1), from the given stream. */
  data(shape: Shape, stream: number): Tensor;
  /** Integers; `make` is called on demand. */
  ids(shape: Shape, make: () => Int32Array): Tensor;
}

export function drawn(): Numbers {
  let count = 0;
  return {
    draw(shape, scale) {
      count += 1;
      return uniform(shape, count, scale);
    },
    fill(shape, value) {
      count += 1;
      return full(shape, value);
    },
    data: (shape, stream) => uniform(shape, stream, 1),
    ids: (shape, make) => tensor(make(), { shape }),
  };
}

export const typesAlone: Numbers = {
  draw: (shape) => spec(shape),
  fill: (shape) => spec(shape),
  data: (shape) => spec(shape),
  ids: (shape) => spec(shape, "i32"),
};
