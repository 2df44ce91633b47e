/**
 * @file Where an item does least harm among those that are placed, as repair asks (repair.ts), read off lists that are
 * kept sorted by offset and by top (shelves.ts). rows.ts answers the same for items of few sizes.
 */
import type { Random } from "./random.ts";
import type { Sections } from "./sections.ts";
import { Shelves } from "./shelves.ts";

/** A fixed item weighs more than everything else together. */
export const FIXED = 1e9;

/** Items of a problem, some of which are placed. */
export interface Places {
  readonly offset: Float64Array;
  readonly top: Float64Array;
  readonly inside: Uint8Array;
  /** The answer of `meet`. */
  readonly met: Int32Array;
  /** Entries looked at so far, a measure of time. */
  readonly work: number;
  clear(): void;
  /** Places many items at once, at their `offset`. */
  fill(items: Int32Array): void;
  put(i: number, offset: number): void;
  take(i: number): void;
  /** The lowest gap for item i below `limit`, or else where it is in the way of least weight; -1 where it does not fit. */
  cheapestFor(i: number, limit: number, weight: Float64Array): number;
  /** Fills `met` with what is in the way of item i at the offset that was answered last; how many that are. */
  meet(i: number, from: number): number;
}

export class ShelfPlaces implements Places {
  readonly met: Int32Array;
  readonly #sections: Sections;
  readonly #shelves: Shelves;
  readonly #random: Random;
  #weighed = 0;
  /** Of the last question: contemporaries, the highest offset, and whether a gap was the answer. */
  #count = 0;
  #last = 0;
  #isGap = false;
  /** The best so far: its weight, where it is, and how many are as good. */
  #least = 0;
  #from = -1;
  #ties = 0;

  constructor(sections: Sections, random: Random) {
    this.#sections = sections;
    this.#shelves = new Shelves(sections, true);
    this.#random = random;
    this.met = new Int32Array(sections.n);
  }

  get offset(): Float64Array {
    return this.#shelves.offset;
  }

  get top(): Float64Array {
    return this.#shelves.top;
  }

  get inside(): Uint8Array {
    return this.#shelves.inside;
  }

  get work(): number {
    return this.#shelves.work + this.#weighed;
  }

  clear(): void {
    this.#shelves.clear();
  }

  fill(items: Int32Array): void {
    this.#shelves.fill(items);
  }

  put(i: number, offset: number): void {
    this.#shelves.put(i, offset);
  }

  take(i: number): void {
    this.#shelves.take(i);
  }

  cheapestFor(i: number, limit: number, weight: Float64Array): number {
    this.#last = limit - (this.#sections.size[i] as number);
    this.#count = this.#shelves.around(i);
    const gap = this.#gapFor(i);
    this.#isGap = gap >= 0;
    if (this.#isGap) return gap;
    this.#shelves.aroundByTop(i);
    return this.#leastFor(i, weight);
  }

  meet(i: number, from: number): number {
    if (this.#isGap) return 0;
    const { offset, top, byOffset } = this.#shelves;
    const to = from + (this.#sections.size[i] as number);
    let found = 0;
    for (let p = 0; p < this.#count; p++) {
      const j = byOffset[p] as number;
      if ((offset[j] as number) < to && (top[j] as number) > from) this.met[found++] = j;
    }
    return found;
  }

  /** The lowest gap, or -1. */
  #gapFor(i: number): number {
    const { offset, top, byOffset } = this.#shelves;
    const size = this.#sections.size[i] as number;
    let floor = 0;
    for (let p = 0; p < this.#count; p++) {
      const j = byOffset[p] as number;
      if ((offset[j] as number) - floor >= size) return floor;
      if ((top[j] as number) > floor) floor = this.#up(i, top[j] as number);
    }
    return floor <= this.#last ? floor : -1;
  }

  /**
   * The offset at which least is in the way. What is in the way at p is what starts below p + size, less what ends at or
   * below p, so it gets less at every top, and more right behind every offset less the size; nothing is less than it is
   * from the last top up to there:
   *
   *     in the way ┤──┐     ┌──       tried are both ends, on the top of something and right under something,
   *                │  └─┐ ┌─┘         and with alignment what is in between
   *              p ┤    ├─┤
   */
  #leastFor(i: number, weight: Float64Array): number {
    const { offset, top, byOffset, byTop } = this.#shelves;
    const [count, last] = [this.#count, this.#last];
    const size = this.#sections.size[i] as number;
    if (last < 0) return -1;
    const isAligned = this.#sections.align !== null;
    let [starts, ends, cost, from, falls] = [0, 0, 0, 0, true];
    this.#least = FIXED / 2;
    this.#from = -1;
    this.#weighed += 2 * count;
    let rise = count > 0 ? (offset[byOffset[0] as number] as number) - size : last;
    while (rise < 0) {
      cost += weight[byOffset[starts++] as number] as number;
      rise = starts < count ? (offset[byOffset[starts] as number] as number) - size : last;
    }
    while (from <= last) {
      const fall = ends < count ? (top[byTop[ends] as number] as number) : Number.POSITIVE_INFINITY;
      if (fall <= rise) {
        if (isAligned) this.#consider(i, cost, from, Math.min(fall - 1, last));
        cost -= weight[byTop[ends++] as number] as number;
        from = fall;
        falls = true;
      } else {
        if (falls || isAligned) this.#consider(i, cost, from, Math.min(rise, last));
        if (rise >= last) break;
        cost += weight[byOffset[starts++] as number] as number;
        from = rise + 1;
        falls = false;
        rise = starts < count ? (offset[byOffset[starts] as number] as number) - size : last;
      }
    }
    return this.#from;
  }

  /** Tries offsets `from` and `to`, with as much in the way everywhere between them. */
  #consider(i: number, cost: number, from: number, to: number): void {
    if (cost > this.#least) return;
    const low = this.#up(i, from);
    const high = this.#down(i, to);
    if (low > high) return;
    if (cost < this.#least) this.#ties = 0;
    this.#least = cost;
    this.#ties += 1;
    if (this.#ties === 1 || this.#random() * this.#ties < 1) this.#from = low;
    if (low === high) return;
    this.#ties += 1;
    if (this.#random() * this.#ties < 1) this.#from = high;
  }

  #up(i: number, offset: number): number {
    const { align } = this.#sections;
    return align ? Math.ceil(offset / (align[i] as number)) * (align[i] as number) : offset;
  }

  #down(i: number, offset: number): number {
    const { align } = this.#sections;
    return align ? Math.floor(offset / (align[i] as number)) * (align[i] as number) : offset;
  }
}
