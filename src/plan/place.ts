/**
 * @file Chooses offsets: tries every greedy order with both fits and keeps the lowest arena. Stops as soon as one meets
 * the lower bound, since nothing can be lower, gives a try up when it is no better than the best so far, and tries no more
 * once it has looked at WORK_LIMIT pairs of buffers (thousands of buffers that are all live together). Persistent buffers
 * carry their offset already (`fixedAt`) and are in first.
 *
 * A strategy is a name and a function from a problem to offsets; one that searches takes its place in the same list.
 */
import { type Fit, greedyPlacer } from "./place/greedy.ts";
import { PLACEMENT_ORDERS } from "./place/orders.ts";
import { heightOf, type Problem } from "./problem.ts";

export interface Placement {
  readonly offsets: readonly number[];
  readonly height: number;
  readonly strategy: string;
}

export interface Strategy {
  readonly name: string;
  /** Offsets by buffer, or null when the arena would not be lower than `limit`. */
  readonly place: (limit?: number) => readonly number[] | null;
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
      place: (limit) => {
        ids ??= order.of(problem);
        return placer.place(ids, fit, limit);
      },
      work: placer.work,
    }));
  });
}

/** The lowest of all placements, the first of equals. Nothing can be lower than `boundBytes`. */
export function place(problem: Problem, boundBytes: number): Placement {
  let best: Placement = { offsets: [], height: Number.POSITIVE_INFINITY, strategy: "" };
  for (const strategy of greedyStrategies(problem)) {
    // Heights are multiples of the alignment: a buffer that ends within the last unit does not make a lower one.
    const offsets = strategy.place(best.height - problem.alignment + 1);
    const height = offsets ? heightOf(problem, offsets) : Number.POSITIVE_INFINITY;
    if (offsets && height < best.height) best = { offsets, height, strategy: strategy.name };
    if (best.height <= boundBytes || strategy.work() > WORK_LIMIT) break;
  }
  return best;
}
