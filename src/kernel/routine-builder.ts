/**
 * @file Routines (routine.ts) written as programs: every call appends a step to the innermost loop or branch that is open.
 *
 *   r.for(0, n, (k) => {
 *     r.let(d, sqrt(a.at(k, k)));
 *     r.each(plus(k, 1), n, (j) => r.set(a.place(k, j), div(a.at(k, j), d.value)));
 *   });
 */
import { at, invariant } from "../base/invariant.ts";
import type { DType, FloatScalar } from "./dtype.ts";
import { call, constant, type Expr, type Index, type LoopVar, load } from "./expr.ts";
import { addIndex, constIndex, rangeOf, scaleIndex, valueIndex, varIndex, ZERO } from "./index-math.ts";
import { asExpr } from "./loops.ts";
import { type Assignment, FIRST_TILE, type Step, type Steps, type Tile } from "./routine.ts";
import { inType } from "./scalar-ops.ts";

/** An index, or a constant one. */
export type Ix = Index | number;

export const ix = (i: Ix): Index => (typeof i === "number" ? constIndex(i) : i);
export const plus = (...parts: readonly Ix[]): Index => addIndex(...parts.map(ix));
export const minus = (a: Ix, b: Ix): Index => addIndex(ix(a), scaleIndex(ix(b), -1));
export const times = (a: Ix, by: number): Index => scaleIndex(ix(a), by);

function choice(fn: "min" | "max", a: Ix, b: Ix): Index {
  const [left, right] = [ix(a), ix(b)];
  const [[loA, hiA], [loB, hiB]] = [rangeOf(left), rangeOf(right)];
  if (hiA <= loB) return fn === "min" ? left : right;
  if (hiB <= loA) return fn === "min" ? right : left;
  const of = Math[fn];
  return valueIndex(call(fn, [asExpr(left), asExpr(right)], "i32"), of(loA, loB), of(hiA, hiB));
}

export const least = (a: Ix, b: Ix): Index => choice("min", a, b);
export const greatest = (a: Ix, b: Ix): Index => choice("max", a, b);

/** Where a value is stored. */
export interface Target {
  readonly operand: number;
  readonly index: Index;
}

/** Elements of a memory in rows and columns. */
export class Matrix {
  readonly #operand: number;
  readonly #storage: DType;
  readonly #start: Index;
  readonly #steps: readonly [row: number, column: number];

  constructor(operand: number, storage: DType, start: Index, steps: readonly [row: number, column: number]) {
    this.#operand = operand;
    this.#storage = storage;
    this.#start = start;
    this.#steps = steps;
  }

  place(i: Ix, j: Ix): Target {
    const [row, column] = this.#steps;
    return { operand: this.#operand, index: plus(this.#start, times(i, row), times(j, column)) };
  }

  at(i: Ix, j: Ix): Expr {
    return load(this.#storage, this.#operand, this.place(i, j).index);
  }

  /** The part that begins at a row and a column. */
  from(i: Ix, j: Ix): Matrix {
    return new Matrix(this.#operand, this.#storage, this.place(i, j).index, this.#steps);
  }

  transposed(): Matrix {
    const [row, column] = this.#steps;
    return new Matrix(this.#operand, this.#storage, this.#start, [column, row]);
  }
}

/** A single value. */
export interface Single {
  readonly place: Target;
  readonly value: Expr;
  readonly dtype: FloatScalar | "i32";
}

/** Iterations of `each` up to which it is written out. */
const FEW = 4;

export class RoutineBuilder {
  readonly dtype: FloatScalar;
  readonly tiles: Tile[] = [];
  /** Loops of no more iterations, if their number is known, are written out. */
  unrolls = 0;
  #open: Step[] = [];
  #counters = 0;

  constructor(dtype: FloatScalar) {
    this.dtype = dtype;
  }

  get steps(): Steps {
    return this.#open;
  }

  number(value: number): Expr {
    return constant(this.dtype, value);
  }

  // ---- memory -------------------------------------------------------------------------------------------------------

  single(dtype: FloatScalar | "i32" = this.dtype): Single {
    const operand = FIRST_TILE + this.tiles.push({ kind: "single", dtype }) - 1;
    return { place: { operand, index: ZERO }, value: load(dtype, operand, ZERO), dtype };
  }

  matrix(rows: number, columns: number): Matrix {
    const elements = Math.max(1, rows * columns);
    const operand = FIRST_TILE + this.tiles.push({ kind: "array", elements }) - 1;
    return new Matrix(operand, this.dtype, ZERO, [columns, 1]);
  }

  vector(elements: number): Vector {
    return new Vector(this.matrix(1, elements));
  }

  /** A single whole number as an index; it is within the limits wherever it is used. */
  index(single: Single, lo: number, hi: number): Index {
    return valueIndex(single.value, lo, hi);
  }

  // ---- steps --------------------------------------------------------------------------------------------------------

  /** All values first, then all stores. */
  setAll(pairs: readonly (readonly [Target, Expr])[]): void {
    this.#open.push({ kind: "set", stores: pairs.map(([target, value]) => ({ ...target, value })) });
  }

  set(target: Target, value: Expr): void {
    this.setAll([[target, value]]);
  }

  let(single: Single, value: Expr | number): void {
    const expr = typeof value === "number" ? constant(single.dtype, value) : value;
    this.set(single.place, inType(expr, single.dtype));
  }

  /** A new single value. */
  named(value: Expr): Expr {
    const single = this.single(value.dtype as FloatScalar | "i32");
    this.set(single.place, value);
    return single.value;
  }

  /** A bound or an index, computed once. */
  fixed(index: Ix): Index {
    const of = ix(index);
    if (of.terms.every(({ atom }) => atom.kind === "var")) return of;
    const [lo, hi] = rangeOf(of);
    return valueIndex(this.named(asExpr(of)), lo, hi);
  }

  #inside(body: () => void): Step[] {
    const outer = this.#open;
    const inner: Step[] = [];
    this.#open = inner;
    body();
    this.#open = outer;
    return inner;
  }

  #counter(to: Index): LoopVar {
    this.#counters += 1;
    return { kind: "var", name: `n${this.#counters}`, extent: Math.max(1, rangeOf(to)[1]) };
  }

  /** Writes out a loop that is short enough; false where it is not. */
  #unrolled([from, to]: readonly [Index, Index], most: number, body: (i: Index) => void): boolean {
    if (from.terms.length > 0 || to.terms.length > 0 || to.offset - from.offset > most) return false;
    for (let i = from.offset; i < to.offset; i++) body(constIndex(i));
    return true;
  }

  for(from: Ix, to: Ix, body: (i: Index) => void): void {
    const [first, end] = [ix(from), ix(to)];
    if (this.#unrolled([first, end], this.unrolls, body)) return;
    const counter = this.#counter(end);
    const steps = this.#inside(() => body(varIndex(counter)));
    if (!isEmptyRange(first, end)) this.#open.push({ kind: "for", counter, from: first, to: end, body: steps });
  }

  /** From the last to the first. */
  down(from: Ix, to: Ix, body: (i: Index) => void): void {
    this.for(0, minus(to, from), (i) => body(minus(minus(to, 1), i)));
  }

  /** Iterations in any order; the body assigns alone. */
  each(from: Ix, to: Ix, body: (i: Index) => void): void {
    const [first, end] = [ix(from), ix(to)];
    // longer ones are for registers
    if (this.#unrolled([first, end], Math.min(this.unrolls, FEW), body)) return;
    const counter = this.#counter(end);
    const steps = this.#inside(() => body(varIndex(counter)));
    const assigns = steps.filter((step): step is Assignment => step.kind === "set");
    invariant(assigns.length === steps.length, () => "a loop whose iterations are apart assigns alone");
    if (!isEmptyRange(first, end)) this.#open.push({ kind: "each", counter, from: first, to: end, body: assigns });
  }

  if(test: Expr, body: () => void, otherwise: () => void = () => undefined): void {
    const [yes, no] = [this.#inside(body), this.#inside(otherwise)];
    this.#open.push({ kind: "if", test, body: yes, otherwise: no });
  }

  while(test: Expr, most: number, body: () => void): void {
    this.#open.push({ kind: "while", test, most, body: this.#inside(body) });
  }

  /** floor(count / by), 0 where the count is negative; computed once. */
  quotient(count: Ix, by: number): Index {
    return this.fixed(floorDiv(ix(count), by));
  }

  /** The numbers of a range, `width` at a time, then one at a time. */
  inGroups(from: Ix, to: Ix, width: number, body: (first: Index, count: number) => void): void {
    const [first, end] = [this.fixed(from), this.fixed(to)];
    const count = minus(end, first);
    if (count.terms.length === 0 && count.offset === 1) {
      body(first, 1);
      return;
    }
    const groups = this.quotient(count, width);
    this.for(0, groups, (g) => body(plus(first, times(g, width)), width));
    const isWhole = count.terms.length === 0 && count.offset % width === 0;
    if (width > 1 && !isWhole) this.for(plus(first, times(groups, width)), end, (i) => body(i, 1));
  }
}

const isEmptyRange = (from: Index, to: Index): boolean => {
  const [, most] = rangeOf(minus(to, from));
  return most <= 0;
};

/** floor(count / by), 0 where the count is negative. */
function floorDiv(count: Index, by: number): Index {
  const [lo, hi] = rangeOf(count);
  if (lo === hi) return constIndex(Math.max(0, Math.floor(lo / by)));
  const whole = call("div", [asExpr(greatest(count, 0)), constant("i32", by)], "i32");
  return valueIndex(whole, 0, Math.max(0, Math.floor(hi / by)));
}

/** Elements one after the other. */
export class Vector {
  readonly #row: Matrix;

  constructor(row: Matrix) {
    this.#row = row;
  }

  place(i: Ix): Target {
    return this.#row.place(0, i);
  }

  at(i: Ix): Expr {
    return this.#row.at(0, i);
  }
}

/** Steps of a tree: ((0 + 1) + (2 + 3)) + …, of a power of two many values. */
export function treeSum(values: readonly Expr[]): Expr {
  if (values.length === 1) return at(values, 0);
  const half = values.length / 2;
  return call("add", [treeSum(values.slice(0, half)), treeSum(values.slice(half))]);
}
