/**
 * @file Chooses offsets: the lowest of a grid of greedy placements (place/greedy.ts), and where that is above what is
 * wanted, a search for a lower one (place/search.ts) that is limited by work, not by time, so that a plan is a function of
 * its problem. Persistent buffers carry their offset already (`fixedAt`) and are in first.
 */
import { type Placement, placeGreedily } from "./place/greedy.ts";
import { searchPlacement } from "./place/search.ts";
import type { Problem } from "./problem.ts";

export { greedyStrategies, type Placement, type Strategy } from "./place/greedy.ts";

export interface PlaceOptions {
  /** A height that is low enough, in bytes; without it, only the bound is. */
  readonly target?: number;
  /** How much longer than usual to search, 1 unless told. */
  readonly effort?: number;
}

/** Work of a search: a tenth of a second for small problems, more for each buffer, a second at most. */
const LEAST_WORK = 2e7;
const WORK_PER_BUFFER = 5e4;
const MOST_WORK = 2e8;

/** A low placement, the same every time. Nothing can be lower than `boundBytes`. */
export function place(problem: Problem, boundBytes: number, { target, effort = 1 }: PlaceOptions = {}): Placement {
  const enough = Math.max(boundBytes, target ?? boundBytes);
  const start = placeGreedily(problem, enough);
  if (start.height <= enough) return start;
  const { offsets, height, strategy } = searchPlacement(problem, {
    targetBytes: boundBytes,
    capacityBytes: enough,
    workLimit: effort * Math.min(MOST_WORK, LEAST_WORK + WORK_PER_BUFFER * problem.buffers.length),
    start,
  });
  return height < start.height ? { offsets, height, strategy } : start;
}
