/**
 * @file How the work of one call is shared by threads, on every target. A nest's function computes units [lo, hi) of its
 * outermost loops; a call is cut into pieces of neighbouring units, at multiples of a grain:
 *
 *   units   0 1 2 3 | 4 5 6 7 | 8 9 10 11 | 12 13       14 units, grain 4, four pieces
 *
 * A unit is computed in the same way on every thread, so bits depend neither on the number of pieces nor on that of threads.
 */
import { type Expr, type LoopVar, walkExpr } from "../kernel/expr.ts";
import { type Nest, nestExprs } from "../kernel/loops.ts";

/** How the work of a nest's function can be shared: pieces [lo, hi) of `count` units, cut at multiples of `grain`. */
export interface Units {
  readonly count: number;
  readonly grain: number;
}

/** The work of one thread alone. */
export const UNDIVIDED: Units = { count: 1, grain: 1 };

/** Enough for any number of threads to share evenly. */
export const MANY_UNITS = 64;

/** Counters that run more than once. */
export const live = (loops: readonly LoopVar[]): LoopVar[] => loops.filter((v) => v.extent !== 1);

export const product = (loops: readonly LoopVar[]): number => loops.reduce((n, v) => n * v.extent, 1);

/** The outermost counters, as many as make enough units, and the others. */
export function splitCounters(counters: readonly LoopVar[]): readonly [readonly LoopVar[], readonly LoopVar[]] {
  let split = 0;
  while (split < counters.length && product(counters.slice(0, split)) < MANY_UNITS) split += 1;
  return [counters.slice(0, split), counters.slice(split)];
}

/** The most pieces of a call: on wasm they are bits of a word. */
export const MOST_PIECES = 32;

/** Into how many pieces a call is cut: more than threads, so that a delayed thread leaves little work. */
export function piecesOf(threads: number, { count, grain }: Units): number {
  return Math.max(1, Math.min(MOST_PIECES, 2 * threads, Math.ceil(count / grain)));
}

/** Scalar operations for each element that is sorted, roughly: a count and a move for each byte of its key. */
const SORT_PASSES = 32;

/** Scalar operations of a nest, roughly: iterations of the innermost loop, times the operations in each. */
export function workOf(nest: Nest): number {
  const { atStore, elsewhere } = nestExprs(nest);
  let size = 0;
  const seen = new Set<Expr>();
  for (const expr of [...atStore, ...elsewhere]) walkExpr(expr, () => (size += 1), seen);
  switch (nest.kind) {
    case "map":
    case "scatter":
      return size * product(nest.loops);
    case "reduce":
      return size * product([...nest.loops, ...nest.reduce]);
    case "scan":
      return size * product([...nest.loops, nest.along]);
    case "contract":
      return size * product([...nest.batch, nest.rows, nest.cols, nest.depth]);
    case "collective":
    case "shuffle":
      return size * nest.along.extent;
    case "sort":
      return (size + SORT_PASSES) * product([...nest.loops, nest.along]);
    case "staged":
      return product(nest.units) * nest.body.reduce((sum, map) => sum + workOf(map), 0);
    case "attend":
      return size * product([...nest.batch, nest.group, nest.rows, nest.cols, nest.depth]);
    case "routine":
      return nest.flops * product(nest.loops);
  }
}
