/** @file Samples of products: matmul with every rank on either side, broadcast batches, transposed sides; einsum patterns. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, einsumOf, get, matmulOf, type Plain } from "../plain.ts";
import { type Family, type FunctionSample, i32 } from "../sample.ts";

type Sides = readonly [left: Shape, right: Shape, options?: tm.MatmulOptions];

const SIDES: readonly Sides[] = [
  [
    [3, 5],
    [5, 4],
  ],
  [
    [17, 19],
    [19, 23],
  ],
  [
    [1, 1],
    [1, 1],
  ],
  [[5], [5]],
  [[5], [5, 4]],
  [[3, 5], [5]],
  [
    [2, 3, 5],
    [5, 4],
  ],
  [[2, 3, 5], [5]],
  [[5], [2, 5, 4]],
  [
    [3, 5],
    [2, 5, 4],
  ],
  [
    [2, 3, 5],
    [2, 5, 4],
  ],
  [
    [2, 1, 3, 5],
    [6, 5, 4],
  ],
  [
    [1, 3, 5],
    [4, 5, 2],
  ],
  [[5, 3], [5, 4], { ta: true }],
  [[3, 5], [4, 5], { tb: true }],
  [[5, 3], [4, 5], { ta: true, tb: true }],
  [[2, 5, 3], [5, 4], { ta: true }],
  [[2, 3, 5], [4, 5], { tb: true }],
  [[2, 5, 3], [2, 4, 5], { ta: true, tb: true }],
  [[5], [5, 4], { ta: true }],
  [[1, 5], [4], { tb: true }],
  [
    [0, 5],
    [5, 4],
  ],
  [
    [3, 0],
    [0, 4],
  ],
  [
    [2, 0, 5],
    [5, 4],
  ],
  [
    [0, 3, 5],
    [5, 4],
  ],
];

/** With `ta` a vector on the left is a column: its product with a matrix of k rows makes sense for k = 1 alone. */
const meaningful = ([left, right, options]: Sides): boolean =>
  !(options?.ta && left.length === 1 && right.at(-2) !== 1) &&
  !(options?.tb && right.length === 1 && left.at(-1) !== 1);

const EINSUMS: readonly (readonly [string, ...Shape[]])[] = [
  ["ij,jk->ik", [3, 5], [5, 4]],
  ["ij,jk->ki", [3, 5], [5, 4]],
  ["ij,kj->ik", [3, 5], [4, 5]],
  ["ji,jk->ik", [5, 3], [5, 4]],
  ["ii->i", [4, 4]],
  ["ii->", [4, 4]],
  ["iij->ji", [3, 3, 2]],
  ["ij->ji", [3, 5]],
  ["ij->j", [3, 5]],
  ["ijk->", [2, 3, 4]],
  ["i,i->", [7], [7]],
  ["i,j->ij", [3], [4]],
  ["i,i->i", [5], [5]],
  ["ij,ij->ij", [3, 4], [3, 4]],
  ["ij,i->j", [3, 4], [3]],
  [",ij->ij", [], [2, 3]],
  ["bij,bjk->bik", [2, 3, 4], [2, 4, 5]],
  ["bij,bjk->kbi", [2, 3, 4], [2, 4, 5]],
  ["bhqd,bhkd->bhqk", [2, 2, 3, 4], [2, 2, 5, 4]],
  ["bqhd,bkhd->bhqk", [2, 3, 2, 4], [2, 5, 2, 4]],
  ["ab,bc,cd->ad", [2, 3], [3, 4], [4, 2]],
  ["ai,bi,ci->abc", [2, 3], [2, 3], [4, 3]],
  ["ij,jk,kl,l->i", [2, 3], [3, 4], [4, 2], [2]],
  ["iij,j->i", [3, 3, 2], [2]],
  ["ij,k->ik", [2, 3], [4]],
  ["ij,jk->ik", [0, 3], [3, 2]],
  ["ij,jk->ik", [2, 0], [0, 3]],
];

/** Rows in tiles, where groups start, [rows, k, n], and whether matrices are read transposed. */
type Groups = readonly [
  tile: number,
  offsets: readonly number[],
  sizes: readonly [rows: number, k: number, n: number],
  tb: boolean,
];

const GROUPS: readonly Groups[] = [
  [4, [0, 4, 4, 12], [16, 5, 3], false],
  [4, [0, 4, 4, 12], [16, 5, 3], true],
  [2, [2, 4, 8], [8, 3, 1], false],
  [1, [0, 1, 1, 3], [3, 2, 5], true],
  [3, [0, 6], [6, 4, 2], false],
  [16, [0, 0, 0], [16, 2, 3], false],
  [8, [0, 0], [0, 2, 3], false],
];

const groupedOf =
  (offsets: readonly number[], n: number, tb: boolean) =>
  (x: Plain, w: Plain): Plain =>
    build([x.shape[0]!, n], ([r = 0, j = 0]) => {
      const group = offsets.findIndex((from, e) => from <= r && r < (offsets[e + 1] ?? 0));
      if (group < 0) return 0;
      return Array.from(
        { length: x.shape[1]! },
        (_, l) => get(x, [r, l]) * get(w, tb ? [group, j, l] : [group, l, j]),
      ).reduce((s, v) => s + v, 0);
    });

const grouped: Family = (t) => {
  const types = (shapes: readonly Shape[]) => shapes.map((shape) => tensorType(t, shape));
  return [
    ...GROUPS.map(
      ([tile, offsets, [rows, k, n], tb]): FunctionSample => ({
        name: "groupedMatmul",
        inputs: types([
          [rows, k],
          [offsets.length - 1, ...(tb ? [n, k] : [k, n])],
        ]),
        call: (x, w) => tm.groupedMatmul(x!, w!, tm.tensor(offsets, { dtype: "i32" }), { tile, tb }),
        reference: (x, w) => groupedOf(offsets, n, tb)(x!, w!),
      }),
    ),
  ];
};

export const products: Family = (t) => {
  const types = (shapes: readonly Shape[]) => shapes.map((shape) => tensorType(t, shape));
  return [
    ...SIDES.filter(meaningful).map(
      ([left, right, options]): FunctionSample => ({
        name: "matmul",
        inputs: types([left, right]),
        call: (a, b) => tm.matmul(a!, b!, options),
        reference: (a, b) => matmulOf(a!, b!, options?.ta, options?.tb),
      }),
    ),
    ...EINSUMS.map(
      ([spec, ...shapes]): FunctionSample => ({
        name: "einsum",
        inputs: types(shapes),
        call: (...list) => tm.einsum(spec, ...list),
        reference: (...list) => einsumOf(spec, list),
      }),
    ),
    {
      name: "einsum",
      inputs: types([
        [3, 2],
        [3, 4],
      ]),
      call: (a, b) => tm.einsum("ji,jk", a!, b!),
      reference: (a, b) => einsumOf("ji,jk->ik", [a!, b!]),
    },
    {
      name: "einsum",
      inputs: types([[3, 3]]),
      call: (a) => tm.einsum("ij,jk->ik", a!, a!),
      reference: (a) => einsumOf("ij,jk->ik", [a!, a!]),
    },
    ...grouped(t),
    { name: "dot", inputs: types([[9], [9]]), call: (a, b) => tm.dot(a!, b!), reference: (a, b) => matmulOf(a!, b!) },
    {
      name: "outer",
      inputs: types([[3], [4]]),
      call: (a, b) => tm.outer(a!, b!),
      reference: (a, b) => einsumOf("i,j->ij", [a!, b!]),
    },
    {
      name: "matmul",
      inputs: [i32(3, 4), i32(4, 2)],
      range: [-9, 9],
      call: (a, b) => tm.matmul(a!, b!),
      reference: (a, b) => matmulOf(a!, b!),
    },
  ];
};
