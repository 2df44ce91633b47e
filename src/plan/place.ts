/**
 * @file Chooses offsets: the lowest of a grid of greedy placements (place/grid.ts), and where that is above the lower
 * bound, a search for a lower one (place/search.ts) that is limited by work, not by time, so that a plan is a function of
 * its problem. Persistent buffers carry their offset already (`fixedAt`) and are in first.
 */
import { type Placement, placeGreedily } from "./place/grid.ts";
import { searchPlacement } from "./place/search.ts";
import type { Problem } from "./problem.ts";

export { greedyStrategies, type Placement, type Strategy } from "./place/grid.ts";

/** About a tenth of a second. */
const WORK_LIMIT = 2e7;

/** A low placement, the same every time. Nothing can be lower than `boundBytes`. */
export function place(problem: Problem, boundBytes: number): Placement {
  const start = placeGreedily(problem, boundBytes);
  if (start.height <= boundBytes) return start;
  const { offsets, height, strategy } = searchPlacement(problem, {
    targetBytes: boundBytes,
    workLimit: WORK_LIMIT,
    start,
  });
  return height < start.height ? { offsets, height, strategy } : start;
}
