/**
 * @file One long walk of repair that comes down a little at a time, over all buffers or over a part of them (parts.ts).
 *
 *     height  ┐                      each time that everything fits, the walk aims a little lower:
 *             └──┐                   a tenth of what is left to the bound
 *                └────┐
 *     bound  ──────────┴──────────
 */
import { at } from "../../base/invariant.ts";
import type { Placement } from "./grid.ts";
import { ShelfPlaces } from "./places.ts";
import type { Random } from "./random.ts";
import { Repair } from "./repair.ts";
import { RowPlaces } from "./rows.ts";
import { fixedTop, type Sections, settle } from "./sections.ts";

/** How much of the distance to the bound a walk tries to make up for at once. */
const CUT = 0.1;
/**
 * Steps of a walk at a time, which take less time in rows, and how much of the weight that items have gained is left after a
 * hundred steps at first: half of it is gone after 4,600 steps, in rows after 1,350.
 */
const SHELVES = { stride: 2000, kept: 0.985 } as const;
const ROWS = { stride: 10_000, kept: 0.95 } as const;
/**
 * Walks begin anew after so many strides in vain, the next time later, and then remember for twice as long: what is hard is
 * found out by then, and is lost too soon otherwise.
 */
const PATIENCE = 50;
const MORE_PATIENCE = 1.5;
const FORGOTTEN = 0.5;
/** But never for longer than this. */
const MOST_KEPT = 0.997;
/** A placement that is further above the bound than this is not worth starting from. */
const FAR = 1.02;
/** To make a placement of a part one of the whole costs as much as looking at each buffer so often. */
const FILLING = 100;

/** Buffers that walk, and what becomes of a placement of them. */
export interface Part {
  /** How many buffers there are in all; ids of those that walk, ascending; these as items, numbered anew. */
  readonly buffers: number;
  readonly large: readonly number[];
  readonly sections: Sections;
  /** Whether their offsets are few (rows.ts). */
  readonly inRows: boolean;
  /** Bytes below the items, and per item those that have to be free above it. */
  readonly ground: number;
  readonly fringe: Float64Array | null;
  /** Heights are multiples of this, in bytes. */
  readonly grain: number;
  /** Below this there is no placement of the part; null where that is known of the whole alone. */
  readonly boundBytes: number | null;
  /** All buffers, with the items at these offsets, in units; the part is `height` bytes high. */
  readonly placementOf: (offset: Float64Array, height: number) => Placement;
}

/** What walks, how much size counts for being hard (repair.ts), and whether the first start is from nothing. */
export interface Walker {
  readonly part: Part;
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
  readonly #part: Part;
  readonly #mix: number;
  readonly #cold: boolean;
  readonly #pace: typeof ROWS | typeof SHELVES;
  readonly #repair: Repair;
  readonly #limits: Float64Array;
  /** In bytes: nothing is below this. */
  #bound = 0;
  /** In bytes: it aims below this. */
  #lowest = 0;
  #starts = 0;
  #strides = 0;
  #fillings = 0;
  /** For how many strides it has been in vain. */
  #idle = Number.POSITIVE_INFINITY;
  #patience = PATIENCE;

  constructor({ part, mix, cold }: Walker, random: Random, late: () => boolean) {
    const { sections } = part;
    this.#part = part;
    this.#mix = mix;
    this.#cold = cold;
    const places = part.inRows ? new RowPlaces(sections, random) : new ShelfPlaces(sections, random);
    this.#pace = part.inRows ? ROWS : SHELVES;
    this.#repair = new Repair(sections, places, late);
    this.#limits = new Float64Array(sections.n);
  }

  get isInRows(): boolean {
    return this.#part.inRows;
  }

  get steps(): number {
    return this.#repair.steps;
  }

  /** Each stride looks at all once, whatever comes of it. */
  get work(): number {
    const strides = this.#strides * this.#part.sections.n;
    return this.#repair.work + strides + this.#fillings * FILLING * this.#part.buffers;
  }

  /** Goes on for a while, or begins anew; a placement of all buffers when one that may be lower was found. */
  stride(known: Known): Placement | null {
    this.#strides += 1;
    if (this.#idle > this.#patience) this.#begin(known);
    this.#idle += 1;
    if (this.#lowest <= this.#bound || !this.#repair.fit(this.#pace.stride)) return null;
    this.#idle = 0;
    const { offset } = this.#repair;
    const height = this.#heightOf(offset);
    const found = height < known.bestBytes ? this.#filled(offset, height) : null;
    this.#lowest = height;
    this.#repair.aimAt(this.#limitsBelow());
    return found;
  }

  /**
   * Starts from nothing, the next time from the best placement, and so on; always from the best when that is good. From
   * nothing it starts twice as far above the bound as the best is: what comes down by and by gets where a start at the
   * best height never does.
   */
  #begin({ offsets, boundBytes }: Known): void {
    const { sections, large, ground, grain } = this.#part;
    const { ids, unit } = sections;
    const best = offsets();
    const from = Float64Array.from(ids, (index) => (at(best, at(large, index)) - ground) / unit);
    const bound = Math.max((this.#part.boundBytes ?? boundBytes) - ground, fixedTop(sections) * unit);
    this.#bound = ground + Math.ceil(bound / grain) * grain;
    settle(sections, from);
    this.#lowest = this.#heightOf(from);
    const isFar = this.#lowest - ground > FAR * (this.#bound - ground);
    const cold = this.#starts % 2 === (this.#cold ? 0 : 1) && isFar;
    if (cold) this.#lowest += Math.max(0, this.#lowest - this.#bound);
    if (this.#starts > 0) this.#patience *= MORE_PATIENCE;
    const kept = Math.min(MOST_KEPT, 1 - (1 - this.#pace.kept) * FORGOTTEN ** this.#starts);
    this.#repair.load(cold ? null : from, this.#limitsBelow(), this.#mix, kept);
    this.#starts += 1;
    this.#idle = 0;
  }

  #filled(offset: Float64Array, height: number): Placement {
    if (this.#part.large.length < this.#part.buffers) this.#fillings += 1;
    return this.#part.placementOf(offset, height);
  }

  /** In bytes, with what has to be free above the items. */
  #heightOf(offset: Float64Array): number {
    const { sections, fringe, ground } = this.#part;
    const { unit, size } = sections;
    let height = 0;
    for (let i = 0; i < sections.n; i++) {
      const top = ((offset[i] as number) + (size[i] as number)) * unit;
      height = Math.max(height, top + (fringe?.[i] ?? 0));
    }
    return height + ground;
  }

  /** Where the items have to end to be lower than what there is. */
  #limitsBelow(): Float64Array {
    const { sections, fringe, ground, grain } = this.#part;
    const { unit } = sections;
    const cut = grain * Math.max(1, Math.ceil((CUT * (this.#lowest - this.#bound)) / grain));
    const height = Math.max(this.#bound, this.#lowest - cut) - ground;
    for (let i = 0; i < sections.n; i++) this.#limits[i] = Math.floor((height - (fringe?.[i] ?? 0)) / unit);
    return this.#limits;
  }
}
