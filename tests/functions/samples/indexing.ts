/** @file Samples of reading and writing at positions that are data: in range, out of range, repeated, none. */
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { build, get, type Index, indices, type Plain } from "../plain.ts";
import { type Family, i32 } from "../sample.ts";

const inside = (i: number, extent: number): boolean => i >= 0 && i < extent;

/** y[… indices …] = x[… index …], NaN when there is no such row. */
const taken = (axis: number) => (x: Plain, at: Plain) => {
  const [lead, rest] = [x.shape.slice(0, axis), x.shape.slice(axis + 1)];
  return build([...lead, ...at.shape, ...rest], (index) => {
    const row = get(at, index.slice(axis, axis + at.shape.length));
    const place = [...index.slice(0, axis), row, ...index.slice(axis + at.shape.length)];
    return inside(row, x.shape[axis]!) ? get(x, place) : Number.NaN;
  });
};

const gathered = (axis: number) => (x: Plain, at: Plain) =>
  build(at.shape, (index) => {
    const row = get(at, index);
    return inside(row, x.shape[axis]!) ? get(x, index.with(axis, row)) : Number.NaN;
  });

/** x with updates added one after the other where `target` says. */
function scattered(x: Plain, updates: Plain, target: (index: Index) => Index | null): Plain {
  const data = Float64Array.from(x.data);
  for (const index of indices(updates.shape)) {
    const place = target(index);
    if (place) data[place.reduce((n, i, axis) => n * x.shape[axis]! + i, 0)]! += get(updates, index);
  }
  return { ...x, data };
}

const addedRows = (axis: number) => (x: Plain, at: Plain, updates: Plain) =>
  scattered(x, updates, (index) => {
    const row = get(at, index.slice(axis, axis + at.shape.length));
    const place = [...index.slice(0, axis), row, ...index.slice(axis + at.shape.length)];
    return inside(row, x.shape[axis]!) ? place : null;
  });

const addedElements = (axis: number) => (x: Plain, at: Plain, updates: Plain) =>
  scattered(x, updates, (index) => (inside(get(at, index), x.shape[axis]!) ? index.with(axis, get(at, index)) : null));

/** A start moved so that the window fits. */
const fitted = (x: Plain, starts: ArrayLike<number>, sizes: Shape): Index =>
  x.shape.map((extent, axis) => Math.max(0, Math.min(starts[axis]!, extent - sizes[axis]!)));

const window = (sizes: Shape) => (x: Plain, starts: Plain) =>
  build(sizes, (index) =>
    get(
      x,
      index.map((i, axis) => i + fitted(x, starts.data, sizes)[axis]!),
    ),
  );

const updated = (x: Plain, update: Plain, starts: Plain): Plain => {
  const from = fitted(x, starts.data, update.shape);
  return build(x.shape, (index) => {
    const at = index.map((i, axis) => i - from[axis]!);
    return at.every((i, axis) => inside(i, update.shape[axis]!)) ? get(update, at) : get(x, index);
  });
};

const takes: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const values = [-2, 2] as const;
  return [
    {
      name: "take",
      inputs: [x(5, 3), i32(7)],
      range: [values, [0, 5]],
      call: (a, i) => tm.take(a!, i!),
      reference: taken(0),
    },
    {
      name: "take",
      inputs: [x(2, 6, 3), i32(2, 2)],
      range: [values, [0, 6]],
      call: (a, i) => tm.take(a!, i!, 1),
      reference: taken(1),
    },
    {
      name: "take",
      inputs: [x(5, 3), i32(9)],
      range: [values, [-3, 8]],
      smooth: false,
      call: (a, i) => tm.take(a!, i!),
      reference: taken(0),
    },
    {
      name: "take",
      inputs: [x(5), i32()],
      range: [values, [0, 5]],
      call: (a, i) => tm.take(a!, i!),
      reference: taken(0),
    },
    {
      name: "take",
      inputs: [x(5, 2), i32(0)],
      range: [values, [0, 5]],
      call: (a, i) => tm.take(a!, i!),
      reference: taken(0),
    },
    {
      name: "take",
      inputs: [i32(5, 2), i32(4)],
      range: [
        [-9, 9],
        [0, 5],
      ],
      call: (a, i) => tm.take(a!, i!),
      reference: taken(0),
    },
  ];
};

const gathers: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const values = [-2, 2] as const;
  return [
    {
      name: "gather",
      inputs: [x(5, 3), i32(2, 3)],
      range: [values, [0, 5]],
      call: (a, i) => tm.gather(a!, i!),
      reference: gathered(0),
    },
    {
      name: "gather",
      inputs: [x(4, 6), i32(4, 9)],
      range: [values, [0, 6]],
      call: (a, i) => tm.gather(a!, i!, -1),
      reference: gathered(1),
    },
    {
      name: "gather",
      inputs: [x(4, 6), i32(4, 9)],
      range: [values, [-2, 8]],
      smooth: false,
      call: (a, i) => tm.gather(a!, i!, 1),
      reference: gathered(1),
    },
    {
      name: "oneHot",
      inputs: [i32(2, 3)],
      range: [-1, 5],
      call: (i) => tm.oneHot(i!, 4, t),
      reference: (i) => build([2, 3, 4], (at) => Number(get(i!, at.slice(0, 2)) === at[2])),
    },
    {
      name: "oneHot",
      inputs: [i32()],
      range: [0, 3],
      call: (i) => tm.oneHot(i!, 3, "bool"),
      reference: (i) => build([3], (at) => Number(i!.data[0] === at[0])),
    },
  ];
};

const scatters: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const values = [-2, 2] as const;
  const at = (lo: number, hi: number) => [values, [lo, hi], values] as const;
  return [
    {
      name: "scatterAdd",
      inputs: [x(5, 3), i32(7), x(7, 3)],
      range: at(0, 5),
      call: (a, i, u) => tm.scatterAdd(a!, i!, u!),
      reference: addedRows(0),
    },
    {
      name: "scatterAdd",
      inputs: [x(2, 4, 3), i32(5), x(2, 5, 3)],
      range: at(-2, 6),
      call: (a, i, u) => tm.scatterAdd(a!, i!, u!, 1),
      reference: addedRows(1),
    },
    {
      name: "scatterAdd",
      inputs: [x(5), i32(0), x(0)],
      range: at(0, 5),
      call: (a, i, u) => tm.scatterAdd(a!, i!, u!),
      reference: addedRows(0),
    },
    {
      name: "scatterAddAlong",
      inputs: [x(5, 3), i32(4, 3), x(4, 3)],
      range: at(0, 5),
      call: (a, i, u) => tm.scatterAddAlong(a!, i!, u!),
      reference: addedElements(0),
    },
    {
      name: "scatterAddAlong",
      inputs: [x(3, 5), i32(3, 6), x(3, 6)],
      range: at(-1, 7),
      call: (a, i, u) => tm.scatterAddAlong(a!, i!, u!, 1),
      reference: addedElements(1),
    },
  ];
};

const windows: Family = (t) => {
  const x = (...shape: Shape) => tensorType(t, shape);
  const values = [-2, 2] as const;
  return [
    {
      name: "dynamicSlice",
      inputs: [x(5, 6), i32(2)],
      range: [values, [-3, 7]],
      call: (a, s) => tm.dynamicSlice(a!, s!, [2, 3]),
      reference: window([2, 3]),
    },
    {
      name: "dynamicSlice",
      inputs: [x(5, 6), i32()],
      range: [values, [0, 4]],
      call: (a, s) => tm.dynamicSlice(a!, [s!, 1], [2, 3]),
      reference: (a, s) => window([2, 3])(a!, { shape: [2], data: [s!.data[0]!, 1] }),
    },
    {
      name: "dynamicUpdate",
      inputs: [x(5, 6), x(2, 3), i32(2)],
      range: [values, values, [-3, 7]],
      call: (a, u, s) => tm.dynamicUpdate(a!, u!, s!),
      reference: updated,
    },
    {
      name: "dynamicUpdate",
      inputs: [x(4), x(0), i32(1)],
      range: [values, values, [0, 4]],
      call: (a, u, s) => tm.dynamicUpdate(a!, u!, s!),
      reference: updated,
    },
  ];
};

export const indexing: Family = (t) => [...takes(t), ...gathers(t), ...scatters(t), ...windows(t)];
