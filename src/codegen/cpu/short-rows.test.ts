/** @file Kernels of short rows: written out they compute the same bits, in the interpreter and on every target. */
import { describe, expect, it } from "vitest";
import { check, runAll } from "../../../tests/support/kernel-check.ts";
import { kernelSample } from "../../../tests/support/kernel-samples.ts";
import { narrowTargets, plainTargets } from "../../../tests/support/targets.ts";
import { hostRandom } from "../../base/random.ts";
import type { AnyOp, Sample } from "../../ir/op.ts";
import { tensorType } from "../../ir/type.ts";
import type { DType } from "../../kernel/dtype.ts";
import { call, type LoopVar, load } from "../../kernel/expr.ts";
import { addIndex, scaleIndex, varIndex } from "../../kernel/index-math.ts";
import { interpretKernel } from "../../kernel/interpret.ts";
import type { Combine, Nest, ReduceNest } from "../../kernel/loops.ts";
import { broadcast, sum } from "../../ops/broadcast.ts";
import { transpose } from "../../ops/movement.ts";
import { reduceMax } from "../../ops/reduce.ts";
import { slice } from "../../ops/slice.ts";
import { wasmDescription } from "../wasm/description.ts";
import { longRows } from "./short-rows.ts";

const counter = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });
const ROWS = 37;

/** y[i] = 2 · (x[terms · i] ⊕ x[terms · i + 1] ⊕ …). */
function reduction(extents: readonly number[], shape: Pick<ReduceNest, "order" | "combine" | "dtype">): ReduceNest {
  const [i, reduce] = [counter("i", ROWS), extents.map((n, axis) => counter(`r${axis}`, n))];
  const place = reduce.reduce((outer, v) => addIndex(scaleIndex(outer, v.extent), varIndex(v)), varIndex(i));
  const acc = { kind: "acc", dtype: shape.dtype } as const;
  const value = call("add", [acc, acc]);
  return {
    kind: "reduce",
    ...shape,
    loops: [i],
    reduce,
    body: load(shape.dtype as DType, 0, place),
    stores: [{ operand: 1, index: varIndex(i), value }],
  };
}

function interpreted(nest: Nest, dtype: "f32" | "f64", terms: number): Uint8Array {
  const random = hostRandom(3);
  const numbers = Array.from({ length: ROWS * terms }, (_, e) => (e % 7 === 0 ? -0 : random.next() - 0.5));
  const [x, y] =
    dtype === "f32"
      ? [Float32Array.from(numbers), new Float32Array(ROWS)]
      : [Float64Array.from(numbers), new Float64Array(ROWS)];
  const operands = [
    { dtype, elements: x.length, role: "in" },
    { dtype, elements: ROWS, role: "out" },
  ] as const;
  interpretKernel({ operands, nests: [nest] }, [x, y]);
  return new Uint8Array(y.buffer);
}

describe("short reductions written out", () => {
  for (const dtype of ["f32", "f64"] as const) {
    for (const order of ["sequential", "interleaved"] as const) {
      it(`are maps with the bits of the reduction: ${dtype}, ${order}`, () => {
        for (const extents of [[1], [2], [3], [4], [5], [6], [7], [2, 2], [2, 3], [4, 2]]) {
          for (const combine of ["add", "mul", "max", "min"] satisfies Combine[]) {
            const nest = reduction(extents, { order, combine, dtype });
            const map = longRows(nest, 4);
            expect(map.kind).toBe("map");
            const terms = extents.reduce((a, b) => a * b, 1);
            expect(interpreted(map, dtype, terms), `${combine} of ${extents}`).toEqual(interpreted(nest, dtype, terms));
          }
        }
      });
    }
  }

  it("stay reductions where a round is whole, or there are many terms", () => {
    expect(longRows(reduction([8], { order: "interleaved", combine: "add", dtype: "f64" }), 2).kind).toBe("reduce");
    expect(longRows(reduction([9], { order: "sequential", combine: "add", dtype: "f32" }), 4).kind).toBe("reduce");
  });
});

/** Operations over the short axis, along it and across it; sizes around whole registers. */
function samples(): readonly (readonly [AnyOp, Sample<unknown>])[] {
  const found: (readonly [AnyOp, Sample<unknown>])[] = [];
  for (const [rows, s] of [
    [16, 2],
    [67, 2],
    [33, 3],
    [48, 4],
    [41, 5],
    [50, 7],
    [64, 8],
  ] as const) {
    for (const dtype of ["f32", "f64", "i32"] as const) {
      const type = tensorType(dtype, [rows, s]);
      found.push(
        [sum, { inputs: [type], attrs: { axes: [1] } }],
        [reduceMax, { inputs: [type], attrs: { axes: [1] } }],
        [broadcast, { inputs: [tensorType(dtype, [rows])], attrs: { shape: [rows, s], axes: [0] } }],
        [broadcast, { inputs: [tensorType(dtype, [s])], attrs: { shape: [rows, s], axes: [1] } }],
        [transpose, { inputs: [tensorType(dtype, [s, rows])], attrs: { perm: [1, 0] } }],
        [slice, { inputs: [type], attrs: { start: [0, s - 1], limit: [rows, s], stride: [1, 1] } }],
      );
    }
  }
  return found;
}

describe("kernels of short rows", () => {
  for (const tested of [...plainTargets, ...narrowTargets]) {
    it.skipIf(tested.missing !== null)(`have the interpreter's bits on ${tested.name}`, () => {
      const all = samples().map(([op, sample]) => kernelSample(op, sample, wasmDescription(false)));
      const outcome = runAll(tested, all);
      for (const sample of all) check(sample, outcome.get(sample) ?? []);
    });
  }
});
