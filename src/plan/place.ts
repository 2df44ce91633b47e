/**
 * @file Chooses offsets: the lowest of a grid of greedy placements (place/greedy.ts), and if that is above the target,
 * a search for a lower one (place/search.ts). The search is limited by work, not by time, so a plan is a function of
 * its problem. Persistent buffers have their offset already (`fixedAt`) and come first.
 */
import { TidemarkError } from "../base/errors.ts";
import { type Placement, placeGreedily } from "./place/greedy.ts";
import { searchPlacement } from "./place/search.ts";
import type { Problem } from "./problem.ts";

export { greedyStrategies, type Placement, type Strategy } from "./place/greedy.ts";

export interface PlaceOptions {
  /** A height that is low enough, in bytes; without it, only the bound is. */
  readonly target?: number;
  /** A factor on the work limit of the search, 1 by default. */
  readonly effort?: number;
}

/** Work limit of a search: a tenth of a second for small problems, more for each buffer, at most a second. */
const LEAST_WORK = 2e7;
const WORK_PER_BUFFER = 5e4;
const MOST_WORK = 2e8;

/**
 * A low placement, deterministic. `boundBytes` is a lower bound of every height.
 *
 * @throws InvalidArgument for a bound or a target that is no number of bytes
 *
 * @example
 * import { boundOf, parseCsv, place } from "tidemark/plan";
 *
 * const text = "id,lower,upper,size\na,0,2,64\nb,1,3,64";
 * const { problem } = parseCsv(text);
 * console.log(place(problem, boundOf(problem).bytes).height); // → 128
 */
export function place(problem: Problem, boundBytes: number, { target, effort = 1 }: PlaceOptions = {}): Placement {
  const enough = Math.max(boundBytes, target ?? boundBytes);
  if (!(enough >= 0)) {
    const summary = `place: the lower bound is ${boundBytes} and the target ${target}, and both count bytes`;
    throw new TidemarkError("InvalidArgument", summary, { help: "pass boundOf(problem).bytes" });
  }
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
