/**
 * @file Placed items, with queries for the offset at which another item conflicts with the least weight (repair.ts).
 * Conflicting items are read off lists in order of offset and of top (windows.ts).
 */
import type { Random } from "./random.ts";
import type { Sections } from "./sections.ts";
import { TimeWindowIndex } from "./windows.ts";

/** A fixed item weighs more than everything else together. */
export const FIXED = 1e9;

export class PlacedItems {
  readonly offset: Float64Array;
  readonly top: Float64Array;
  readonly isPlaced: Uint8Array;
  /** The answer of `conflictsAt`. */
  readonly conflicts: Int32Array;
  readonly #sections: Sections;
  readonly #byOffset: TimeWindowIndex;
  readonly #byTop: TimeWindowIndex;
  readonly #random: Random;
  #weighed = 0;
  /** Of the last question: conflicting items (none in a gap), and the highest offset. */
  #count = 0;
  #last = 0;
  /** The best so far: its weight, its offset, and how many are as good. */
  #least = 0;
  #from = -1;
  #ties = 0;

  constructor(sections: Sections, random: Random) {
    const { n } = sections;
    this.#sections = sections;
    this.#random = random;
    this.offset = new Float64Array(n);
    this.top = new Float64Array(n);
    this.isPlaced = new Uint8Array(n);
    this.conflicts = new Int32Array(n);
    this.#byOffset = new TimeWindowIndex(sections, this.offset);
    this.#byTop = new TimeWindowIndex(sections, this.top);
  }

  /** Entries looked at so far, a measure of time. */
  get work(): number {
    return this.#byOffset.work + this.#byTop.work + this.#weighed;
  }

  /** Places these items, and no others, at their `offset`. */
  fill(items: Int32Array): void {
    this.isPlaced.fill(0);
    for (const i of items) {
      this.top[i] = (this.offset[i] as number) + (this.#sections.size[i] as number);
      this.isPlaced[i] = 1;
    }
    this.#byOffset.fill(items);
    this.#byTop.fill(items);
  }

  place(i: number, offset: number): void {
    this.offset[i] = offset;
    this.top[i] = offset + (this.#sections.size[i] as number);
    this.isPlaced[i] = 1;
    this.#byOffset.add(i);
    this.#byTop.add(i);
  }

  remove(i: number): void {
    this.isPlaced[i] = 0;
    this.#byOffset.remove(i);
    this.#byTop.remove(i);
  }

  /** The lowest gap for item i below `limit`, or else where it conflicts with the least weight; -1 where it does not fit. */
  cheapestFor(i: number, limit: number, weight: Float64Array): number {
    this.#last = limit - (this.#sections.size[i] as number);
    this.#count = this.#byOffset.conflicting(i);
    const gap = this.#gapFor(i);
    if (gap >= 0) {
      this.#count = 0;
      return gap;
    }
    this.#byTop.conflicting(i);
    return this.#leastFor(i, weight);
  }

  /** Fills `conflicts` with the items that overlap item i at an offset from `cheapestFor`; returns their number. */
  conflictsAt(i: number, from: number): number {
    const { offset, top } = this;
    const near = this.#byOffset.result;
    const to = from + (this.#sections.size[i] as number);
    let size = 0;
    for (let p = 0; p < this.#count; p++) {
      const j = near[p] as number;
      if ((offset[j] as number) < to && (top[j] as number) > from) this.conflicts[size++] = j;
    }
    return size;
  }

  /** The lowest gap, or -1. */
  #gapFor(i: number): number {
    const { offset, top } = this;
    const near = this.#byOffset.result;
    const size = this.#sections.size[i] as number;
    let floor = 0;
    for (let p = 0; p < this.#count; p++) {
      const j = near[p] as number;
      if ((offset[j] as number) - floor >= size) return floor;
      if ((top[j] as number) > floor) floor = this.#up(i, top[j] as number);
    }
    return floor <= this.#last ? floor : -1;
  }

  /**
   * The offset with the least weight of conflicts. At p these are the items that start below p + size, less those that
   * end at or below p, so the weight falls at every top, and rises right behind every offset less the size; it is least
   * from the last top up to there:
   *
   *     weight ┤──┐     ┌──       both ends are tried, on top of an item and directly under one,
   *            │  └─┐ ┌─┘         and with alignment the offsets in between
   *          p ┤    ├─┤
   */
  #leastFor(i: number, weight: Float64Array): number {
    const { offset, top } = this;
    const [byOffset, byTop] = [this.#byOffset.result, this.#byTop.result];
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

  /** Tries offsets `from` and `to`, with conflicts of the same weight everywhere between them. */
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
