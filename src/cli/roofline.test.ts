/** @file Rooflines: by hand where one can count, and never above what the peaks allow. */
import { expect, it } from "vitest";
import { at } from "../base/invariant.ts";
import { parse } from "../ir/parse.ts";
import { allOps } from "../ops/all.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import { machineModel } from "./machine.ts";
import { type Planned, planLoaded } from "./plan-figures.ts";
import { measurePeaks, rooflineOf, rooflineText } from "./roofline.ts";

const SETTINGS = { target: "wasm", memory: {}, machine: machineModel(() => {}) } as const;
const PEAKS = { flops: 1e9, bytes: 1e9, cachedBytes: 1e9 };

function planned(text: string): Planned {
  const graph = at(parse(text, allOps), 0);
  return planLoaded({ kind: "graph", name: "f", graph }, SETTINGS).planned;
}

it("counts the products of odd sides exactly and takes the longer of computing and moving", () => {
  const f = planned(`func f(x: f32[101,50], w: f32[50,33]) {
  y: f32[101,33] = matmul(x, w)
  return y
}
`);
  const bytes = 4 * (101 * 50 + 50 * 33 + 101 * 33);
  const flops = 2 * 101 * 50 * 33;
  // arguments are written into the arena: read and written once more
  const written = (2 * 4 * (101 * 50 + 50 * 33)) / 1e6;
  const found = rooflineOf(f, 10, PEAKS);
  expect(found).toMatchObject({ productFlops: flops, bytes });
  expect(found.roofMs).toBeCloseTo(flops / 1e6 + written, 9);
  expect(found.share).toBeCloseTo(found.roofMs / 10, 12);
  expect(found.flopShare).toBeCloseTo(flops / 1e6 / 10, 12);
  expect(found.byteShare).toBeCloseTo(bytes / 1e6 / 10, 12);
  const slow = rooflineOf(f, 10, { ...PEAKS, bytes: 1e6, cachedBytes: 1e6 });
  expect(slow.roofMs).toBeCloseTo(bytes / 1e3 + 1e3 * written, 6);
});

it("gives arithmetic beside products no time at all", () => {
  const f = planned(`func f(x: f32[1000]) {
  a: f32[1000] = exp(x)
  y: f32[1000] = tanh(a)
  return y
}
`);
  const found = rooflineOf(f, 1, PEAKS);
  expect(found.productFlops).toBe(0);
  expect(found.roofMs).toBeCloseTo((8000 + 8000) / 1e6, 12);
  expect(rooflineText(found)).toMatch(/^ {2}peaks +1\.0 GFLOP\/s +memory 1\.0 GB\/s, caches 1\.0\n/);
});

it("measures peaks that are rates of this machine", () => {
  const { flops, bytes, cachedBytes } = measurePeaks(wasmTarget(), 1);
  expect(flops).toBeGreaterThan(1e8);
  expect(flops).toBeLessThan(1e13);
  expect(bytes).toBeGreaterThan(1e7);
  expect(cachedBytes).toBeGreaterThanOrEqual(bytes);
});
