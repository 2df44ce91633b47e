/**
 * @file One long walk of repair that comes down a little at a time, over all buffers or over the large ones alone.
 *
 *     height  ┐                      each time that everything fits, the walk aims a little lower:
 *             └──┐                   a tenth of what is left to the bound
 *                └────┐
 *     bound  ──────────┴──────────
 *
 * Small buffers get in the way of large ones: one that lies in the middle of a gap halves it, and is as much work to move
 * as a large one. So there is a walk without them. What is small is left out as long as the bound stays within a hundredth;
 * each placement of the others that is lower than the best is filled up with the small ones greedily.
 */
import { at } from "../../base/invariant.ts";
import { boundOf } from "../bound.ts";
import { type Buffer, heightOf, type Problem } from "../problem.ts";
import { placeAround } from "./coarse.ts";
import type { Placement } from "./grid.ts";
import type { Random } from "./random.ts";
import { Repair } from "./repair.ts";
import { type Sections, sectionsOf, settle } from "./sections.ts";

/** How much of the distance to the bound a walk tries to make up for at once. */
const CUT = 0.1;
/** Steps of a walk at a time. */
const STRIDE = 2000;
/** Walks begin anew after so many strides in vain, the next time later. */
const PATIENCE = 50;
const MORE_PATIENCE = 1.5;
/** A placement that is further above the bound than this is not worth starting from. */
const FAR = 1.02;
/** To place the small ones costs as much as looking at each buffer so often. */
const FILLING = 100;
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

/** Who walks, how much size counts for being hard (repair.ts), and whether the first start is from nothing. */
export interface Walker {
  readonly large: readonly number[];
  readonly mix: number;
  readonly cold: boolean;
}

/** What is known when a walk goes on: the best placement, and below what there is none. */
export interface Known {
  readonly bestBytes: number;
  readonly boundBytes: number;
  readonly offsets: () => readonly number[];
}

export class Walk {
  readonly #problem: Problem;
  /** Ids of the buffers that walk; the others are small. */
  readonly #large: readonly number[];
  readonly #mix: number;
  readonly #cold: boolean;
  readonly #sections: Sections;
  readonly #repair: Repair;
  readonly #ownBound: number;
  /** In units: nothing is below this. */
  #bound = 0;
  /** In units: it aims below this. */
  #lowest = 0;
  #starts = 0;
  #strides = 0;
  #fillings = 0;
  /** For how many strides it has been in vain. */
  #idle = Number.POSITIVE_INFINITY;
  #patience = PATIENCE;

  constructor(problem: Problem, { large, mix, cold }: Walker, random: Random, late: () => boolean) {
    const part = large.length < problem.buffers.length ? partOf(problem, large) : problem;
    this.#problem = problem;
    this.#large = large;
    this.#mix = mix;
    this.#cold = cold;
    this.#sections = sectionsOf(part);
    this.#repair = new Repair(this.#sections, random, late);
    this.#ownBound = boundOf(part).bytes;
  }

  get steps(): number {
    return this.#repair.steps;
  }

  /** Each stride looks at all once, whatever comes of it. */
  get work(): number {
    const strides = this.#strides * this.#sections.n;
    return this.#repair.work + strides + this.#fillings * FILLING * this.#problem.buffers.length;
  }

  /** Goes on for a while, or begins anew; a placement of all buffers when one that may be lower was found. */
  stride(known: Known): Placement | null {
    const { unit, ground } = this.#sections;
    this.#strides += 1;
    if (this.#idle > this.#patience) this.#begin(known);
    this.#idle += 1;
    if (this.#lowest <= this.#bound || !this.#repair.fit(STRIDE)) return null;
    this.#idle = 0;
    const { offset } = this.#repair;
    const height = offset.reduce((top, from, i) => Math.max(top, from + (this.#sections.size[i] as number)), 0);
    const found = height * unit + ground < known.bestBytes ? this.#filled(offset) : null;
    this.#lowest = height;
    this.#repair.aimAt(this.#below());
    return found;
  }

  /**
   * Starts from nothing, the next time from the best placement, and so on; always from the best when that is good. From
   * nothing it starts twice as far above the bound as the best is: what comes down by and by gets where a start at the
   * best height never does.
   */
  #begin({ offsets, boundBytes }: Known): void {
    const { ids, unit, ground } = this.#sections;
    const best = offsets();
    const from = Float64Array.from(ids, (id) => (at(best, at(this.#large, id)) - ground) / unit);
    this.#bound = Math.ceil(((this.#isWhole ? boundBytes : this.#ownBound) - ground) / unit);
    this.#lowest = settle(this.#sections, from);
    const cold = this.#starts % 2 === (this.#cold ? 0 : 1) && this.#lowest > FAR * this.#bound;
    if (cold) this.#lowest += Math.max(0, this.#lowest - this.#bound);
    if (this.#starts > 0) this.#patience *= MORE_PATIENCE;
    this.#repair.load(cold ? null : from, this.#below(), this.#mix);
    this.#starts += 1;
    this.#idle = 0;
  }

  get #isWhole(): boolean {
    return this.#large.length === this.#problem.buffers.length;
  }

  #filled(offset: Float64Array): Placement {
    const { ids, unit, ground, grounded } = this.#sections;
    const offsets = this.#large.map((id, index) => grounded.get(index) ?? at(this.#problem.buffers, id).fixedAt ?? 0);
    ids.forEach((id, i) => {
      offsets[id] = (offset[i] as number) * unit + ground;
    });
    if (this.#isWhole) {
      return { offsets, height: heightOf(this.#problem, offsets), strategy: "repair" };
    }
    this.#fillings += 1;
    return { ...placeAround(this.#problem, this.#large, offsets), strategy: "repair, small ones around" };
  }

  #below(): number {
    return Math.max(this.#bound, this.#lowest - Math.max(1, Math.ceil(CUT * (this.#lowest - this.#bound))));
  }
}

/** The walks for a problem, which take turns. */
export function walkersOf(problem: Problem): readonly Walker[] {
  const all = problem.buffers.map((buffer) => buffer.id);
  if (all.length > MOST) return [{ large: all, ...WARM }];
  const large = largeOf(problem);
  const few = all.length - large.length <= FEW_SMALL * all.length;
  if (few) return KINDS.map((kind) => ({ large: all, ...kind }));
  return [...KINDS.map((kind) => ({ large, ...kind })), { large: all, ...WARM }];
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

/** A problem of some of the buffers, numbered anew. */
function partOf(problem: Problem, ids: readonly number[]): Problem {
  return { ...problem, buffers: ids.map((id, index) => ({ ...at(problem.buffers, id), id: index })) };
}
