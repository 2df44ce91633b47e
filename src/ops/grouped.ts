/**
 * @file Products of groups of rows, each with a matrix of its own, where how many rows a group has is data. Rows are sorted by
 * group and every group starts at a multiple of a tile, so a tile of rows is a plain product with one matrix:
 *
 *   rows     0 ····· 31   32 ····· 63   64 ····· 95   96 ···· 127        groups  i32[4] = 0 0 2 3      four tiles of 32 rows
 *   matrix      w₀            w₀            w₂           none            offsets i32[4] = 0 64 64 96   three groups
 *
 *   grouped_matmul(x [R, k], w [E, k, n], groups [R / tile])     y[r] = x[r] · w[groups[⌊r / tile⌋]]; 0 where that is no group
 *   grouped_outer(x [R, m], y [R, n], offsets [E + 1])           z[e] = Σ x[r] ⊗ y[r] over offsets[e] ≤ r < offsets[e + 1]
 *
 * Each is linear in both factors; the derivatives of the one are the other and itself. `groups` and `offsets` say the same, and
 * derivatives hold where they do: groups ascend, offsets ascend in whole tiles.
 *
 *   permute_rows(x [N, …], to [M], back [N · copies])     y[m] = x[⌊to[m] / copies⌋]; 0 where to[m] is not in [0, N · copies)
 *
 * reads rows of x, each at most `copies` times, and knows where each is read: back[to[m]] = m, out of range where none is. So its
 * transpose reads, too, and nothing is added up in memory. A copy of the rows would be no cheaper to read: it is a view that
 * products see through.
 */
import { TidemarkError } from "../base/errors.ts";
import { at as item } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { LowerContext, OpDef, Sample } from "../ir/op.ts";
import { elementsOf, type Shape, sameShape, type TensorType, tensorType, typeText } from "../ir/type.ts";
import { DTYPES, NUMBER_TYPES, type NumberType, typeOf } from "../kernel/dtype.ts";
import { constant, type Expr, type Index } from "../kernel/expr.ts";
import { addIndex, constIndex, divIndex, scaleIndex, valueIndex, ZERO } from "../kernel/index-math.ts";
import { Position } from "../kernel/position.ts";
import { and, clamp, le, lt, pick } from "../kernel/scalar-ops.ts";
import { broadcast, sum } from "./broadcast.ts";
import { requireIndices, requireInputs, requireSameDtype } from "./checks.ts";
import { full, iota } from "./create.ts";
import { apply, defineOp, requireDomain } from "./define.ts";
import * as elementwise from "./elementwise.ts";
import { groupedMatmulOfBatch, groupedOuterOfBatch, permuteRowsOfBatch } from "./grouped-batch.ts";
import { guarded } from "./guard.ts";
import { reshape } from "./movement.ts";
import { addIn, mulIn, tabulate } from "./reference.ts";
import { type CastAttrs, cast } from "./select.ts";

export type GroupedMatmulAttrs = {
  /** Matrices are read with rows and columns exchanged: w is [E, n, k]. */
  readonly tb: boolean;
};

export type GroupedOuterAttrs = {
  /** Tiles of rows: groups start at multiples of R / tiles. */
  readonly tiles: number;
};

export type PermuteRowsAttrs = { readonly copies: number };

function wrongShapes(name: string, types: readonly TensorType[], wanted: string): never {
  throw new TidemarkError("ShapeMismatch", `${name}: got ${types.map(typeText).join(", ")}`, {
    help: `it takes ${wanted}`,
  });
}

const FORMS = {
  grouped_matmul: "x [R, k], w [E, k, n] (or [E, n, k] with tb) and i32 groups of R rows in equal tiles",
  grouped_outer: "x [R, m], y [R, n] and i32 offsets [E + 1]",
  permute_rows: "x [N, …], i32 numbers of rows [M] and i32 places [N · copies]",
};

/** Counts: `compare(table, number)` over the last axis, for as many numbers as `count`, times a factor. */
function countBelow(
  b: Build,
  table: Value,
  count: number,
  { less, scale, by }: { readonly less: boolean; readonly scale: number; readonly by: number },
): Value {
  const shape = [count, item(table.type.shape, 0)];
  const constantOf = (value: number): Value => b.call(full, [], { dtype: "i32", shape, value });
  const numbers = apply(b, elementwise.mul, b.call(iota, [], { shape, axis: 0 }), constantOf(scale));
  const wide = b.call(broadcast, [table], { shape, axes: [1] });
  const holds = apply(b, less ? elementwise.lt : elementwise.le, wide, numbers);
  const counted = b.call(sum, [b.call<CastAttrs>(cast, [holds], { dtype: "i32" })], { axes: [1] });
  return apply(b, elementwise.mul, counted, b.call(full, [], { dtype: "i32", shape: [count], value: by }));
}

/** offsets[e] = tile · #{tiles of groups before e}, for e from 0 to E. */
function offsetsOf(b: Build, groups: Value, count: number, rows: number): Value {
  const tile = rows / Math.max(1, item(groups.type.shape, 0));
  return countBelow(b, groups, count + 1, { less: true, scale: 1, by: tile });
}

/** groups[t] = #{offsets up to t · tile} - 1: -1 before all groups, E after them. */
function groupsOf(b: Build, offsets: Value, tiles: number, rows: number): Value {
  const counted = countBelow(b, offsets, tiles, { less: false, scale: rows / Math.max(1, tiles), by: 1 });
  return apply(b, elementwise.sub, counted, b.call(full, [], { dtype: "i32", shape: [tiles], value: 1 }));
}

// ---- grouped_matmul -------------------------------------------------------------------------------------------------

interface Grouped {
  readonly rows: number;
  readonly groups: number;
  readonly tiles: number;
  readonly tile: number;
  readonly n: number;
  readonly k: number;
}

function groupedShape(inputs: readonly TensorType[], { tb }: GroupedMatmulAttrs): Grouped {
  const [x, w, table] = [item(inputs, 0).shape, item(inputs, 1).shape, item(inputs, 2).shape];
  const [rows, tiles] = [item(x, 0), item(table, 0)];
  return { rows, groups: item(w, 0), tiles, tile: rows / Math.max(1, tiles), n: item(w, tb ? 1 : 2), k: item(x, 1) };
}

function inferGroupedMatmul(inputs: readonly TensorType[], attrs: GroupedMatmulAttrs): readonly TensorType[] {
  const name = "grouped_matmul";
  requireInputs(name, ["x", "w", "groups"], inputs);
  const [x, w, groups] = [item(inputs, 0), item(inputs, 1), item(inputs, 2)];
  requireDomain(name, "number", [x, w]);
  requireSameDtype(name, ["x", "w"], x, w);
  requireIndices(name, "groups", groups);
  const ranks = [x, w, groups].map(({ shape }) => shape.length);
  if (!sameShape(ranks, [2, 3, 1])) wrongShapes(name, inputs, FORMS[name]);
  const { rows, tiles, n, k } = groupedShape(inputs, attrs);
  const even = tiles === 0 ? rows === 0 : rows % tiles === 0 && rows > 0;
  if (!even || item(w.shape, attrs.tb ? 2 : 1) !== k) wrongShapes(name, inputs, FORMS[name]);
  return [tensorType(x.dtype, [rows, n])];
}

/** The group of a tile: its number, kept in range, and whether it is one. */
function groupAt(c: LowerContext<GroupedMatmulAttrs>, tile: Index, groups: number): { index: Index; is: Expr } {
  const raw = item(c.inputs, 2)(Position.at(item(c.inTypes, 2).shape, [tile]));
  const last = Math.max(0, groups - 1);
  return { index: valueIndex(clamp(raw, 0, last), 0, last), is: and(le(0, raw), lt(raw, groups)) };
}

function groupedSamples(): readonly Sample<GroupedMatmulAttrs>[] {
  const one = (
    dtype: NumberType,
    [rows, tiles, groups]: readonly [number, number, number],
    [k, n]: readonly [number, number],
    more: { readonly tb: boolean; readonly smooth?: boolean; readonly among?: readonly [number, number] },
  ): Sample<GroupedMatmulAttrs> => {
    const { tb, smooth = false, among = [-1, groups + 1] } = more;
    const w = [groups, ...(tb ? [n, k] : [k, n])];
    const range = typeOf(dtype).samples;
    return {
      inputs: [tensorType(dtype, [rows, k]), tensorType(dtype, w), tensorType("i32", [tiles])],
      attrs: { tb },
      range: [range, range, among],
      smooth,
    };
  };
  return [false, true].flatMap((tb) => [
    ...NUMBER_TYPES.map((dtype) => one(dtype, [6, 3, 3], [5, 4], { tb })),
    one("f32", [96, 3, 3], [33, 40], { tb }),
    one("f32", [32, 4, 2], [20, 19], { tb }),
    one("f32", [6, 3, 2], [600, 3], { tb }),
    one("f32", [3, 3, 2], [5, 7], { tb }),
    one("f32", [6, 2, 2], [5, 1], { tb }),
    one("f32", [4, 2, 2], [0, 3], { tb }),
    one("f32", [0, 0, 2], [4, 3], { tb }),
    one("f32", [4, 2, 0], [4, 3], { tb }),
    // the derivative holds where groups ascend: one group, or one tile
    one("f32", [4, 2, 1], [5, 3], { tb, smooth: true, among: [0, 1] }),
    one("f32", [4, 1, 3], [5, 3], { tb, smooth: true }),
  ]);
}

export const groupedMatmul: OpDef<GroupedMatmulAttrs> = defineOp<GroupedMatmulAttrs>({
  name: "grouped_matmul",
  batch: { kind: "general", apply: groupedMatmulOfBatch(() => groupedMatmul) },
  defaults: { tb: false },
  infer: inferGroupedMatmul,
  derivative: {
    kind: "multilinear",
    linear: [0, 1],
    transpose(b, { x, ct, input, attrs: { tb } }) {
      const [left, w, groups] = [item(x, 0), item(x, 1), item(x, 2)];
      if (input === 0) return b.call(groupedMatmul, [ct, w, groups], { tb: !tb });
      const offsets = offsetsOf(b, groups, item(w.type.shape, 0), item(left.type.shape, 0));
      const factors = tb ? [ct, left] : [left, ct];
      return b.call(groupedOuter, [...factors, offsets], { tiles: item(groups.type.shape, 0) });
    },
  },
  cost(inputs, _, attrs) {
    const { rows, n, k } = groupedShape(inputs, attrs);
    return { flops: 2 * rows * n * k };
  },
  lower: {
    kind: "contract",
    parts(inputs, attrs) {
      const { groups, tiles, tile, n, k } = groupedShape(inputs, attrs);
      const [x, w] = [item(inputs, 0).shape, item(inputs, 1).shape];
      return [
        {
          batch: [tiles],
          m: tile,
          n,
          k,
          a: (c, [t = ZERO], i, l) => item(c.inputs, 0)(Position.at(x, [addIndex(scaleIndex(t, tile), i), l])),
          b(c, [t = ZERO], l, j) {
            const { index } = groupAt(c, t, groups);
            return item(c.inputs, 1)(Position.at(w, attrs.tb ? [index, j, l] : [index, l, j]));
          },
          span: (c, [t = ZERO]) => ({
            from: ZERO,
            to: valueIndex(pick(groupAt(c, t, groups).is, constant("i32", k), 0), 0, k),
            whole: true,
            terms: tiles * k,
          }),
        },
      ];
    },
  },
  evaluate({ inputs, inTypes, outTypes, attrs }) {
    const { groups, tile, n, k } = groupedShape(inTypes, attrs);
    const { dtype, shape } = item(outTypes, 0);
    const [x, w, table] = [item(inputs, 0), item(inputs, 1), item(inputs, 2)];
    const value = ([r = 0, j = 0]: readonly number[]): number => {
      const e = item(table, Math.floor(r / tile));
      let total = 0;
      if (e < 0 || e >= groups) return total;
      for (let l = 0; l < k; l++) {
        const factor = item(w, e * k * n + (attrs.tb ? j * k + l : l * n + j));
        total = addIn(dtype, total, mulIn(dtype, item(x, r * k + l), factor));
      }
      return total;
    };
    return [tabulate(shape, value)];
  },
  samples: () => groupedSamples(),
});

// ---- grouped_outer --------------------------------------------------------------------------------------------------

function inferGroupedOuter(inputs: readonly TensorType[], { tiles }: GroupedOuterAttrs): readonly TensorType[] {
  const name = "grouped_outer";
  requireInputs(name, ["x", "y", "offsets"], inputs);
  const [x, y, offsets] = [item(inputs, 0), item(inputs, 1), item(inputs, 2)];
  requireDomain(name, "number", [x, y]);
  requireSameDtype(name, ["x", "y"], x, y);
  requireIndices(name, "offsets", offsets);
  const ranks = [x, y, offsets].map(({ shape }) => shape.length);
  const ends = offsets.shape[0] ?? 0;
  if (!sameShape(ranks, [2, 2, 1]) || x.shape[0] !== y.shape[0] || ends < 1) wrongShapes(name, inputs, FORMS[name]);
  const rows = item(x.shape, 0);
  if (!Number.isInteger(tiles) || tiles < 0 || (tiles === 0 ? rows > 0 : rows % tiles !== 0)) {
    throw new TidemarkError("InvalidArgument", `grouped_outer: ${rows} rows in ${tiles} tiles`, {
      help: "the number of tiles divides that of rows",
    });
  }
  return [tensorType(x.dtype, [ends - 1, item(x.shape, 1), item(y.shape, 1)])];
}

/** A place of rows that is read from the table of offsets, kept within the rows. */
function offsetAt(c: LowerContext<GroupedOuterAttrs>, e: Index, rows: number): Index {
  const raw = item(c.inputs, 2)(Position.at(item(c.inTypes, 2).shape, [e]));
  return valueIndex(clamp(raw, 0, rows), 0, rows);
}

function outerSamples(): readonly Sample<GroupedOuterAttrs>[] {
  const one = (
    dtype: NumberType,
    [rows, tiles, groups]: readonly [number, number, number],
    [m, n]: readonly [number, number],
    smooth = false,
  ): Sample<GroupedOuterAttrs> => {
    const range = typeOf(dtype).samples;
    const offsets = smooth ? ([0, 1] as const) : ([-2, rows + 3] as const);
    return {
      inputs: [tensorType(dtype, [rows, m]), tensorType(dtype, [rows, n]), tensorType("i32", [groups + 1])],
      attrs: { tiles },
      range: [range, range, offsets],
      smooth,
    };
  };
  return [
    ...NUMBER_TYPES.map((dtype) => one(dtype, [6, 3, 3], [5, 4])),
    one("f32", [96, 3, 5], [33, 40]),
    one("f32", [1100, 100, 4], [7, 9]),
    one("f32", [12, 3, 3], [1, 9]),
    one("f32", [12, 3, 3], [9, 1]),
    one("f32", [0, 0, 2], [4, 3]),
    one("f32", [4, 2, 0], [4, 3]),
    one("f32", [6, 2, 2], [3, 4], true),
  ];
}

export const groupedOuter: OpDef<GroupedOuterAttrs> = defineOp<GroupedOuterAttrs>({
  name: "grouped_outer",
  batch: { kind: "general", apply: groupedOuterOfBatch(() => groupedOuter) },
  infer: inferGroupedOuter,
  derivative: {
    kind: "multilinear",
    linear: [0, 1],
    transpose(b, { x, ct, input, attrs: { tiles } }) {
      const [left, right, offsets] = [item(x, 0), item(x, 1), item(x, 2)];
      const groups = groupsOf(b, offsets, tiles, item(left.type.shape, 0));
      return b.call(groupedMatmul, [input === 0 ? right : left, ct, groups], { tb: input === 0 });
    },
  },
  cost: ([x], [out]) => ({ flops: 2 * (x?.shape[0] ?? 0) * elementsOf(out?.shape.slice(1) ?? []) }),
  lower: {
    kind: "contract",
    parts(inputs) {
      const [x, y, ends] = [item(inputs, 0).shape, item(inputs, 1).shape, item(inputs, 2).shape];
      const rows = item(x, 0);
      return [
        {
          batch: [item(ends, 0) - 1],
          m: item(x, 1),
          n: item(y, 1),
          k: rows,
          a: (c, _, i, l) => item(c.inputs, 0)(Position.at(x, [l, i])),
          b: (c, _, l, j) => item(c.inputs, 1)(Position.at(y, [l, j])),
          span: (c, [e = ZERO]) => ({
            from: offsetAt(c, e, rows),
            to: offsetAt(c, addIndex(e, constIndex(1)), rows),
            whole: false,
            terms: rows,
          }),
        },
      ];
    },
  },
  evaluate({ inputs, inTypes, outTypes }) {
    const { dtype, shape } = item(outTypes, 0);
    const [x, y, offsets] = [item(inputs, 0), item(inputs, 1), item(inputs, 2)];
    const [rows, m, n] = [item(item(inTypes, 0).shape, 0), item(shape, 1), item(shape, 2)];
    const value = ([e = 0, i = 0, j = 0]: readonly number[]): number => {
      let total = 0;
      for (let r = Math.max(0, item(offsets, e)); r < Math.min(rows, item(offsets, e + 1)); r++) {
        total = addIn(dtype, total, mulIn(dtype, item(x, r * m + i), item(y, r * n + j)));
      }
      return total;
    };
    return [tabulate(shape, value)];
  },
  samples: () => outerSamples(),
});

// ---- permute_rows ---------------------------------------------------------------------------------------------------

function inferPermuteRows(inputs: readonly TensorType[], { copies }: PermuteRowsAttrs): readonly TensorType[] {
  const name = "permute_rows";
  requireInputs(name, ["x", "to", "back"], inputs);
  const [x, to, back] = [item(inputs, 0), item(inputs, 1), item(inputs, 2)];
  requireIndices(name, "to", to);
  requireIndices(name, "back", back);
  if (!Number.isInteger(copies) || copies < 1) {
    throw new TidemarkError("InvalidArgument", `permute_rows: ${copies} copies`, { help: "copies are 1 or more" });
  }
  const [rows] = x.shape;
  const places = sameShape(back.shape, [(rows ?? 0) * copies]);
  if (rows === undefined || to.shape.length !== 1 || !places) wrongShapes(name, inputs, FORMS[name]);
  return [tensorType(x.dtype, [...to.shape, ...x.shape.slice(1)])];
}

function permuteSamples(): readonly Sample<PermuteRowsAttrs>[] {
  const one = (x: TensorType, to: number, copies: number): Sample<PermuteRowsAttrs> => {
    const places = item(x.shape, 0) * copies;
    return {
      inputs: [x, tensorType("i32", [to]), tensorType("i32", [places])],
      attrs: { copies },
      range: [typeOf(x.dtype).samples, [-1, places + 1], [-1, to + 1]],
      smooth: false,
    };
  };
  return [
    ...DTYPES.map((dtype) => one(tensorType(dtype, [5, 3]), 7, 2)),
    one(tensorType("f32", [4]), 9, 3),
    one(tensorType("f32", [2, 17, 3]), 5, 1),
    one(tensorType("f32", [0, 4]), 3, 2),
    one(tensorType("f32", [4, 3]), 0, 1),
    // one row, read once: any table that names it is the inverse of the other
    {
      ...one(tensorType("f32", [1, 3]), 1, 1),
      range: [
        [-2, 2],
        [0, 1],
        [0, 1],
      ],
      smooth: true,
    },
  ];
}

export const permuteRows: OpDef<PermuteRowsAttrs> = defineOp<PermuteRowsAttrs>({
  name: "permute_rows",
  batch: { kind: "general", apply: permuteRowsOfBatch(() => permuteRows) },
  defaults: { copies: 1 },
  infer: inferPermuteRows,
  derivative: {
    kind: "multilinear",
    linear: [0],
    transpose(b, { x, ct, attrs: { copies } }) {
      const { shape } = item(x, 0).type;
      const read = b.call(permuteRows, [ct, item(x, 2), item(x, 1)], { copies: 1 });
      if (copies === 1) return read;
      const [rows = 0, ...rest] = shape;
      return b.call(sum, [b.call(reshape, [read], { shape: [rows, copies, ...rest] })], { axes: [1] });
    },
  },
  cost: () => ({ flops: 0 }),
  lower: {
    kind: "map",
    fusion: "always",
    value(c, at) {
      const [x, to] = [item(c.inTypes, 0), item(c.inTypes, 1)];
      const places = item(x.shape, 0) * c.attrs.copies;
      const [row = ZERO, ...rest] = at.idx;
      const raw = item(c.inputs, 1)(Position.at(to.shape, [row]));
      const bound = { index: valueIndex(raw, -0x80000000, 0x7fffffff), lo: 0, hi: places };
      const from = divIndex(valueIndex(raw, 0, Math.max(0, places - 1)), c.attrs.copies);
      const zero = constant(typeOf(x.dtype).compute, 0);
      return guarded([bound], () => item(c.inputs, 0)(Position.at(x.shape, [from, ...rest])), zero);
    },
  },
  evaluate({ inputs, inTypes, outTypes, attrs: { copies } }) {
    const [rows = 0, ...rest]: Shape = item(inTypes, 0).shape;
    const inner = elementsOf(rest);
    return [
      tabulate(item(outTypes, 0).shape, ([m = 0], e) => {
        const place = item(item(inputs, 1), m);
        return place < 0 || place >= rows * copies
          ? 0
          : item(item(inputs, 0), Math.floor(place / copies) * inner + (e % inner));
      }),
    ];
  },
  samples: () => permuteSamples(),
});
