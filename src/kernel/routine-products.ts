/**
 * @file Products within routines: updates of a part of a matrix by products of others, and sums of products. Rows and terms are
 * taken four at a time, along rows of the result, so that registers are used and each is read once for sixteen products; which
 * terms come first is the same for every element.
 */
import type { Expr, Index } from "./expr.ts";
import { constIndex, rangeOf } from "./index-math.ts";
import {
  type Ix,
  least,
  minus,
  plus,
  type RoutineBuilder,
  type Single,
  type Target,
  times,
  treeSum,
  type Vector,
} from "./routine-builder.ts";
import { add, mul, sub } from "./scalar-ops.ts";

/** Rows, and terms of a sum, that are taken together. */
const ROWS = 4;
const TERMS = 4;
/** Columns of a block: rows of it, as many as terms of a panel, stay in the first cache. */
const COLUMNS = 128;

type Range = readonly [from: Ix, to: Ix];

/** The first of some neighbours, and how many they are. */
type Group = readonly [first: Index, count: number];

/** target[i, j] = target[i, j] ± Σ_p left(i, p) · right(p, j), the terms one after the other. */
export interface Update {
  readonly rows: Range;
  readonly columns: Range;
  readonly terms: Range;
  target(i: Index, j: Index): Target;
  value(i: Index, j: Index): Expr;
  left(i: Index, p: Index): Expr;
  right(p: Index, j: Index): Expr;
  readonly adds?: boolean;
  /** Columns of the last of some rows that matter; those of the others may be computed as far. */
  until?(lastRow: Index): Ix;
}

export function update(r: RoutineBuilder, u: Update): void {
  const combine = u.adds ? add : sub;
  const counts = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i);
  const tile = ([i, rows]: Group, [p, terms]: Group, [from, to]: Range): void => {
    r.each(from, to, (j) => {
      const rights = counts(terms).map((t) => u.right(plus(p, t), j));
      r.setAll(
        counts(rows).map((row) => {
          const own = plus(i, row);
          const sum = rights.reduce<Expr>(
            (value, right, t) => combine(value, mul(u.left(own, plus(p, t)), right)),
            u.value(own, j),
          );
          return [u.target(own, j), sum] as const;
        }),
      );
    });
  };
  const [from, to] = [r.fixed(u.columns[0]), r.fixed(u.columns[1])];
  inBlocks(r, from, to, (first, end) => {
    r.inGroups(...u.rows, ROWS, (i, rows) => {
      const last = u.until ? r.fixed(least(end, u.until(plus(i, rows - 1)))) : end;
      r.inGroups(...u.terms, TERMS, (p, terms) => tile([i, rows], [p, terms], [first, last]));
    });
  });
}

/** Blocks of columns. */
function inBlocks(r: RoutineBuilder, from: Index, to: Index, body: (first: Index, end: Index) => void): void {
  const count = minus(to, from);
  if (rangeOf(count)[1] <= COLUMNS) {
    body(from, to);
    return;
  }
  r.for(0, blocksOf(r, count), (b) => {
    const first = plus(from, times(b, COLUMNS));
    body(first, r.fixed(least(plus(first, COLUMNS), to)));
  });
}

const blocksOf = (r: RoutineBuilder, count: Index): Index => r.quotient(plus(count, COLUMNS - 1), COLUMNS);

/** Sums that are taken side by side. */
const LANES = 16;

/** Sums of value(k, i) over a range of i, one for each of the results. */
export interface Sums {
  readonly range: Range;
  /** Room for partial sums. */
  readonly parts: Vector;
  readonly results: readonly Single[];
  value(k: number, i: Index): Expr;
}

/**
 * Short ranges one after the other; others in sixteen partial sums by position, then these in a tree, and then the elements that do
 * not fill sixteen.
 */
export function sums(r: RoutineBuilder, { range: [from, to], parts, results, value }: Sums): void {
  const [first, end] = [r.fixed(from), r.fixed(to)];
  const isLong = rangeOf(minus(end, first))[1] >= 2 * LANES;
  const whole = isLong ? r.quotient(minus(end, first), LANES) : constIndex(0);
  if (isLong) partialSumsOf(r, { range: [first, whole], parts, results, value });
  results.forEach((result, k) => {
    const tree = (): Expr => treeSum(Array.from({ length: LANES }, (_, l) => parts.at(k * LANES + l)));
    r.let(result, isLong ? tree() : 0);
    r.for(plus(first, times(whole, LANES)), end, (i) => r.let(result, add(result.value, value(k, i))));
  });
}

/** The range is where the first is, and how many times sixteen there are. */
function partialSumsOf(r: RoutineBuilder, { range: [first, whole], parts, results, value }: Sums): void {
  r.each(0, LANES * results.length, (l) => r.set(parts.place(l), r.number(0)));
  r.for(0, whole, (g) => {
    const base = plus(first, times(g, LANES));
    r.each(0, LANES, (l) => {
      r.setAll(
        results.map((_, k) => {
          const place = plus(l, k * LANES);
          return [parts.place(place), add(parts.at(place), value(k, plus(base, l)))] as const;
        }),
      );
    });
  });
}

/** One sum. */
export function sumOf(r: RoutineBuilder, range: Range, parts: Vector, value: (i: Index) => Expr): Single {
  const result = r.single();
  sums(r, { range, parts, results: [result], value: (_, i) => value(i) });
  return result;
}

/** Room for the partial sums of so many sums. */
export const partialSums = (r: RoutineBuilder, count: number): Vector => r.vector(count * LANES);
