/**
 * @file What a walk of repair (walk.ts) moves: all buffers, or the large ones alone. Small buffers get in the way of large
 * ones: one that lies in the middle of a gap halves it, and is as much work to move as a large one. Two ways to keep them
 * out:
 *
 *     around    what is small is left out as long as the bound stays within a hundredth; each placement of the others
 *               that is lower than the best is filled up with the small ones greedily
 *     hanging   where the large ones come in rows of one height, all that is smaller than a row hangs from the top
 *               (hanging.ts)
 */
import { at } from "../../base/invariant.ts";
import { boundOf } from "../bound.ts";
import { type Buffer, heightOf, type Problem, partOf } from "../problem.ts";
import { placeAround } from "./coarse.ts";
import type { Placement } from "./grid.ts";
import { hangingOf } from "./hanging.ts";
import { offsetsOf, type Sections, sectionsOf } from "./sections.ts";
import type { Part, Walker } from "./walk.ts";

/**
 * What is best differs: where size counts for more, an Inception network may stay at 1.05 of its bound, and a transformer
 * may where it does not; and a start from nothing takes long where greedy placements are good.
 */
const COLD = { mix: 0.6, cold: true } as const;
const WARM = { mix: 0.5, cold: false } as const;
const KINDS = [COLD, WARM] as const;
/** More buffers have one walk, from the best: a start from nothing alone would take seconds. */
const MOST = 10_000;
/** How much of the bound must remain when the small ones are left out. */
const LARGE_PART = 0.99;
/** With fewer small ones than this part of all, there is nothing to be gained. */
const FEW_SMALL = 0.02;

/** The walks for a problem, which take turns. */
export function walkersOf(problem: Problem, sections: Sections): readonly Walker[] {
  const all = allOf(problem, sections);
  if (all.buffers > MOST) return [{ part: all, ...WARM }];
  const hanging = hangingOf(problem, sections);
  const hung = hanging ? [{ part: hanging, ...COLD }] : [];
  const large = largeOf(problem);
  const few = all.buffers - large.length <= FEW_SMALL * all.buffers;
  if (few) return [...hung, ...KINDS.map((kind) => ({ part: all, ...kind }))];
  const part = largePart(problem, large);
  return [...hung, ...KINDS.map((kind) => ({ part, ...kind })), { part: all, ...WARM }];
}

function allOf(problem: Problem, sections: Sections): Part {
  const large = problem.buffers.map((buffer) => buffer.id);
  const placementOf = (offset: Float64Array): Placement => {
    const offsets = offsetsOf(problem, sections, offset);
    return { offsets, height: heightOf(problem, offsets), strategy: "repair" };
  };
  return { ...plain(problem, large, sections), boundBytes: null, placementOf };
}

/** The large ones, with the others around them. */
function largePart(problem: Problem, large: readonly number[]): Part {
  const part = partOf(problem, large);
  const sections = sectionsOf(part);
  const placementOf = (offset: Float64Array): Placement => ({
    ...placeAround(problem, large, offsetsOf(part, sections, offset)),
    strategy: "repair, small ones around",
  });
  return { ...plain(problem, large, sections), boundBytes: boundOf(part).bytes, placementOf };
}

function plain(
  { buffers }: Problem,
  large: readonly number[],
  sections: Sections,
): Omit<Part, "boundBytes" | "placementOf"> {
  const { ground, unit: grain } = sections;
  return { buffers: buffers.length, large, sections, inRows: false, ground, fringe: null, grain };
}

/** Ids of what is left when the small ones are left out, ascending. */
function largeOf(problem: Problem): readonly number[] {
  const sizes = [...new Set(problem.buffers.map((buffer) => buffer.bytes))].sort((a, b) => a - b);
  const least = LARGE_PART * boundOf(problem).bytes;
  const from = (bytes: number): readonly number[] =>
    problem.buffers.filter((b) => b.bytes >= bytes || isBound(b)).map((b) => b.id);
  // the bound of the rest falls with the size that is left out: bisection
  let [low, high] = [0, sizes.length];
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if (boundOf(partOf(problem, from(at(sizes, mid)))).bytes >= least) low = mid;
    else high = mid;
  }
  return from(sizes[low] ?? 0);
}

/** Fixed buffers are never left out: the others have to know where they are. */
function isBound(buffer: Buffer): boolean {
  return buffer.fixedAt !== undefined;
}
