/**
 * @file Random programs that change tensors, and a machine to run them on that has nothing to do with versions: a tensor is a
 * list of places in a store, a view is another list of places in the same store, and a change writes to the store at
 * once. A program is a list of small numbers; each step looks at the tensors there are, and only at their shapes, so that
 * it means the same on every machine.
 *
 *   x = arange(6).reshape([2, 3])     store 0 1 2 3 4 5     places 0 1 2 3 4 5
 *   x.T.slice([1])                    the same store        places 1 4
 */
import fc from "fast-check";
import { at } from "../../src/base/invariant.ts";
import { elementsOf, type Shape, sameShape } from "../../src/ir/type.ts";

export type RangeLike = null | number | readonly [number | null, number | null, number];
export type PlaceLike = number | readonly RangeLike[] | { readonly rows: readonly number[] } | { readonly row: number };

/** What a program needs of the tensors that it runs on. */
export interface Machine<T> {
  shape(x: T): Shape;
  reshape(x: T, shape: Shape): T;
  transpose(x: T, perm: readonly number[]): T;
  slice(x: T, ranges: readonly RangeLike[]): T;
  flip(x: T, axes: readonly number[]): T;
  copy(x: T): T;
  sin(x: T): T;
  /** Element by element; the second may be a number, or broadcast. */
  mul(x: T, y: T | number): T;
  add(x: T, y: T | number): T;
  sum(x: T): T;
  setAt(x: T, place: PlaceLike, value: T | number): void;
  addAt(x: T, place: PlaceLike, value: T | number): void;
  assign(x: T, value: T | number): void;
  fill(x: T, value: number): void;
  inPlace(x: T, how: "add" | "sub" | "mul" | "div", y: T | number): void;
}

export interface Places {
  readonly store: number[];
  readonly places: readonly number[];
  readonly shape: Shape;
}

const fresh = (data: readonly number[], shape: Shape): Places => ({
  store: [...data],
  places: data.map((_, i) => i),
  shape,
});

/** A tensor of the machine below. */
export const placesOf = (data: ArrayLike<number>, shape: Shape): Places => fresh(Array.from(data), shape);

export const elements = (x: Places): number[] => x.places.map((place) => at(x.store, place));

/** Multi-indices in row-major order. */
function indices(shape: Shape): number[][] {
  return shape.reduce<number[][]>(
    (all, extent) => all.flatMap((idx) => Array.from({ length: extent }, (_, i) => [...idx, i])),
    [[]],
  );
}

const numberOf = (idx: readonly number[], shape: Shape): number =>
  shape.reduce((n, extent, axis) => n * extent + at(idx, axis), 0);

function view(x: Places, shape: Shape, source: (idx: readonly number[]) => readonly number[]): Places {
  return { store: x.store, shape, places: indices(shape).map((idx) => at(x.places, numberOf(source(idx), x.shape))) };
}

/** Positions that a range takes, one after the other. */
function positions(range: RangeLike, extent: number): number[] {
  if (range === null) return Array.from({ length: extent }, (_, i) => i);
  if (typeof range === "number") return [range < 0 ? range + extent : range];
  const [start, stop, step] = range;
  const from = (n: number): number => (n < 0 ? n + extent : n);
  const ends = step > 0 ? [0, extent] : [extent - 1, -1];
  const first = start === null ? at(ends, 0) : from(start);
  const limit = stop === null ? at(ends, 1) : from(stop);
  const taken: number[] = [];
  for (let p = first; step > 0 ? p < limit : p > limit; p += step) taken.push(p);
  return taken;
}

/** Values of y, broadcast to a shape. */
function broadcast(y: Places | number, shape: Shape): number[] {
  if (typeof y === "number") return new Array<number>(elementsOf(shape)).fill(y);
  const values = elements(y);
  const ahead = shape.length - y.shape.length;
  return indices(shape).map((idx) => {
    const own = y.shape.map((extent, axis) => (extent === 1 ? 0 : at(idx, axis + ahead)));
    return at(values, numberOf(own, y.shape));
  });
}

/** Writes f(old, value) to every place of x; all values are read first. */
function change(x: Places, y: Places | number, f: (old: number, value: number) => number): void {
  const values = broadcast(y, x.shape);
  x.places.forEach((place, i) => {
    x.store[place] = f(at(x.store, place), at(values, i));
  });
}

const OPERATIONS = {
  set: (_: number, v: number) => v,
  add: (a: number, v: number) => a + v,
  sub: (a: number, v: number) => a - v,
  mul: (a: number, v: number) => a * v,
  div: (a: number, v: number) => a / v,
} as const;

function changeAt(x: Places, place: PlaceLike, y: Places | number, f: (old: number, value: number) => number): void {
  if (typeof place === "number" || !("rows" in place || "row" in place)) {
    change(plain.slice(x, typeof place === "number" ? [place] : place), y, f);
    return;
  }
  const rows = "rows" in place ? place.rows : [place.row];
  const rest = x.shape.slice(1);
  const values = broadcast(y, "rows" in place ? [rows.length, ...rest] : rest);
  const size = elementsOf(rest);
  rows.forEach((row, i) => {
    if (row < 0 || row >= at(x.shape, 0)) return;
    for (let e = 0; e < size; e++) {
      const to = at(x.places, row * size + e);
      x.store[to] = f(at(x.store, to), at(values, i * size + e));
    }
  });
}

export const plain: Machine<Places> = {
  shape: (x) => x.shape,
  reshape: (x, shape) => ({ ...x, shape }),
  transpose: (x, perm) =>
    view(
      x,
      perm.map((axis) => at(x.shape, axis)),
      (idx) => perm.map((_, axis) => at(idx, perm.indexOf(axis))),
    ),
  slice(x, ranges) {
    const taken = x.shape.map((extent, axis) => positions(ranges[axis] ?? null, extent));
    const whole = taken.map((list) => list.length);
    const part = view(x, whole, (idx) => idx.map((i, axis) => at(at(taken, axis), i)));
    return { ...part, shape: whole.filter((_, axis) => typeof (ranges[axis] ?? null) !== "number") };
  },
  flip: (x, axes) =>
    view(x, x.shape, (idx) => idx.map((i, axis) => (axes.includes(axis) ? at(x.shape, axis) - 1 - i : i))),
  copy: (x) => fresh(elements(x), x.shape),
  sin: (x) => fresh(elements(x).map(Math.sin), x.shape),
  mul(x, y) {
    const values = broadcast(y, x.shape);
    return fresh(
      elements(x).map((a, i) => a * at(values, i)),
      x.shape,
    );
  },
  add(x, y) {
    const values = broadcast(y, x.shape);
    return fresh(
      elements(x).map((a, i) => a + at(values, i)),
      x.shape,
    );
  },
  sum: (x) => fresh([elements(x).reduce((a, b) => a + b, 0)], []),
  setAt: (x, place, value) => changeAt(x, place, value, OPERATIONS.set),
  addAt: (x, place, value) => changeAt(x, place, value, OPERATIONS.add),
  assign: (x, value) => change(x, value, OPERATIONS.set),
  fill: (x, value) => change(x, value, OPERATIONS.set),
  inPlace: (x, how, y) => change(x, y, OPERATIONS[how]),
};

/** One step: what to do, to which tensor, and three choices more. */
export type Step = readonly [kind: number, tensor: number, a: number, b: number, c: number];

const small = fc.nat({ max: 60 });

export const programs = (maxLength: number): fc.Arbitrary<readonly Step[]> =>
  fc.array(fc.tuple(fc.nat({ max: 11 }), fc.nat({ max: 20 }), small, small, small), { minLength: 2, maxLength });

const pick = <T>(list: readonly T[], choice: number): T => at(list, choice % list.length);

function rangeFor(extent: number, a: number, b: number): RangeLike {
  if (extent === 0) return null;
  const first = a % extent;
  const candidates: RangeLike[] = [
    null,
    first,
    first - extent,
    [first, null, 1],
    [null, first + 1, 1],
    [first, Math.min(extent, first + 1 + (b % 2)), 1],
    [null, null, 2],
    [null, null, -1],
    [-1, null, -2],
    [1 - extent, null, 1],
  ];
  return pick(candidates, b);
}

const rangesFor = (shape: Shape, a: number, b: number): RangeLike[] =>
  shape.slice(0, 1 + (a % Math.max(1, shape.length))).map((extent, axis) => rangeFor(extent, a + axis, b + 3 * axis));

function reshaped(shape: Shape, a: number): Shape {
  const n = elementsOf(shape);
  const candidates: Shape[] = [[n], [1, ...shape], [...shape, 1], shape.filter((extent) => extent !== 1), shape];
  for (const d of [2, 3, 4]) if (n % d === 0) candidates.push([d, n / d], [n / d, d]);
  return pick(candidates, a);
}

/** The tensors of a run so far, and the sum of what was read. */
interface Run<T> {
  readonly m: Machine<T>;
  readonly tensors: T[];
  loss: T;
}

function read<T>(run: Run<T>, x: T, weight: number): void {
  const { m } = run;
  run.loss = m.add(run.loss, m.sum(m.sin(m.mul(x, weight))));
}

/** A number, or a tensor that broadcasts to the shape. */
function valueFor<T>({ m, tensors }: Run<T>, wanted: Shape, choice: number): T | number {
  const fits = tensors.filter((y) => {
    const own = m.shape(y);
    return own.length <= wanted.length && sameShape(own, wanted.slice(wanted.length - own.length));
  });
  return fits.length === 0 || choice % 3 === 0 ? (choice % 7) / 4 - 0.7 : pick(fits, choice);
}

/** A value for a place: of the shape of what is there. */
function valueAt<T>(run: Run<T>, x: T, place: PlaceLike, choice: number): T | number {
  const { m } = run;
  const rest = m.shape(x).slice(1);
  if (typeof place === "number" || "row" in place) return valueFor(run, rest, choice);
  if ("rows" in place) return valueFor(run, [place.rows.length, ...rest], choice);
  return valueFor(run, m.shape(m.slice(x, place)), choice);
}

/** A new tensor made from x: kinds 0 to 5. */
function made<T>(m: Machine<T>, x: T, [kind, , a, b]: Step): T {
  const shape = m.shape(x);
  switch (kind) {
    case 0:
      return m.reshape(x, reshaped(shape, a));
    case 1: {
      const perm = shape.map((_, axis) => (axis + 1 + a) % shape.length);
      return m.transpose(x, perm);
    }
    case 2:
    case 3:
      return m.slice(x, rangesFor(shape, a, b));
    case 4:
      return m.flip(x, shape.length > 0 ? [a % shape.length] : []);
    default:
      return pick([() => m.sin(x), () => m.copy(x), () => m.mul(x, 0.5)], a)();
  }
}

/** Changes x: kinds 6 to 10. */
function changed<T>(run: Run<T>, x: T, [kind, , a, b, c]: Step): void {
  const { m } = run;
  const shape = m.shape(x);
  const places: PlaceLike[] = [rangesFor(shape, a, b)];
  const [rows = 0] = shape;
  if (rows > 0) places.push(a % rows, (a % rows) - rows, { row: (a % 8) - 2 });
  if (rows > 0 && kind === 8) places.push({ rows: [a % rows, (a % 5) - 1, a % rows, b % 4] });
  const place = pick(places, c);
  const y = valueFor(run, shape, c);
  if (kind === 6) m.assign(x, y);
  else if (kind === 7) m.setAt(x, place, valueAt(run, x, place, c));
  else if (kind === 8) m.addAt(x, place, valueAt(run, x, place, c));
  else if (kind === 9) m.inPlace(x, pick(["add", "sub"] as const, a), y);
  else if (a % 4 === 0) m.fill(x, (b % 5) / 3);
  else if (a % 4 === 1 && typeof y !== "number") m.inPlace(x, "mul", m.sin(y));
  else m.inPlace(x, pick(["mul", "div"] as const, a), 1.25);
}

/** Runs a program; every tensor that it made and the sum of what it read on the way come out. */
export function runProgram<T>(m: Machine<T>, steps: readonly Step[], args: readonly T[]): { loss: T; tensors: T[] } {
  const run: Run<T> = { m, tensors: [...args], loss: m.sum(m.sin(at(args, 0))) };
  for (const step of steps) {
    const [kind, tensor, a] = step;
    const x = pick(run.tensors, tensor);
    if (kind <= 5) run.tensors.push(made(m, x, step));
    else if (kind <= 10) changed(run, x, step);
    else read(run, x, 1 + (a % 3));
  }
  for (const x of run.tensors) read(run, x, 0.5);
  return { loss: run.loss, tensors: run.tensors };
}
