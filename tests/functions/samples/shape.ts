/** @file Samples of functions that move elements about, join, cut and repeat tensors, or make them from nothing. */

import type { Tensor } from "../../../src/api/index.ts";
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get, type Index, type Plain } from "../plain.ts";
import { bool, type Family, type FunctionSample, i32 } from "../sample.ts";

/** A result whose element at an index is the input's element at another, or a number. */
const moved =
  (shape: Shape, from: (index: Index) => Index | number) =>
  (x: Plain): Plain =>
    build(shape, (index) => {
      const place = from(index);
      return typeof place === "number" ? place : get(x, place);
    });

const sameData =
  (shape: Shape) =>
  (x: Plain): Plain => ({ ...x, shape });

const movement: Family = (t) => {
  const x = (...shape: Shape) => [tensorType(t, shape)];
  return [
    { name: "reshape", inputs: x(3, 4), call: (a) => tm.reshape(a!, [2, -1]), reference: sameData([2, 6]) },
    { name: "reshape", inputs: x(1, 1), call: (a) => tm.reshape(a!, []), reference: sameData([]) },
    { name: "reshape", inputs: x(0, 3), call: (a) => tm.reshape(a!, [3, 0]), reference: sameData([3, 0]) },
    {
      name: "transpose",
      inputs: x(3, 5),
      call: (a) => tm.transpose(a!),
      reference: moved([5, 3], ([i, j]) => [j!, i!]),
    },
    {
      name: "transpose",
      inputs: x(2, 3, 4),
      call: (a) => tm.transpose(a!, [1, -1, 0]),
      reference: moved([3, 4, 2], ([i, j, k]) => [k!, i!, j!]),
    },
    { name: "transpose", inputs: x(0, 3), call: (a) => tm.transpose(a!), reference: sameData([3, 0]) },
    { name: "transpose", inputs: x(), call: (a) => tm.transpose(a!), reference: sameData([]) },
    {
      name: "swapAxes",
      inputs: x(2, 3, 4),
      call: (a) => tm.swapAxes(a!, 0, -1),
      reference: moved([4, 3, 2], ([i, j, k]) => [k!, j!, i!]),
    },
    {
      name: "broadcastTo",
      inputs: x(3, 1),
      call: (a) => tm.broadcastTo(a!, [2, 3, 4]),
      reference: moved([2, 3, 4], (i) => i),
    },
    { name: "broadcastTo", inputs: x(), call: (a) => tm.broadcastTo(a!, [5]), reference: moved([5], () => []) },
    {
      name: "broadcastTo",
      inputs: x(1, 3),
      call: (a) => tm.broadcastTo(a!, [0, 3]),
      reference: moved([0, 3], (i) => i),
    },
    { name: "expandDims", inputs: x(3, 2), call: (a) => tm.expandDims(a!, [0, -1]), reference: sameData([1, 3, 2, 1]) },
    { name: "squeeze", inputs: x(1, 3, 1), call: (a) => tm.squeeze(a!), reference: sameData([3]) },
    { name: "squeeze", inputs: x(1, 3, 1), call: (a) => tm.squeeze(a!, -1), reference: sameData([1, 3]) },
    { name: "flatten", inputs: x(2, 3, 2), call: (a) => tm.flatten(a!), reference: sameData([12]) },
    { name: "flatten", inputs: x(2, 3, 2), call: (a) => tm.flatten(a!, 1), reference: sameData([2, 6]) },
    { name: "flip", inputs: x(3, 5), call: (a) => tm.flip(a!), reference: moved([3, 5], ([i, j]) => [2 - i!, 4 - j!]) },
    { name: "flip", inputs: x(3, 5), call: (a) => tm.flip(a!, 1), reference: moved([3, 5], ([i, j]) => [i!, 4 - j!]) },
    { name: "flip", inputs: [bool(7)], call: (a) => tm.flip(a!), reference: moved([7], ([i]) => [6 - i!]) },
  ];
};

/** Zero, or another value, around the input. */
const framed = (shape: Shape, lo: readonly number[], size: Shape, value: number) =>
  moved(shape, (index) => {
    const at = index.map((i, axis) => i - lo[axis]!);
    return at.every((i, axis) => i >= 0 && i < size[axis]!) ? at : value;
  });

const sliced: Family = (t) => {
  const x = (...shape: Shape) => [tensorType(t, shape)];
  return [
    {
      name: "slice",
      inputs: x(5, 7),
      call: (a) => tm.slice(a!, [[1, 4]]),
      reference: moved([3, 7], ([i, j]) => [i! + 1, j!]),
    },
    {
      name: "slice",
      inputs: x(5, 7),
      call: (a) => tm.slice(a!, [-2, [null, null, 3]]),
      reference: moved([3], ([j]) => [3, 3 * j!]),
    },
    {
      name: "slice",
      inputs: x(5, 7),
      call: (a) =>
        tm.slice(a!, [
          [null, null, -2],
          [-1, 1, -3],
        ]),
      reference: moved([3, 2], ([i, j]) => [4 - 2 * i!, 6 - 3 * j!]),
    },
    { name: "slice", inputs: x(5, 7), call: (a) => tm.slice(a!, [[4, 2]]), reference: moved([0, 7], (i) => i) },
    { name: "slice", inputs: x(4), call: (a) => tm.slice(a!, [2]), reference: moved([], () => [2]) },
  ];
};

const padded: Family = (t) => {
  const x = (...shape: Shape) => [tensorType(t, shape)];
  return [
    { name: "pad", inputs: x(2, 3), call: (a) => tm.pad(a!, 1), reference: framed([4, 5], [1, 1], [2, 3], 0) },
    {
      name: "pad",
      inputs: x(2, 3),
      call: (a) =>
        tm.pad(
          a!,
          [
            [0, 2],
            [3, 0],
          ],
          -1.5,
        ),
      reference: framed([4, 6], [0, 3], [2, 3], -1.5),
    },
    { name: "pad", inputs: x(0), call: (a) => tm.pad(a!, [[1, 2]], 7), reference: moved([3], () => 7) },
    { name: "pad", inputs: [i32(3)], call: (a) => tm.pad(a!, 1, 9), reference: framed([5], [1], [3], 9) },
    {
      name: "split",
      inputs: x(4, 6),
      call: (a) => tm.split(a!, 3, 1),
      reference: (a) => [0, 2, 4].map((at) => moved([4, 2], ([i, j]) => [i!, j! + at])(a)),
    },
    {
      name: "split",
      inputs: x(4, 2),
      call: (a) => tm.split(a!, [1, 0, 3]),
      reference: (a) => [
        moved([1, 2], (i) => i)(a),
        moved([0, 2], (i) => i)(a),
        moved([3, 2], ([i, j]) => [i! + 1, j!])(a),
      ],
    },
    {
      name: "tile",
      inputs: x(2, 3),
      call: (a) => tm.tile(a!, [2, 1, 3]),
      reference: moved([2, 2, 9], ([, i, j]) => [i!, j! % 3]),
    },
    { name: "tile", inputs: x(3), call: (a) => tm.tile(a!, [0]), reference: moved([0], (i) => i) },
    {
      name: "repeat",
      inputs: x(2, 3),
      call: (a) => tm.repeat(a!, 2, 1),
      reference: moved([2, 6], ([i, j]) => [i!, j! >> 1]),
    },
  ];
};

const triangles: Family = (t) => {
  const x = (...shape: Shape) => [tensorType(t, shape)];
  return [
    {
      name: "diagonal",
      inputs: x(2, 4, 4),
      call: (a) => tm.diagonal(a!),
      reference: moved([2, 4], ([b, i]) => [b!, i!, i!]),
    },
    {
      name: "diagonal",
      inputs: x(3, 2, 3),
      call: (a) => tm.diagonal(a!, 0, 2),
      reference: moved([2, 3], ([b, i]) => [i!, b!, i!]),
    },
    { name: "diagonal", inputs: x(2, 0, 0), call: (a) => tm.diagonal(a!), reference: moved([2, 0], (i) => i) },
    {
      name: "tril",
      inputs: x(4, 5),
      call: (a) => tm.tril(a!),
      reference: moved([4, 5], ([i, j]) => (j! <= i! ? [i!, j!] : 0)),
    },
    {
      name: "tril",
      inputs: x(2, 3, 3),
      call: (a) => tm.tril(a!, -1),
      reference: moved([2, 3, 3], ([b, i, j]) => (j! < i! ? [b!, i!, j!] : 0)),
    },
    {
      name: "triu",
      inputs: x(4, 5),
      call: (a) => tm.triu(a!, 1),
      reference: moved([4, 5], ([i, j]) => (j! > i! ? [i!, j!] : 0)),
    },
    {
      name: "triu",
      inputs: [i32(3, 3)],
      call: (a) => tm.triu(a!),
      reference: moved([3, 3], ([i, j]) => (j! >= i! ? [i!, j!] : 0)),
    },
  ];
};

const joined: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  return [
    {
      name: "concat",
      inputs: [x(2, 3), x(1, 3), x(0, 3)],
      call: (...list) => tm.concat(list),
      reference: (a, b) => ({ shape: [3, 3], data: [...Array.from(a!.data), ...Array.from(b!.data)] }),
    },
    {
      name: "concat",
      inputs: [x(3, 2), x(3, 5)],
      call: (...list) => tm.concat(list, -1),
      reference: (a, b) => build([3, 7], ([i, j]) => (j! < 2 ? get(a!, [i!, j!]) : get(b!, [i!, j! - 2]))),
    },
    {
      name: "concat",
      inputs: [x(4)],
      call: (a) => tm.concat([a!, a!.square(), a!]),
      reference: (a) => build([12], ([i]) => a!.data[i! % 4]! ** (i! >> 2 === 1 ? 2 : 1)),
    },
    {
      name: "stack",
      inputs: [x(3), x(3)],
      call: (...list) => tm.stack(list, 1),
      reference: (a, b) => build([3, 2], ([i, j]) => get(j ? b! : a!, [i!])),
    },
    {
      name: "stack",
      inputs: [x(), x(), x()],
      call: (...list) => tm.stack(list),
      reference: (...list) => build([3], ([i]) => list[i!]!.data[0]!),
    },
  ];
};

/** Tensors from nothing: what they hold at an index. */
const made: Family = (t) => {
  const table: readonly (readonly [string, () => Tensor, Shape, (index: Index) => number])[] = [
    ["eye", () => tm.eye(3, 4, t), [3, 4], ([i, j]) => Number(i === j)],
    ["eye", () => tm.eye(2, 2, "bool"), [2, 2], ([i, j]) => Number(i === j)],
    ["eye", () => tm.eye(0, 2, t), [0, 2], () => 0],
    ["linspace", () => tm.linspace(-1, 2, 7, t), [7], ([i]) => -1 + i! / 2],
    ["linspace", () => tm.linspace(3, 5, 1, t), [1], () => 3],
    ["arange", () => tm.arange(5), [5], ([i]) => i!],
    ["arange", () => tm.arange(7, -4, -3), [4], ([i]) => 7 - 3 * i!],
    ["arange", () => tm.arange(3, 3), [0], () => 0],
    ["full", () => tm.full([2, 3], 1.5, t), [2, 3], () => 1.5],
    ["full", () => tm.full([], true), [], () => 1],
    ["zeros", () => tm.zeros([2, 0], t), [2, 0], () => 0],
    ["ones", () => tm.ones([3], "i32"), [3], () => 1],
  ];
  const x = [tensorType(t, [3, 2])];
  return [
    ...table.map(([name, call, shape, at]): FunctionSample => {
      return { name, inputs: [], call, reference: () => build(shape, at) };
    }),
    { name: "zerosLike", inputs: x, call: (a) => tm.zerosLike(a!), reference: () => build([3, 2], () => 0) },
    { name: "onesLike", inputs: x, call: (a) => tm.onesLike(a!), reference: () => build([3, 2], () => 1) },
  ];
};

export const shape: Family = (t) => [
  ...movement(t),
  ...sliced(t),
  ...padded(t),
  ...triangles(t),
  ...joined(t),
  ...made(t),
];
