/**
 * @file Products of every form against the interpreter, bit for bit: sizes around tiles and runs of the depth, sides in any
 * layout, batches that one side does not have, windows with padding, work before and behind the product, several results.
 * All of them are one program; some are another one, for three threads.
 */

import { isDeepStrictEqual } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { hostMemory } from "../../../tests/support/host-memory.ts";
import { bufferOf } from "../../../tests/support/kernel-samples.ts";
import { loadSteps, plainTargets } from "../../../tests/support/targets.ts";
import { at } from "../../base/invariant.ts";
import { hostRandom } from "../../base/random.ts";
import { bytesOf, type DType } from "../../kernel/dtype.ts";
import { call, compare, constant, type Expr, type Index, type LoopVar, load } from "../../kernel/expr.ts";
import {
  addIndex,
  divIndex,
  linearIndex,
  modIndex,
  offsetIndex,
  scaleIndex,
  varIndex,
} from "../../kernel/index-math.ts";
import { interpretKernel, type TypedArray } from "../../kernel/interpret.ts";
import type { ContractNest, Kernel, Operand } from "../../kernel/loops.ts";
import { nativeTarget } from "../../node/native/target.ts";
import { wasmTarget } from "../../runtime/wasm-target.ts";
import { Interner } from "../intern.ts";
import { neededSums } from "../needed-sums.ts";
import type { PlacedKernel } from "../placed.ts";
import { type Product, planProduct } from "./contract-plan.ts";
import type { NativeOptions } from "./options.ts";

/** A machine with AVX-512. */
const OPTIONS: NativeOptions = { lanes: 16, fma: false, threads: 1 };

type Type = "f32" | "f64" | "i32";
type Layout = "plain" | "transposed" | "window" | "shared" | "fused" | "fused transposed" | "weights" | "stamps";
type After = "sum" | "bias" | "two" | "other type" | "below" | "above";

interface Case {
  readonly dtype: Type;
  readonly sizes: readonly [batch: number, m: number, n: number, k: number];
  readonly a: Layout;
  readonly b: Layout;
  readonly after: After;
  /** Length of the inner counter of the depth. */
  readonly inner: number | null;
}

const loop = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

/** One side over [batch, lane, depth] in a layout, reading operand `operand`; and how many elements that has. */
function side(
  layout: Layout,
  dtype: Type,
  operand: number,
  axes: readonly [LoopVar, LoopVar],
  l: Index,
  depth: number,
): { expr: Expr; elements: number } {
  const [batch, lane] = axes;
  const [b, i] = [varIndex(batch), varIndex(lane)];
  const [p, d] = [lane.extent, depth];
  const transposed = linearIndex([b, l, i], [batch.extent, d, p]);
  const plain = linearIndex([b, i, l], [batch.extent, p, d]);
  const relu = (x: Expr): Expr => call("max", [x, constant(dtype, 0)]);
  switch (layout) {
    case "plain":
      return { expr: load(dtype, operand, plain), elements: batch.extent * p * d };
    case "transposed":
      return { expr: load(dtype, operand, transposed), elements: batch.extent * p * d };
    case "shared":
      return { expr: load(dtype, operand, linearIndex([i, l], [p, d])), elements: p * d };
    case "fused":
      return { expr: relu(load(dtype, operand, plain)), elements: batch.extent * p * d };
    case "fused transposed":
      return { expr: relu(load(dtype, operand, transposed)), elements: batch.extent * p * d };
    case "weights":
    case "stamps": {
      // Nine taps lie next to each other and run slower than the channels, of which there are d / 9.
      const [tap, channel] = [divIndex(l, d / 9), modIndex(l, d / 9)];
      const outer = layout === "weights" ? [i, channel, tap] : [channel, i, tap];
      const shape = layout === "weights" ? [p, d / 9, 9] : [d / 9, p, 9];
      return { expr: load(dtype, operand, linearIndex(outer, shape)), elements: p * d };
    }
    case "window": {
      // Place i of rows of five, seen through taps of a 3 x 3 window whose centre is (1, 1): zero outside of the image.
      const [rows, taps] = [Math.ceil(p / 5), Math.ceil(d / 9)];
      const y = offsetIndex(addIndex(divIndex(i, 5), modIndex(divIndex(l, 3), 3)), -1);
      const x = offsetIndex(addIndex(modIndex(i, 5), modIndex(l, 3)), -1);
      const index = linearIndex([b, divIndex(l, 9), y, x], [batch.extent, taps, rows, 5]);
      const bounds = [
        { index: y, lo: 0, hi: rows },
        { index: x, lo: 0, hi: 5 },
      ];
      const expr: Expr = {
        kind: "guard",
        dtype,
        bounds,
        then: load(dtype, operand, index),
        otherwise: constant(dtype, 0),
      };
      return { expr, elements: batch.extent * taps * rows * 5 };
    }
  }
}

function kernelOf(
  { dtype, sizes, a, b, after, inner }: Case,
  scratch: (nest: Product, operands: readonly Operand[]) => number,
): Kernel {
  const [count, m, n, k] = sizes;
  const [batch, rows, cols, depth] = [loop("b", count), loop("m", m), loop("n", n), loop("k", k)];
  const split: ContractNest["split"] = inner ? [loop("k0", k / inner), loop("k1", inner)] : null;
  const l = split ? addIndex(scaleIndex(varIndex(split[0]), inner ?? 1), varIndex(split[1])) : varIndex(depth);
  const left = side(a, dtype, 0, [batch, rows], l, k);
  const right = side(b, dtype, 1, [batch, cols], l, k);
  const index = linearIndex([batch, rows, cols].map(varIndex), [count, m, n]);
  const acc: Expr = { kind: "acc", dtype };
  const biased = call("add", [acc, load(dtype, 2, varIndex(cols))]);
  const other: Type = dtype === "f64" ? "f32" : "f64";
  const stored: Type = after === "other type" ? other : dtype;
  // sums of one side of a line, through what is behind them and straight
  const place = (index: Index): Expr => ({ kind: "index", dtype: "i32", index });
  const under = compare("le", place(offsetIndex(varIndex(cols), 3)), place(varIndex(rows)));
  const over = compare("lt", place(scaleIndex(varIndex(rows), 2)), place(varIndex(cols)));
  const value = {
    ...{ sum: acc, bias: biased, two: biased, "other type": call("convert", [acc], stored) },
    below: call("add", [call("pick", [under, acc, constant(dtype, -7)]), load(dtype, 2, varIndex(cols))]),
    above: call("pick", [over, constant(dtype, 5), biased]),
  }[after];
  const elements = count * m * n;
  const operands: Operand[] = [
    { dtype, elements: left.elements, role: "in" },
    { dtype, elements: right.elements, role: "in" },
    { dtype, elements: n, role: "in" },
    { dtype: stored, elements, role: "out" },
    { dtype, elements, role: "out" },
  ];
  const second = after === "two" ? [{ operand: 4, index, value: call("mul", [acc, acc]) }] : [];
  const stores = [{ operand: 3, index, value }, ...second];
  const nest: Product = {
    kind: "contract",
    batch: [batch],
    rows,
    cols,
    depth,
    split,
    dtype,
    a: left.expr,
    b: right.expr,
    stores,
  };
  operands.push({ dtype, elements: scratch(nest, operands), role: "scratch" });
  return { operands, nests: [{ ...nest, scratch: 5 }] };
}

const CASES: readonly Case[] = cases();
/** Compiled a second time, for threads. */
const SHARED = CASES.filter((_, i) => i % 4 === 0);

function cases(): readonly Case[] {
  const random = hostRandom(7);
  const pick = <T>(list: readonly T[]): T => at(list, Math.floor(random.next() * list.length));
  const extents = [1, 2, 3, 5, 7, 8, 13, 14, 15, 16, 17, 20, 27, 29, 31, 32, 33, 35, 40, 47, 50, 65];
  const layouts: readonly Layout[] = ["plain", "transposed", "window", "shared", "fused", "fused transposed"];
  const made: Case[] = [];
  for (let i = 0; i < 28; i++) {
    const k = pick([0, 1, 2, 9, 16, 18, 31, 45, 64, 100]);
    const inner =
      k > 1 && random.next() < 0.4 ? at([2, 3, 4, 5, 9, 16].filter((n) => k % n === 0 && n < k).concat(k), 0) : null;
    made.push({
      dtype: pick<Type>(["f32", "f32", "f64", "i32"]),
      sizes: [pick([1, 1, 3, 4]), pick(extents), pick(extents), k],
      a: pick(layouts),
      b: pick(layouts),
      after: pick<After>(["sum", "sum", "bias", "two", "other type"]),
      inner: inner === k ? null : inner,
    });
  }
  // Several runs along the depth; sides larger than a block; rows that collide in the cache.
  for (const after of ["sum", "bias"] as const) {
    made.push({ dtype: "f32", sizes: [1, 9, 40, 1100], a: "plain", b: "transposed", after, inner: null });
    made.push({ dtype: "f32", sizes: [2, 10, 17, 1026], a: "window", b: "fused", after, inner: 9 });
    made.push({ dtype: "f64", sizes: [1, 3, 33, 600], a: "fused transposed", b: "plain", after, inner: 100 });
    made.push({ dtype: "f32", sizes: [1, 28, 36, 1024], a: "plain", b: "shared", after, inner: null });
  }
  made.push({ dtype: "f64", sizes: [1, 230, 5, 514], a: "fused", b: "transposed", after: "bias", inner: null });
  // Weights of convolutions, with a window and with all sorts of rows.
  for (const a of ["weights", "stamps"] as const) {
    made.push({ dtype: "f32", sizes: [3, 20, 35, 90], a, b: "window", after: "sum", inner: 10 });
    made.push({ dtype: "f64", sizes: [1, 33, 20, 540], a: "plain", b: a, after: "bias", inner: 60 });
    made.push({ dtype: "f32", sizes: [2, 40, 25, 630], a, b: "transposed", after: "bias", inner: 70 });
  }
  made.push({ dtype: "f32", sizes: [3, 25, 36, 27], a: "shared", b: "window", after: "bias", inner: 3 });
  // Tiles that are never read; rows of the result that collide.
  for (const after of ["below", "above"] as const) {
    made.push({ dtype: "f32", sizes: [2, 70, 100, 20], a: "plain", b: "plain", after, inner: null });
    made.push({ dtype: "f64", sizes: [1, 100, 45, 9], a: "transposed", b: "fused", after, inner: null });
    made.push({ dtype: "i32", sizes: [1, 20, 1024, 12], a: "plain", b: "transposed", after, inner: null });
    made.push({ dtype: "f32", sizes: [1, 33, 40, 600], a: "plain", b: "transposed", after, inner: null });
  }
  return made;
}

const nameOf = (one: Case): string => JSON.stringify(Object.values(one));

function results(target: ReturnType<typeof nativeTarget>, cases: readonly Case[]): readonly (readonly TypedArray[])[] {
  if (typeof target === "string") throw new Error(target);
  let top = 64;
  const steps = cases.map((one): PlacedKernel => {
    const kernel = kernelOf(one, (nest, operands) => target.description.workspace(nest, operands));
    const addresses = kernel.operands.map(({ dtype, elements }) => {
      top += Math.ceil((elements * bytesOf(dtype)) / 64 + 1) * 64;
      return top - Math.ceil((elements * bytesOf(dtype)) / 64 + 1) * 64;
    });
    return { kernel, addresses };
  });
  const machine = loadSteps(target, steps, top);
  const { buffer, start } = hostMemory(machine.memory);
  new Uint8Array(buffer, start).fill(0xff);
  const operand = ({ kernel, addresses }: PlacedKernel, i: number): TypedArray => {
    const { dtype, elements } = at(kernel.operands, i);
    return bufferOf(dtype as never, elements, buffer, start + at(addresses, i)) as TypedArray;
  };
  for (const step of steps) {
    for (const [i, data] of inputs(step.kernel).entries()) operand(step, i).set(data as never);
  }
  machine.run();
  return steps.map((step) => step.kernel.operands.map((_, i) => operand(step, i).slice()));
}

const ARRAY = { f32: Float32Array, f64: Float64Array, i32: Int32Array } as const;
const emptyOf = (dtype: DType, elements: number): TypedArray => new ARRAY[dtype as Type](elements);

function inputs(kernel: Kernel): readonly TypedArray[] {
  const random = hostRandom(3);
  return kernel.operands.slice(0, 3).map(({ dtype, elements }) => {
    const scale = dtype === "i32" ? 20 : 2;
    return emptyOf(dtype, elements).map(() => (random.next() - 0.5) * scale) as TypedArray;
  });
}

describe.skipIf(at(plainTargets, 1).missing)("products as C", () => {
  let single: readonly (readonly TypedArray[])[] = [];
  let threaded: readonly (readonly TypedArray[])[] = [];

  beforeAll(() => {
    single = results(nativeTarget({ fma: false }), CASES);
    threaded = results(nativeTarget({ fma: false, threads: 3 }), SHARED);
  });

  it("have the bits of the interpreter, whatever the layouts, sizes and stores", () => {
    CASES.forEach((one, c) => {
      const kernel = kernelOf(one, () => 0);
      const buffers = [...inputs(kernel), ...kernel.operands.slice(3).map((o) => emptyOf(o.dtype, o.elements))];
      interpretKernel(kernel, buffers);
      const stored = one.after === "two" ? [3, 4] : [3];
      for (const i of stored) expect(at(at(single, c), i), nameOf(one)).toEqual(at(buffers, i));
    });
  });

  it("are computed in every way there is", () => {
    const ways = new Set<string>();
    for (const one of CASES) {
      const { operands, nests } = kernelOf(one, () => 0);
      const { s, v, swapped, sums, resident } = planProduct(at(nests, 0) as ContractNest, operands, OPTIONS);
      for (const way of [`s ${s.kind}`, `v ${v.kind}`, `swapped ${swapped}`, `sums ${sums}`, `resident ${resident}`])
        ways.add(way);
    }
    const broadcast = ["in-place", "padded", "row-major", "depth-major"].map((kind) => `s ${kind}`);
    const vector = ["in-place", "depth-major", "transposed", "computed-transposed", "permuted"].map(
      (kind) => `v ${kind}`,
    );
    const rest = [
      "swapped true",
      "swapped false",
      "sums tile",
      "sums result",
      "sums block",
      "resident true",
      "resident false",
    ];
    expect([...ways].sort()).toEqual([...broadcast, ...vector, ...rest].sort());
  });

  it("have the same bits on WebAssembly where tiles are left out", () => {
    const some = CASES.filter(({ after }) => after === "below" || after === "above");
    results(wasmTarget(false), some).forEach((operands, c) => {
      const one = at(some, c);
      expect(at(operands, 3), nameOf(one)).toEqual(at(at(single, CASES.indexOf(one)), 3));
    });
  });

  it("have the same bits in blocks for a small cache", () => {
    const blocks = (one: Case, options: NativeOptions): unknown => {
      const { operands, nests } = kernelOf(one, () => 0);
      const { blockTiles, blockPanels, resident, v } = planProduct(at(nests, 0) as ContractNest, operands, options);
      return { blockTiles, blockPanels, resident, v: v.kind };
    };
    const small = { ...OPTIONS, secondCache: 8192 };
    const others = SHARED.filter((one) => !isDeepStrictEqual(blocks(one, small), blocks(one, OPTIONS)));
    expect(others.length).toBeGreaterThan(SHARED.length / 8);
    results(nativeTarget({ fma: false, secondCache: 8192 }), SHARED).forEach((operands, c) => {
      expect(at(operands, 3), nameOf(at(SHARED, c))).toEqual(at(at(threaded, c), 3));
    });
  });

  it("leave out tiles that are never read", () => {
    const planesOf = (after: After): unknown => {
      const one: Case = { dtype: "f32", sizes: [1, 64, 64, 8], a: "plain", b: "plain", after, inner: null };
      return neededSums(new Interner(), at(kernelOf(one, () => 0).nests, 0) as ContractNest);
    };
    // column + 3 ≤ row; not 2 · row < column
    expect(planesOf("below")).toEqual({ rows: -1, cols: 1, constant: 3 });
    expect(planesOf("above")).toEqual({ rows: -2, cols: 1, constant: 0 });
    for (const after of ["sum", "bias", "two", "other type"] as const) expect(planesOf(after)).toBeNull();
  });

  it("have the same bits on three threads", () => {
    SHARED.forEach((one, c) => {
      const alone = at(single, CASES.indexOf(one));
      const stored = one.after === "two" ? [3, 4] : [3];
      for (const i of stored) expect(at(at(threaded, c), i), nameOf(one)).toEqual(at(alone, i));
    });
  });
});
