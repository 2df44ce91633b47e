/** @file Samples of functions that put elements in order. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get, type Plain } from "../plain.ts";
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

export const order: Family = (t) => {
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
