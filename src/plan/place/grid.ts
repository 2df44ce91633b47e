/**
 * @file The grid of greedy placements: every order with both fits, the lowest arena wins. Stops as soon as one is low
 * enough, gives a try up when it is no better than the best so far, and tries no more once it has looked at so many
 * pairs of buffers (thousands of buffers that are all live together).
 */
import { heightOf, type Problem } from "../problem.ts";
import { type Fit, greedyPlacer } from "./greedy.ts";
import { PLACEMENT_ORDERS } from "./orders.ts";

export interface Placement {
  readonly offsets: readonly number[];
  readonly height: number;
  readonly strategy: string;
}

export interface Strategy {
  readonly name: string;
  /** Offsets by buffer, or null when the arena would not be lower than `limit`, or when it is late. */
  readonly place: (limit?: number, late?: () => boolean) => readonly number[] | null;
  /** Pairs of buffers looked at so far by all strategies of the list. */
  readonly work: () => number;
}

/** About half a second. */
const WORK_LIMIT = 1e8;

const FITS: readonly Fit[] = ["first", "best"];

/** All greedy strategies for a problem: every order with every fit. */
export function greedyStrategies(problem: Problem): readonly Strategy[] {
  const placer = greedyPlacer(problem);
  return PLACEMENT_ORDERS.flatMap((order) => {
    let ids: readonly number[] | undefined;
    return FITS.map((fit) => ({
      name: `${order.name}/${fit}-fit`,
      place: (limit, late) => {
        ids ??= order.of(problem);
        return placer.place(ids, fit, limit, late);
      },
      work: placer.work,
    }));
  });
}

/**
 * The lowest of all greedy placements, the first of equals, or the first that is at most `enough` bytes. One is made
 * however late it is.
 */
export function placeGreedily(
  problem: Problem,
  enough: number,
  workLimit: number = WORK_LIMIT,
  late?: () => boolean,
): Placement {
  let best: Placement = { offsets: [], height: Number.POSITIVE_INFINITY, strategy: "" };
  for (const strategy of greedyStrategies(problem)) {
    // Heights are multiples of the alignment: a buffer that ends within the last unit does not make a lower one.
    const isFirst = best.offsets.length === 0;
    const offsets = strategy.place(best.height - problem.alignment + 1, isFirst ? undefined : late);
    const height = offsets ? heightOf(problem, offsets) : Number.POSITIVE_INFINITY;
    if (offsets && height < best.height) best = { offsets, height, strategy: strategy.name };
    if (best.height <= enough || strategy.work() > workLimit || late?.()) break;
  }
  return best;
}
