/** @file Samples of functions that put elements in order. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get, indices, type Plain } from "../plain.ts";
import { type Family, i32 } from "../sample.ts";

/** Positions along an axis in order, the first `count` of them; equal elements as they are. */
const ordered = (x: Plain, axis: number, descending: boolean, count = x.shape[axis]!): Plain =>
  build(x.shape.with(axis, count), (index) => {
    const value = (i: number): number => get(x, index.with(axis, i));
    const order = Array.from({ length: x.shape[axis]! }, (_, i) => i);
    order.sort((i, j) => (descending ? value(j) - value(i) : value(i) - value(j)));
    return order[index[axis]!]!;
  });

const elements = (x: Plain, positions: Plain, axis: number): Plain =>
  build(positions.shape, (index) => get(x, index.with(axis, get(positions, index))));

const sorts: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return [
    {
      name: "sort",
      inputs: [x(3, 5)],
      call: (a) => tm.sort(a!),
      reference: (a) => elements(a!, ordered(a!, 1, false), 1),
    },
    {
      name: "sort",
      inputs: [x(4, 3)],
      valuesOnly: true,
      call: (a) => tm.sort(a!, 0, { descending: true }),
      reference: (a) => elements(a!, ordered(a!, 0, true), 0),
    },
    {
      name: "argsort",
      inputs: [i32(3, 9)],
      range: [-2, 3],
      call: (a) => tm.argsort(a!, 1, { descending: true }),
      reference: (a) => ordered(a!, 1, true),
    },
    {
      name: "topK",
      inputs: [x(2, 5)],
      call: (a) => Object.values(tm.topK(a!, 2)) as tm.Tensor[],
      reference: (a) => [elements(a!, ordered(a!, 1, true, 2), 1), ordered(a!, 1, true, 2)],
    },
    {
      name: "topK",
      inputs: [x(4, 2)],
      valuesOnly: true,
      call: (a) => tm.topK(a!, 3, { axis: 0, largest: false }).values,
      reference: (a) => elements(a!, ordered(a!, 0, false, 3), 0),
    },
  ];
};

/** Elements along an axis in order, as lists by their other positions. */
const rowsInOrder = (x: Plain, axis: number, index: readonly number[]): number[] =>
  Array.from({ length: x.shape[axis]! }, (_, i) => get(x, index.toSpliced(axis, 0, i))).sort((a, b) => a - b);

const quantileOf = (x: Plain, axis: number, q: number): Plain =>
  build(x.shape.toSpliced(axis, 1), (index) => {
    const row = rowsInOrder(x, axis, index);
    const place = q * (row.length - 1);
    const [a, b] = [row[Math.floor(place)]!, row[Math.ceil(place)]!];
    return a + (b - a) * (place % 1);
  });

const flat = (x: Plain): Plain => ({ shape: [x.data.length], data: x.data });

const quantiles: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return [
    {
      name: "quantile",
      inputs: [x(2, 5)],
      call: (a) => tm.quantile(a!, 0.3, 1),
      reference: (a) => quantileOf(a!, 1, 0.3),
    },
    {
      name: "quantile",
      inputs: [x(4, 2)],
      valuesOnly: true,
      call: (a) => tm.quantile(a!, [0.25, 0.5], undefined, { method: "linear", keepDims: true }),
      reference: (a) => ({
        shape: [2, 1, 1],
        data: [0.25, 0.5].map((q) => quantileOf(flat(a!), 0, q).data[0]!),
      }),
    },
    { name: "median", inputs: [x(4, 3)], call: (a) => tm.median(a!, 0), reference: (a) => quantileOf(a!, 0, 0.5) },
  ];
};

const belowCount = (x: Plain, value: number): number => Array.from(x.data).filter((v) => v < value).length;

const counts: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return [
    {
      name: "searchsorted",
      inputs: [x(7), x(2, 3)],
      call: (a, v) => tm.searchsorted(tm.sort(a!), v!),
      reference: (a, v) => build(v!.shape, (index) => belowCount(a!, get(v!, index))),
    },
    {
      name: "bincount",
      inputs: [i32(2, 4), x(2, 4)],
      range: [
        [-1, 4],
        [-2, 2],
      ],
      call: (i, w) => tm.bincount(i!, 3, w!),
      reference: (i, w) =>
        build([3], ([bin]) => Array.from(w!.data).reduce((sum, v, e) => sum + (i!.data[e] === bin ? v : 0), 0)),
    },
    {
      name: "histogram",
      inputs: [x(9)],
      smooth: false,
      call: (a) => tm.histogram(a!, 4, { range: [-1, 1] }).counts,
      reference: (a) =>
        build([4], ([bin]) => Array.from(a!.data).filter((v) => Math.floor((v + 1) * 2) === bin).length),
    },
    {
      name: "unique",
      inputs: [i32(2, 5)],
      range: [0, 4],
      call: (a) => Object.values(tm.unique(a!, 5, { fill: -1 })) as tm.Tensor[],
      reference(a) {
        const distinct = [...new Set(Array.from(a!.data))].sort((p, q) => p - q);
        const occurs = (v: number): number => Array.from(a!.data).filter((other) => other === v).length;
        return [
          build([5], ([i]) => distinct[i!] ?? -1),
          build([5], ([i]) => (i! < distinct.length ? occurs(distinct[i!]!) : 0)),
          build(a!.shape, (index) => distinct.indexOf(get(a!, index))),
          build([], () => distinct.length),
        ];
      },
    },
    {
      name: "nonzero",
      inputs: [i32(2, 3)],
      range: [-1, 2],
      call: (a) => Object.values(tm.nonzero(a!, 4)) as tm.Tensor[],
      reference(a) {
        const found = indices(a!.shape).filter((index) => get(a!, index) !== 0);
        return [build([4, 2], ([r, axis]) => found[r!]?.[axis!] ?? -1), build([], () => found.length)];
      },
    },
  ];
};

/** Along an axis, from one element to the next. */
const running = (x: Plain, axis: number, next: (so: number, v: number) => number): Plain =>
  build(x.shape, (index) => {
    let so = get(x, index.with(axis, 0));
    for (let i = 1; i <= index[axis]!; i++) so = next(so, get(x, index.with(axis, i)));
    return so;
  });

const cumulative: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return [
    { name: "cummax", inputs: [x(2, 5)], call: (a) => tm.cummax(a!, 1), reference: (a) => running(a!, 1, Math.max) },
    { name: "cummin", inputs: [x(5, 2)], call: (a) => tm.cummin(a!), reference: (a) => running(a!, 0, Math.min) },
    {
      name: "logcumsumexp",
      inputs: [x(2, 4)],
      call: (a) => tm.logcumsumexp(a!, 1),
      reference: (a) => running(a!, 1, (so, v) => Math.log(Math.exp(so) + Math.exp(v))),
    },
    {
      name: "logcumsumexp",
      inputs: [x(4)],
      valuesOnly: true,
      call: (a) => tm.logcumsumexp(a!, 0, { reverse: true }).flip(0),
      reference: (a) =>
        running({ ...a!, data: Array.from(a!.data).reverse() }, 0, (so, v) => Math.log(Math.exp(so) + Math.exp(v))),
    },
  ];
};

export const order: Family = (t) => [...sorts(t), ...quantiles(t), ...counts(t), ...cumulative(t)];
