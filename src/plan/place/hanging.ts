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
import { gcd, loadOf, type Sections, sectionsOf } from "./sections.ts";

/** Fewer buffers are left to the other methods, and more take too long. */
const LEAST = 1000;
const MOST = 10_000;
/** More rows than this, and counting them takes longer than sorted lists do. */
const ROWS = 512;
/** More pairs of contemporaries take too much memory. */
const PAIRS = 1 << 22;
/** How much of what is live at once must be large, and how much higher the fringe may make it. */
const LARGE_PART = 0.8;
const FRINGE = 1.03;

export interface Hanging {
  /** Ids of the large ones, ascending, and their problem, numbered anew. */
  readonly large: readonly number[];
  readonly sections: Sections;
  /** Bytes that are below everything, and per item of `sections` what hangs over it. */
  readonly ground: number;
  readonly fringe: Float64Array;
  /** No placement of this kind is lower. */
  readonly boundBytes: number;
  /** The placement with the items of `sections` at these offsets, in units, and everything below `height` bytes. */
  readonly placementOf: (offset: Float64Array, height: number) => Placement;
}

/** The rows and the fringe of a problem; null where it has none, or too high a fringe. */
export function hangingOf(problem: Problem): Hanging | null {
  const { buffers, alignment } = problem;
  const isFree = buffers.every((b) => b.fixedAt === undefined && b.align <= alignment);
  if (!isFree || buffers.length < LEAST || buffers.length > MOST) return null;
  const whole = sectionsOf(problem);
  const least = leastLarge(whole);
  if (least === 0) return null;
  const idsOf = (isLarge: boolean): number[] =>
    [...whole.ids].filter((_, i) => (whole.size[i] as number) >= least === isLarge).sort((a, b) => a - b);
  const [large, small] = [idsOf(true), idsOf(false)];
  const sections = sectionsOf(partOf(problem, large));
  if (countPairs(sections) > PAIRS) return null;
  const hung = greedyPlacer(partOf(problem, small)).place(byBirth(problem, small), "first") ?? [];
  const depth = new Map(small.map((id, index) => [id, at(hung, index) + alignUp(at(buffers, id).bytes, alignment)]));
  const { over, height } = fringeOf(whole, depth);
  const base = whole.ground + sections.ground;
  if (height + whole.ground > FRINGE * boundOf(problem).bytes) return null;
  const itemOf = new Map([...whole.ids].map((id, i) => [id, i]));
  return {
    large,
    sections,
    ground: base,
    fringe: Float64Array.from(sections.ids, (index) => over[itemOf.get(at(large, index)) ?? 0] as number),
    boundBytes: height + whole.ground,
    placementOf: (offset, top) => {
      const offsets = buffers.map(({ id }) => whole.grounded.get(id) ?? 0);
      for (const [index, from] of sections.grounded) offsets[at(large, index)] = whole.ground + from;
      sections.ids.forEach((index, i) => {
        offsets[at(large, index)] = base + (offset[i] as number) * sections.unit;
      });
      for (const [id, below] of depth) offsets[id] = top - below;
      return { offsets, height: heightOf(problem, offsets), strategy: "repair, small ones hanging" };
    },
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
  return highest(loadOf(whole, large)) >= LARGE_PART * bound ? least : 0;
}

/** Ids by index, in order of birth, what lives longer first. */
function byBirth({ buffers }: Problem, ids: readonly number[]): number[] {
  const lifespanOf = (index: number): { start: number; end: number } => at(buffers, at(ids, index)).lifespan;
  return ids
    .map((_, index) => index)
    .sort((a, b) => lifespanOf(a).start - lifespanOf(b).start || lifespanOf(b).end - lifespanOf(a).end || a - b);
}

/** Per item what hangs over it at most, in bytes, and how high the large ones and what hangs over them are together. */
function fringeOf(whole: Sections, depth: ReadonlyMap<number, number>): { over: Float64Array; height: number } {
  const { count, ids, size, unit, lo, hi } = whole;
  const hanging = new Float64Array(count);
  ids.forEach((id, i) => {
    const below = depth.get(id) ?? 0;
    for (let s = lo[i] as number; s < (hi[i] as number); s++) hanging[s] = Math.max(hanging[s] as number, below);
  });
  const over = Float64Array.from(ids, (_, i) =>
    hanging.subarray(lo[i], hi[i]).reduce((most, below) => Math.max(most, below), 0),
  );
  const large = size.map((units, i) => (depth.has(ids[i] as number) ? 0 : units));
  const height = loadOf(whole, large).reduce((most, x, s) => Math.max(most, x * unit + (hanging[s] as number)), 0);
  return { over, height };
}
