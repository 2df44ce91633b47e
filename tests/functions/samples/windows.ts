/** @file Samples of convolutions and pools: stride, padding of every kind, dilation and groups, alone and together. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { average } from "../plain.ts";
import { convOf, convTransposeOf, type Geometry, poolOf } from "../plain-windows.ts";
import type { Family, FunctionSample } from "../sample.ts";

/** The geometry as an option of the API. */
function padding({ pad }: Geometry, axes: number): { padding?: tm.Padding } {
  if (pad === undefined) return {};
  return { padding: pad === "same" ? pad : Array.from({ length: axes }, () => pad) };
}

function options(geometry: Geometry, axes: number): tm.ConvOptions {
  const { stride, dilation, groups } = geometry;
  return {
    ...(stride && { stride }),
    ...(dilation && { dilation }),
    ...(groups && { groups }),
    ...padding(geometry, axes),
  };
}

/** All of one kind, then mixtures. */
const GEOMETRIES: readonly Geometry[] = [
  {},
  { stride: 2 },
  { pad: [1, 1] },
  { pad: [2, 0] },
  { pad: "same" },
  { stride: 2, pad: "same" },
  { stride: 3, pad: "same", dilation: 2 },
  { dilation: 2 },
  { groups: 2 },
  { stride: 2, pad: [1, 2], dilation: 2, groups: 2 },
];

type Case = readonly [x: Shape, w: Shape, geometry: Geometry];

/** Weights are [out, in / groups, …] for a convolution and [in, out / groups, …] for its transpose. */
const cases = (size: Shape, kernel: Shape): readonly Case[] =>
  GEOMETRIES.map((geometry) => [[2, 4, ...size], [6, 4 / (geometry.groups ?? 1), ...kernel], geometry]);

const transposedCases = (size: Shape, kernel: Shape): readonly Case[] =>
  GEOMETRIES.map((geometry) => [[2, 4, ...size], [4, 6 / (geometry.groups ?? 1), ...kernel], geometry]);

const convolutionsByName = { conv1d: tm.conv1d, conv2d: tm.conv2d } as const;

const convolutions: Family = (t) => {
  const make = (name: keyof typeof convolutionsByName, list: readonly Case[]): readonly FunctionSample[] =>
    list.map(([x, w, geometry]) => ({
      name,
      inputs: [tensorType(t, x), tensorType(t, w)],
      call: (a, b) => convolutionsByName[name](a!, b!, options(geometry, name === "conv1d" ? 1 : 2)),
      reference: (a, b) => convOf(a!, b!, geometry),
    }));
  return [
    ...make("conv1d", cases([9], [3])),
    ...make(
      "conv2d",
      cases([5, 7], [3, 2]).filter((_, i) => i !== 9),
    ),
    ...make("conv2d", [
      [[1, 4, 6, 6], [4, 1, 3, 3], { groups: 4, pad: "same" }],
      [[1, 1, 5, 5], [1, 1, 5, 5], {}],
      [[2, 3, 4, 4], [5, 3, 1, 1], {}],
      [[0, 3, 4, 4], [5, 3, 2, 2], {}],
      [[1, 2, 9, 9], [4, 2, 3, 3], { stride: 2, pad: [1, 1], dilation: 2 }],
    ]),
    {
      name: "conv2d",
      inputs: [tensorType(t, [1, 2, 7, 5]), tensorType(t, [3, 2, 3, 3])],
      call: (a, b) => tm.conv2d(a!, b!, { padding: 1 }),
      reference: (a, b) => convOf(a!, b!, { pad: [1, 1] }),
    },
    {
      name: "conv1d",
      inputs: [tensorType(t, [1, 2, 7]), tensorType(t, [3, 2, 3])],
      call: (a, b) => tm.conv1d(a!, b!, { padding: "valid" }),
      reference: (a, b) => convOf(a!, b!),
    },
  ];
};

const transposesByName = { convTranspose1d: tm.convTranspose1d, convTranspose2d: tm.convTranspose2d } as const;

const transposed: Family = (t) => {
  const make = (name: keyof typeof transposesByName, list: readonly Case[]): readonly FunctionSample[] =>
    list.map(([x, w, geometry]) => ({
      name,
      inputs: [tensorType(t, x), tensorType(t, w)],
      call: (a, b) => transposesByName[name](a!, b!, options(geometry, name === "convTranspose1d" ? 1 : 2)),
      reference: (a, b) => convTransposeOf(a!, b!, geometry),
    }));
  return [
    ...make("convTranspose1d", transposedCases([5], [3])),
    ...make("convTranspose2d", transposedCases([3, 4], [3, 2])),
    {
      name: "convTranspose2d",
      inputs: [tensorType(t, [1, 2, 3, 3]), tensorType(t, [2, 3, 3, 3])],
      call: (a, b) => tm.convTranspose2d(a!, b!, { stride: 2, padding: 1, outputPadding: 1 }),
      reference: (a, b) => convTransposeOf(a!, b!, { stride: 2, pad: [1, 1] }, 1),
    },
  ];
};

const POOLS: readonly Geometry[] = [
  {},
  { stride: 1 },
  { stride: 1, pad: "same" },
  { stride: 2, pad: [1, 1] },
  { stride: 2, pad: "same", dilation: 2 },
];

const largest = (held: readonly number[]): number => Math.max(...held);

const poolsByName = {
  maxPool1d: tm.maxPool1d,
  maxPool2d: tm.maxPool2d,
  avgPool1d: tm.avgPool1d,
  avgPool2d: tm.avgPool2d,
} as const;

const pools: Family = (t) => {
  const make = (
    name: keyof typeof poolsByName,
    shape: Shape,
    window: readonly number[],
    geometry: Geometry,
  ): FunctionSample => ({
    name,
    inputs: [tensorType(t, shape)],
    call: (x) => {
      const { groups: _, ...rest } = options(geometry, window.length);
      return poolsByName[name](x!, window, rest);
    },
    reference: (x) => poolOf(x!, window, name.startsWith("max") ? largest : average, geometry),
  });
  return POOLS.flatMap((geometry) => [
    make("maxPool1d", [2, 3, 9], [3], geometry),
    make("avgPool1d", [2, 3, 9], [3], geometry),
    make("maxPool2d", [2, 2, 5, 7], [2, 3], geometry),
    make("avgPool2d", [2, 2, 5, 7], [2, 3], geometry),
  ]).concat([
    make("maxPool1d", [5], [2], {}),
    make("avgPool1d", [5], [2], { pad: [1, 0] }),
    make("maxPool2d", [0, 2, 4, 4], [2, 2], {}),
    make("avgPool2d", [0, 2, 4, 4], [2, 2], { pad: [1, 1] }),
  ]);
};

export const windows: Family = (t) => [...convolutions(t), ...transposed(t), ...pools(t)];
