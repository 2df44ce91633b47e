/**
 * @file A start for thousands of buffers. Among so many, a few hold nearly all bytes for nearly all the time; search
 * is good at few and hopeless at tens of thousands. So those few are placed by search, as if nothing else were there, and the others go into the gaps and on top, larger ones first:
 *
 *     bytes ┤      c  ┌──┐ c        1. A and B, by search: low, so that what is on top of them is in one piece
 *           │ ┌────┐  │B │          2. c, d, …: greedily, around what is there
 *           │ │ A  │ d└┬─┴──┐
 *           │ │    ├─┐ │ B' │
 *
 * What matters is a buffer's bytes times the root of its length. By bytes alone, small buffers that live long come last
 * and find no gap that lasts; by bytes times length, large ones that are short come last and find none that is wide.
 */
import { at, invariant } from "../../base/invariant.ts";
import { heightOf, type Problem, partOf } from "../problem.ts";
import { greedyPlacer } from "./greedy.ts";
import type { Placement } from "./grid.ts";
import { PLACEMENT_ORDERS } from "./orders.ts";

/** From so many buffers on. */
export const MANY = 2000;
/** Which part of them is placed by search, one try after the other: what is best differs. */
const PARTS = [0.1, 0.4] as const;
/** More take too long. */
const MOST = 6750;
/** The orders in which what is left over is placed. */
const FILLS: readonly string[] = ["class-start", "class-end"];

/** How many buffers of `n` are placed by search, for each try. */
export function triesFor(n: number): readonly number[] {
  return [...new Set(PARTS.map((part) => Math.min(MOST, Math.ceil(part * n))))];
}

/**
 * Places the `large` buffers that matter most with `solve`, offsets by index, and the others around them. What is late is
 * infinitely high.
 */
export function placeCoarsely(
  problem: Problem,
  large: number,
  solve: (part: Problem) => readonly number[],
  late?: () => boolean,
): Placement {
  const chosen = heaviest(problem, large);
  const offsets = solve(partOf(problem, chosen));
  return { ...placeAround(problem, chosen, offsets, late), strategy: `largest ${large}` };
}

/** Places everything else greedily around buffers that are placed: `offsets` of `chosen`, by index; as above when late. */
export function placeAround(
  problem: Problem,
  chosen: readonly number[],
  offsets: readonly number[],
  late?: () => boolean,
): Placement {
  const around = [...problem.buffers];
  chosen.forEach((id, index) => {
    around[id] = { ...at(around, id), fixedAt: at(offsets, index) };
  });
  const placer = greedyPlacer({ ...problem, buffers: around });
  let best: Placement = { offsets: [], height: Number.POSITIVE_INFINITY, strategy: "" };
  for (const { name, of } of PLACEMENT_ORDERS.filter((order) => FILLS.includes(order.name))) {
    const filled = placer.place(of(problem), "first", best.height, late);
    if (filled) best = { offsets: filled, height: heightOf(problem, filled), strategy: name };
  }
  invariant(best.height < Number.POSITIVE_INFINITY || late?.() === true, () => "nothing was placed around the largest");
  return best;
}

/** Ids of what matters most, ascending: `large` buffers, and all that are fixed. */
function heaviest({ buffers }: Problem, large: number): readonly number[] {
  const weight = Float64Array.from(buffers, ({ bytes, lifespan, fixedAt }) =>
    fixedAt === undefined ? bytes * Math.sqrt(lifespan.end - lifespan.start) : Number.MAX_VALUE,
  );
  const fixed = buffers.filter((buffer) => buffer.fixedAt !== undefined).length;
  const ids = buffers.map((buffer) => buffer.id);
  ids.sort((a, b) => (weight[b] as number) - (weight[a] as number) || a - b);
  return ids.slice(0, Math.max(large, fixed)).sort((a, b) => a - b);
}
