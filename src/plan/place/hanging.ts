/**
 * @file Large buffers whose sizes have a common divisor, in rows of that height, and small ones that hang from the top:
 * recomputed transformers have a few sizes that are multiples of each other, and hundreds of small buffers that live long.
 * Put between the large ones, they spoil the rows; left out, they find no place that lasts.
 *
 *     height ┤ ──┬───┬──────┬────      the small ones, in order of birth: those that live longer come first
 *            │   └─┬─┤      ├──        and lie higher, so what hangs down is about what lives
 *            │     └─┘      └┐
 *     row 2  │ ┌────┐                  a large one has to end below all that hangs over its lifespan
 *         1  │ │    ├────────────┐
 *         0  │ └────┴────────────┘
 *
 * So nothing is lost but what a row is cut short by the fringe, and the search has only the large ones to place.
 */
import { at } from "../../base/invariant.ts";
import { boundOf } from "../bound.ts";
import { alignUp, heightOf, type Problem, partOf } from "../problem.ts";
import { greedyPlacer } from "./greedy.ts";
import type { Placement } from "./grid.ts";
import { countPairs } from "./rows.ts";
import { gcd, loadOf, offsetsOf, type Sections, sectionsOf } from "./sections.ts";
import type { Part } from "./walk.ts";

/** Fewer buffers are left to the other methods. */
const LEAST = 1000;
/** More rows than this, and counting them takes longer than sorted lists do. */
const ROWS = 512;
/** More pairs of contemporaries take too much memory. */
const PAIRS = 1 << 22;
/** How much of what is live at once must be large, and how much higher the fringe may make it. */
const ROW_PART = 0.8;
const FRINGE = 1.03;

/** The large ones in rows, with the small ones hanging over them; null where there are no rows, or too high a fringe. */
export function hangingOf(problem: Problem, whole: Sections): Part | null {
  const { buffers, alignment } = problem;
  const isFree = buffers.every((b) => b.fixedAt === undefined && b.align <= alignment);
  if (!isFree || buffers.length < LEAST) return null;
  const least = leastLarge(whole);
  if (least === 0) return null;
  const idsOf = (isLarge: boolean): number[] =>
    [...whole.ids].filter((_, i) => (whole.size[i] as number) >= least === isLarge).sort((a, b) => a - b);
  const [large, small] = [idsOf(true), idsOf(false)];
  const part = partOf(problem, large);
  const sections = sectionsOf(part);
  if (countPairs(sections) > PAIRS) return null;
  const hung = greedyPlacer(partOf(problem, small)).place(byBirth(problem, small), "first") ?? [];
  const depth = new Map(small.map((id, index) => [id, at(hung, index) + alignUp(at(buffers, id).bytes, alignment)]));
  const { over, height } = fringeOf(whole, depth);
  const boundBytes = whole.ground + height;
  if (boundBytes > FRINGE * boundOf(problem).bytes) return null;
  const placementOf = (offset: Float64Array, top: number): Placement => {
    const offsets = buffers.map(({ id }) => whole.grounded.get(id) ?? 0);
    offsetsOf(part, sections, offset).forEach((from, index) => {
      offsets[at(large, index)] = whole.ground + from;
    });
    for (const [id, below] of depth) offsets[id] = top - below;
    return { offsets, height: heightOf(problem, offsets), strategy: "repair, small ones hanging" };
  };
  return {
    buffers: buffers.length,
    large,
    sections,
    inRows: true,
    ground: whole.ground + sections.ground,
    fringe: Float64Array.from(sections.ids, (index) => over.get(at(large, index)) ?? 0),
    grain: alignment,
    boundBytes,
    placementOf,
  };
}

/** The least size, in units, that is large: rows of the divisor of this and all larger ones are few; 0 if there is none. */
function leastLarge(whole: Sections): number {
  const highest = (load: Float64Array): number => load.reduce((most, x) => Math.max(most, x), 0);
  const bound = highest(whole.load);
  let [row, least] = [0, 0];
  for (const next of [...new Set(whole.size)].sort((a, b) => b - a)) {
    row = gcd(row, next);
    if (bound > ROWS * row) break;
    least = next;
  }
  const large = whole.size.map((size) => (size < least ? 0 : size));
  return highest(loadOf(whole, large)) >= ROW_PART * bound ? least : 0;
}

/** Ids by index, in order of birth, what lives longer first. */
function byBirth({ buffers }: Problem, ids: readonly number[]): number[] {
  const lifespanOf = (index: number): { start: number; end: number } => at(buffers, at(ids, index)).lifespan;
  return ids
    .map((_, index) => index)
    .sort((a, b) => lifespanOf(a).start - lifespanOf(b).start || lifespanOf(b).end - lifespanOf(a).end || a - b);
}

/** By id what hangs over a buffer at most, in bytes, and how high the large ones and what hangs over them are together. */
function fringeOf(
  whole: Sections,
  depth: ReadonlyMap<number, number>,
): { over: ReadonlyMap<number, number>; height: number } {
  const { count, ids, size, unit, lo, hi } = whole;
  const hanging = new Float64Array(count);
  ids.forEach((id, i) => {
    const below = depth.get(id) ?? 0;
    for (let s = lo[i] as number; s < (hi[i] as number); s++) hanging[s] = Math.max(hanging[s] as number, below);
  });
  const deepest = (i: number): number =>
    hanging.subarray(lo[i], hi[i]).reduce((most, below) => Math.max(most, below), 0);
  const over = new Map([...ids].map((id, i) => [id, deepest(i)]));
  const large = size.map((units, i) => (depth.has(ids[i] as number) ? 0 : units));
  const height = loadOf(whole, large).reduce((most, x, s) => Math.max(most, x * unit + (hanging[s] as number)), 0);
  return { over, height };
}
