/** @file Rows with divided positions: cut in two they have the same bits, in the interpreter and on every target. */
import { describe, expect, it } from "vitest";
import { check, runAll } from "../../../tests/support/kernel-check.ts";
import { kernelSample } from "../../../tests/support/kernel-samples.ts";
import { narrowTargets, plainTargets } from "../../../tests/support/targets.ts";
import type { Sample } from "../../ir/op.ts";
import { tensorType } from "../../ir/type.ts";
import { type LoopVar, load } from "../../kernel/expr.ts";
import { divIndex, offsetIndex, varIndex } from "../../kernel/index-math.ts";
import type { MapNest } from "../../kernel/loops.ts";
import { printNest } from "../../kernel/print.ts";
import { type FoldAttrs, fold } from "../../ops/window.ts";
import { wasmDescription } from "../wasm/description.ts";
import { cutAtDivisions } from "./divided-rows.ts";
import { longRows } from "./short-rows.ts";

/** y[i] = x[(i + 1) div by]. */
function divided(extent: number, by: number): MapNest {
  const i: LoopVar = { kind: "var", name: "i", extent };
  const value = load("f32", 0, divIndex(offsetIndex(varIndex(i), 1), by));
  return { kind: "map", loops: [i], stores: [{ operand: 1, index: varIndex(i), value }] };
}

describe("rows with divided positions", () => {
  it("are cut at the divisor, and remainders are written out", () => {
    const cut = cutAtDivisions(divided(56, 2), 8);
    expect(cut?.loops.map((v) => v.extent)).toEqual([28, 2]);
    const wide = longRows(divided(56, 2), 4);
    expect(printNest(wide)).toMatchInlineSnapshot(`
      "  map iq < 28
          %0: f32 = p0[iq]
          %1: f32 = p0+1[iq]
          p1[2 iq] ← %0
          p1+1[2 iq] ← %1"
    `);
  });

  it("stay whole where the divisor is large, or does not divide the row", () => {
    expect(cutAtDivisions(divided(56, 28), 8)).toBeNull();
    expect(cutAtDivisions(divided(55, 2), 8)).toBeNull();
    expect(longRows(divided(6, 2), 4)).toEqual(divided(6, 2));
  });
});

/** Windows that overlap, put back: rows of `size` elements. */
function samples(): readonly Sample<FoldAttrs>[] {
  const cases = [
    { size: 34, window: 3, stride: 2, lo: 1, dilation: 1 },
    { size: 64, window: 2, stride: 2, lo: 0, dilation: 1 },
    { size: 66, window: 5, stride: 3, lo: 2, dilation: 1 },
    { size: 64, window: 3, stride: 2, lo: 2, dilation: 2 },
    { size: 96, window: 7, stride: 4, lo: 3, dilation: 1 },
  ];
  return cases.flatMap(({ size, window, stride, lo, dilation }) => {
    const windows = Math.floor((size + 2 * lo - (window - 1) * dilation - 1) / stride) + 1;
    const attrs = {
      ...{ window: [2, window], stride: [1, stride], lo: [0, lo], hi: [0, lo], dilation: [1, dilation] },
      size: [3, size],
    };
    return (["f32", "f64", "i32"] as const).map((dtype) => ({
      inputs: [tensorType(dtype, [2, 2, windows, 2, window])],
      attrs,
    }));
  });
}

describe("kernels of divided rows", () => {
  for (const tested of [...plainTargets, ...narrowTargets]) {
    it.skipIf(tested.missing !== null)(`have the interpreter's bits on ${tested.name}`, () => {
      const all = samples().map((sample) => kernelSample(fold, sample, wasmDescription(false)));
      const outcome = runAll(tested, all);
      for (const sample of all) check(sample, outcome.get(sample) ?? []);
    });
  }
});
