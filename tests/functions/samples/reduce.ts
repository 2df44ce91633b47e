/** @file Samples of reductions: all axes, one, several, kept, negative; one element; nothing to reduce. */

import type { Axes, ReduceOptions, Tensor } from "../../../src/api/index.ts";
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { along, average, type Plain, reduceBy, spread, total } from "../plain.ts";
import { bool, type Family, type Float, type FunctionSample, i32, type Range } from "../sample.ts";

type Reduction = (x: Tensor, axes?: Axes, options?: ReduceOptions) => Tensor;

interface Case {
  readonly shape: Shape;
  readonly axes?: Axes;
  readonly keepDims?: boolean;
}

const CASES: readonly Case[] = [
  { shape: [3, 5] },
  { shape: [3, 37], axes: 1 },
  { shape: [37, 3], axes: 0 },
  { shape: [2, 3, 4], axes: [0, -1], keepDims: true },
  { shape: [2, 3, 4], axes: -2 },
  { shape: [] },
  { shape: [4, 1, 2], axes: [1] },
  { shape: [0, 3], axes: 1 },
];

/** An empty sum and an empty product have values. */
const EMPTY: readonly Case[] = [{ shape: [3, 0], axes: 1 }, { shape: [0] }];

const listOf = (axes: Axes | undefined): readonly number[] | undefined => (typeof axes === "number" ? [axes] : axes);

function samples(
  name: string,
  fn: Reduction,
  f: (values: readonly number[]) => number,
  t: Float | "i32" | "bool",
  cases: readonly Case[],
  range: Range = [-2, 2],
): readonly FunctionSample[] {
  return cases.map(({ shape, axes, keepDims }) => ({
    name,
    inputs: [tensorType(t, shape)],
    range,
    call: (x: Tensor) => (keepDims ? fn(x, axes, { keepDims }) : fn(x, axes)),
    reference: reduceBy(f, listOf(axes), keepDims),
  }));
}

const largest = (values: readonly number[]): number => Math.max(...values);
const smallest = (values: readonly number[]): number => Math.min(...values);
const productOf = (values: readonly number[]): number => values.reduce((p, v) => p * v, 1);
const logsumexpOf = (values: readonly number[]): number => Math.log(total(values.map(Math.exp)));
const normOf = (values: readonly number[]): number => Math.sqrt(total(values.map((v) => v * v)));
const first = (values: readonly number[], best: number): number => values.indexOf(best);

const several = CASES.filter(({ shape }) => shape.length > 0 && !shape.includes(0));

const spreads: Family = (t) =>
  several
    .filter(({ shape }) => !shape.includes(1))
    .flatMap(({ shape, axes, keepDims = false }): readonly FunctionSample[] => {
      const inputs = [tensorType(t, shape)];
      const by = (f: (values: readonly number[]) => number) => reduceBy(f, listOf(axes), keepDims);
      const options = { keepDims, ddof: 1 };
      return [
        { name: "variance", inputs, call: (x) => tm.variance(x!, axes, { keepDims }), reference: by((v) => spread(v)) },
        { name: "variance", inputs, call: (x) => tm.variance(x!, axes, options), reference: by((v) => spread(v, 1)) },
        {
          name: "std",
          inputs,
          call: (x) => tm.std(x!, axes, { keepDims }),
          reference: by((v) => Math.sqrt(spread(v))),
        },
      ];
    });

/** Positions along one axis or among all; values are far apart, so that f32 has the same winner. */
function positions(t: Float | "i32"): readonly FunctionSample[] {
  const table = [
    ["argmax", tm.argmax, (v: readonly number[]) => first(v, largest(v))],
    ["argmin", tm.argmin, (v: readonly number[]) => first(v, smallest(v))],
  ] as const;
  const cases: readonly { shape: Shape; axis?: number; keepDims?: boolean }[] = [
    { shape: [4, 19], axis: 1 },
    { shape: [19, 4], axis: 0 },
    { shape: [2, 3, 4], axis: -2, keepDims: true },
    { shape: [3, 5] },
    { shape: [3, 5], keepDims: true },
    { shape: [] },
    { shape: [0, 3], axis: 1 },
  ];
  return table.flatMap(([name, fn, f]) =>
    cases.map(({ shape, axis, keepDims = false }) => ({
      name,
      inputs: [tensorType(t, shape)],
      range: [-9, 9] as const,
      call: (x: Tensor) => fn(x, axis, { keepDims }),
      reference: reduceBy(f, axis === undefined ? undefined : [axis], keepDims),
    })),
  );
}

const running = (reverse: boolean, axis: number) => (x: Plain) =>
  along(x, [axis], (v) => v.map((_, i) => total(reverse ? v.slice(i) : v.slice(0, i + 1))));

const multiplying = (reverse: boolean, axis: number) => (x: Plain) =>
  along(x, [axis], (v) => v.map((_, i) => productOf(reverse ? v.slice(i) : v.slice(0, i + 1))));

/** y_i = scale_i · y_(i-1) + x_i along an axis. */
const recurring = (reverse: boolean, axis: number) => (x: Plain, scale: Plain) => {
  const numbers = { shape: x.shape, data: Array.from(x.data, (_, i) => i) };
  return along(numbers, [axis], (line) => {
    const order = reverse ? [...line].reverse() : line;
    let y = 0;
    const found = order.map((e) => {
      y = (scale.data[e] as number) * y + (x.data[e] as number);
      return y;
    });
    return reverse ? found.reverse() : found;
  });
};

const cumulative: Family = (t) =>
  [
    { shape: [37], axis: 0, reverse: false },
    { shape: [3, 5], axis: 1, reverse: true },
    { shape: [5, 3], axis: 0, reverse: false },
    { shape: [2, 3, 4], axis: -2, reverse: true },
    { shape: [0, 3], axis: 0, reverse: false },
  ].flatMap(({ shape, axis, reverse }): readonly FunctionSample[] => [
    {
      name: "cumsum",
      inputs: [tensorType(t, shape)],
      call: (x) => tm.cumsum(x!, axis, { reverse }),
      reference: running(reverse, axis),
    },
    {
      name: "cumprod",
      inputs: [tensorType(t, shape)],
      range: [-1.5, 1.5],
      call: (x) => tm.cumprod(x!, axis, { reverse }),
      reference: multiplying(reverse, axis),
    },
    {
      name: "linearScan",
      inputs: [tensorType(t, shape), tensorType(t, shape)],
      range: [-1.2, 1.2],
      call: (x, scale) => tm.linearScan(x!, scale!, axis, { reverse }),
      reference: recurring(reverse, axis),
    },
  ]);

export const reduce: Family = (t) => [
  ...samples("sum", tm.sum, total, t, [...CASES, ...EMPTY]),
  ...samples("sum", tm.sum, total, "i32", CASES),
  ...samples("sum", tm.sum, total, "bool", CASES),
  ...samples("mean", tm.mean, average, t, CASES),
  ...samples("max", tm.max, largest, t, CASES),
  ...samples("max", tm.max, largest, "i32", CASES, [-99, 99]),
  ...samples("min", tm.min, smallest, t, CASES),
  ...samples("min", tm.min, smallest, "i32", CASES, [-99, 99]),
  ...samples("prod", tm.prod, productOf, t, [...CASES, ...EMPTY], [0.5, 1.5]),
  ...samples("logsumexp", tm.logsumexp, logsumexpOf, t, CASES),
  ...samples("norm", tm.norm, normOf, t, CASES),
  ...samples("any", tm.any, largest, "bool", several),
  ...samples("all", tm.all, smallest, "bool", several),
  ...spreads(t),
  ...positions(t),
  ...positions("i32"),
  ...cumulative(t),
  { name: "cumprod", inputs: [i32(4, 3)], call: (x) => tm.cumprod(x!, 1), reference: multiplying(false, 1) },
  { name: "cumsum", inputs: [i32(4, 3)], call: (x) => tm.cumsum(x!, 1), reference: running(false, 1) },
  { name: "sum", inputs: [bool(5, 4)], call: (x) => tm.sum(x!, 0), reference: reduceBy(total, [0]) },
];
