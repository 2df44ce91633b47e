/**
 * @file Functions that order, combine, rearrange and resize against PyTorch, with their gradients, in f64
 * (tests/fixtures/torch/functions.py made the figures).
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { type Tensor, tensor } from "../src/api/index.ts";
import { isFloat } from "../src/kernel/dtype.ts";

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly (number | string)[];
}

interface Case {
  readonly name: string;
  readonly inputs: readonly Stored[];
  readonly results: readonly Stored[];
  readonly gradients?: readonly (Stored | null)[];
}

const { cases } = JSON.parse(readFileSync(new URL("fixtures/torch/functions.json", import.meta.url), "utf8")) as {
  readonly cases: readonly Case[];
};

/** As Python writes it. */
const numberOf = (v: number | string): number => Number(String(v).replace("inf", "Infinity"));

type Call = (...inputs: readonly [Tensor, Tensor]) => Tensor | readonly Tensor[];

const at = tensor(
  [
    [0, 2, 0],
    [1, 1, 2],
  ],
  { dtype: "i32" },
);
const unlike = tensor(
  [
    [3, 1],
    [0, 2],
  ],
  { dtype: "i32" },
);

const sorted = (x: Tensor, axis: number, descending = false): readonly Tensor[] => [
  tm.sort(x, axis, { descending }),
  tm.argsort(x, axis, { descending }),
];

/** A row of its own for numbers in one. */
const asRows = (x: Tensor): Tensor => (x.rank === 1 ? x.reshape([1, -1]) : x);

const grids = (["bilinear", "nearest"] as const).flatMap((mode) =>
  (["zeros", "border", "reflection"] as const).flatMap((padding) =>
    [false, true].map((alignCorners): readonly [string, Call] => [
      `gridSample ${mode} ${padding} ${alignCorners ? "corners" : "edges"}`,
      (x, grid) => tm.gridSample(x, grid, { mode, padding, alignCorners }),
    ]),
  ),
);

const CALLS: Readonly<Record<string, Call>> = {
  sort: (x) => sorted(asRows(x), 1),
  "sort descending": (x) => sorted(x, 0, true),
  topK: (x) => [tm.topK(x, 3).values, tm.topK(x, 3).indices],
  quantile: (x) => tm.quantile(x, [0, 0.3, 1], 1),
  "quantile lower": (x) => tm.quantile(x, 0.5, undefined, { method: "lower" }),
  "quantile nearest": (x) => tm.quantile(x, [0.1, 0.5], undefined, { method: "nearest" }),
  searchsorted: (s, v) => tm.searchsorted(s, v),
  "searchsorted right": (s, v) => tm.searchsorted(s, v, { side: "right" }),
  histogram: (x) => tm.histogram(x, 4, { range: [-1, 1] }).counts,
  cummax: (x) => tm.cummax(x, 1),
  cummin: (x) => tm.cummin(x, 0),
  logcumsumexp: (x) => tm.logcumsumexp(x, 1),
  scatterMaxAlong: (x, u) => tm.scatterMaxAlong(x, at, u, 1),
  scatterMinAlong: (x, u) => tm.scatterMinAlong(x, at, u, 1),
  scatterMulAlong: (x, u) => tm.scatterMulAlong(x, at, u, 1),
  scatterSetAlong: (x, u) => tm.scatterSetAlong(x, unlike, u, 1),
  roll: (x) => tm.roll(x, [1, -2], [0, 1]),
  "roll all": (x) => tm.roll(x, 2),
  diag: (x) => tm.diag(x, -1),
  "diag of matrix": (x) => tm.diag(x, 1),
  trace: (x) => tm.trace(x),
  kron: (a, b) => tm.kron(a, b),
  cross: (a, b) => tm.cross(a, b, 1),
  tensordot: (a, b) =>
    tm.tensordot(a, b, [
      [1, 2],
      [1, 0],
    ]),
  meshgrid: (a, b) => tm.meshgrid([a, b]),
  chunk: (x) => tm.chunk(x, 4, 1),
  unfold: (x) => tm.unfold(x, [2, 3], { dilation: [2, 1], padding: 1, stride: 2 }),
  fold: (x) => tm.fold(x, [4, 5], [2, 3], { padding: [1, 0], stride: [2, 1] }),
  pixelShuffle: (x) => tm.pixelShuffle(x, 2),
  pixelUnshuffle: (x) => tm.pixelUnshuffle(x, 2),
  "pad reflect": (x) => padded(x, "reflect", [2, 0]),
  "pad replicate": (x) => padded(x, "replicate", [0, 3]),
  "pad circular": (x) => padded(x, "circular", [2, 0]),
  "resize nearest": (x) => tm.resize(x, [5, 6]),
  "resize bilinear": (x) => tm.resize(x, [5, 2], { mode: "bilinear" }),
  "resize bilinear corners": (x) => tm.resize(x, [5, 2], { mode: "bilinear", alignCorners: true }),
  "resize bicubic": (x) => tm.resize(x, [5, 3], { mode: "bicubic" }),
  "resize bicubic corners": (x) => tm.resize(x, [5, 1], { mode: "bicubic", alignCorners: true }),
  ...Object.fromEntries(grids),
  adaptiveAvgPool: (x) => tm.adaptiveAvgPool(x, [2, 3]),
  adaptiveMaxPool: (x) => tm.adaptiveMaxPool(x, [2, 3]),
  conv3d: (x, w) => tm.conv3d(x, w, { stride: [1, 2, 1], padding: 1 }),
  convTranspose3d: (x, w) => tm.convTranspose3d(x, w, { stride: 2, padding: 1, outputPadding: 1 }),
  maxPool3d: (x) => tm.maxPool3d(x, 2, { stride: 1 }),
  avgPool3d: (x) => tm.avgPool3d(x, 2, { stride: 1, padding: 1 }),
  depthwiseConv2d: (x, w) => tm.depthwiseConv2d(x, w, { padding: 1 }),
};

const padded = (x: Tensor, mode: tm.PadMode, rows: readonly [number, number]): Tensor =>
  tm.pad(x, [[0, 0], [0, 0], rows, [1, 2]], mode);

const listOf = (results: Tensor | readonly Tensor[]): readonly Tensor[] =>
  Array.isArray(results) ? (results as readonly Tensor[]) : [results as Tensor];

function expectClose(got: Tensor, { shape, data }: Stored, name: string): void {
  expect(got.shape, name).toEqual(shape);
  const numbers = Array.from(got.data(), Number);
  data.forEach((want, i) => {
    const [is, wanted] = [numbers[i]!, numberOf(want)];
    if (Object.is(is, wanted) || is === wanted) return;
    if (!(Math.abs(is - wanted) <= 1e-9 * Math.max(1, Math.abs(wanted))))
      expect(is, `${name}, element ${i}`).toBe(wanted);
  });
}

describe("functions agree with PyTorch", () => {
  test.each(cases.map((c, i) => [`${c.name} #${i}`, c] as const))("%s", (_, { name, inputs, results, gradients }) => {
    const call = CALLS[name]!;
    const given = inputs.map(({ shape, data }) => tensor(data.map(numberOf), { shape, dtype: "f64" }));
    const weighted = (...xs: Tensor[]): Tensor => {
      const parts = listOf(call(...(xs as [Tensor, Tensor]))).filter((y) => isFloat(y.dtype));
      return parts
        .map((y) => y.mul(tm.arange(y.elements, "f64").cos().reshape(y.shape)).sum())
        .reduce((a, b) => a.add(b));
    };
    const made = tm.compile((...xs: Tensor[]) => [...listOf(call(...(xs as [Tensor, Tensor])))])(...given);
    expect(made.length).toBe(results.length);
    made.forEach((y, i) => {
      expectClose(y, results[i]!, `result ${i}`);
    });
    if (!gradients) return;
    const argnums = given.map((__, i) => i);
    const found = tm.compile((...xs: Tensor[]) => [...(tm.grad(weighted, { argnums })(...xs) as unknown as Tensor[])])(
      ...given,
    );
    found.forEach((g, i) => {
      expectClose(g, gradients[i]!, `gradient ${i}`);
    });
  });
});

test("a backward pass of gridSample keeps image and grid, not the pixels around every point", () => {
  const gradient = tm.grad((x: Tensor, grid: Tensor) => tm.gridSample(x, grid).square().sum(), { argnums: [0, 1] });
  const [image, points] = [tm.spec([1, 16, 32, 32]), tm.spec([1, 32, 32, 2])];
  const { arenaBytes } = tm.plan(gradient)(image, points);
  // image, its cotangent, the result, and less than one more: pixels would be four
  expect(arenaBytes).toBeLessThan(4 * 4 * image.elements);
});
