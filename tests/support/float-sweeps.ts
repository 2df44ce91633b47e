/**
 * @file What the tests of mathematical functions share: arrays of arguments, a function applied to them as a kernel, and
 * distances in units of the last place.
 */
import { at } from "../../src/base/invariant.ts";
import { type Expr, type LoopVar, load } from "../../src/kernel/expr.ts";
import { varIndex } from "../../src/kernel/index-math.ts";
import { interpretKernel } from "../../src/kernel/interpret.ts";
import type { Nest, Operand } from "../../src/kernel/loops.ts";

export type FloatType = "f32" | "f64";
export type Floats = Float32Array | Float64Array;

export function floats(dtype: FloatType, values: readonly number[]): Floats {
  return dtype === "f32" ? Float32Array.from(values) : Float64Array.from(values);
}

/** f over arrays, element by element, as a kernel run by the interpreter. */
export function applied(f: (...args: readonly Expr[]) => Expr, dtype: FloatType, inputs: readonly Floats[]): Floats {
  const elements = at(inputs, 0).length;
  const i: LoopVar = { kind: "var", name: "i", extent: elements };
  const index = varIndex(i);
  const value = f(...inputs.map((_, k) => load(dtype, k, index)));
  const out = dtype === "f32" ? new Float32Array(elements) : new Float64Array(elements);
  const operand = (role: "in" | "out"): Operand => ({ dtype, elements, role });
  const nest: Nest = { kind: "map", loops: [i], stores: [{ operand: inputs.length, index, value }] };
  interpretKernel({ operands: [...inputs.map(() => operand("in")), operand("out")], nests: [nest] }, [...inputs, out]);
  return out;
}

/** f of one argument over an array. */
export function mapped(f: (x: Expr) => Expr, dtype: FloatType, x: Floats): Floats {
  return applied((...args) => f(at(args, 0)), dtype, [x]);
}

/** A small seeded generator of numbers in [0, 1): mulberry32. */
export function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Where to take arguments: densely from one interval, and from all bit patterns within another. */
export interface Domain {
  readonly dense: readonly [number, number];
  readonly all: readonly [number, number];
}

/** Half of the points spread over the dense interval, half from the bit patterns. */
export function points(dtype: FloatType, n: number, { dense, all }: Domain): Floats {
  const random = generator(n + dense[1]);
  const bits = new DataView(new ArrayBuffer(8));
  const pattern = (): number => {
    bits.setUint32(0, random() * 2 ** 32);
    bits.setUint32(4, random() * 2 ** 32);
    const x = dtype === "f32" ? bits.getFloat32(0) : bits.getFloat64(0);
    return x >= all[0] && x <= all[1] ? x : pattern();
  };
  const spread = (): number => dense[0] + (dense[1] - dense[0]) * (random() + random() * 2 ** -32);
  return floats(
    dtype,
    Array.from({ length: n }, (_, i) => (i % 2 === 0 ? spread() : pattern())),
  );
}

/** Distance from the truth in units of the last place of the truth, for f32. */
export function ulpsOffF32(got: number, truth: number): number {
  if (Number.isNaN(truth) || Number.isNaN(got)) {
    return Number.isNaN(truth) === Number.isNaN(got) ? 0 : Number.POSITIVE_INFINITY;
  }
  if (!Number.isFinite(got) && Math.fround(truth) === got) return 0;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(truth) || 2 ** -149)), -126);
  const value = Number.isFinite(got) ? got : Math.sign(got) * 2 ** 128;
  return Math.abs(value - truth) / 2 ** (exponent - 23);
}

export interface Worst {
  readonly off: number;
  readonly x: number;
}

/** The argument with the largest `off(i)`; one that is NaN counts as larger than all. */
export function worst(x: Floats, off: (i: number) => number): Worst {
  let found: Worst = { off: 0, x: Number.NaN };
  for (let i = 0; i < x.length; i++) {
    const here = off(i);
    if (!(here <= found.off)) found = { off: here, x: at(x, i) };
  }
  return found;
}
