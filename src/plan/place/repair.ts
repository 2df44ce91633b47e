/**
 * @file Local search by ejection: a placement that is too high is cut off at the height that is wanted, and what sticks
 * out goes into a pool. Items of the pool are put back one at a time, into a gap if there is one, otherwise where they
 * push out least; what they push out joins the pool. (The ejection pool of Nagata and Bräysy, 2009, made for vehicle
 * routes; items take the part of customers, sections that of vehicles.)
 *
 *     height ┤ ┌────┐        c sticks out           a gap of 2, and a of 1 is least in the way:
 *     wanted ┤-│ c  │---                              c takes the place of a, a goes into the pool and
 *            │ └─┬──┴─┐                               finds a gap elsewhere
 *            │ a │ b  │
 *
 * To be put somewhere by force makes an item weigh more, so that it is not pushed out at once: that ends going in circles.
 * What is hard to place, large and long, weighs more from the start. The same holds for building a placement from
 * nothing: `build` puts the hardest items in first and repairs before it goes on to the next.
 */
import type { Contemporaries } from "./contemporaries.ts";
import type { Random } from "./random.ts";
import type { Sections } from "./sections.ts";

/** A fixed item weighs more than everything else together. */
const FIXED = 1e9;
/** Hardness of items at which `build` stops to repair. */
const LEVELS = [3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 0] as const;

export class Repair {
  readonly offset: Float64Array;
  /** Items put back so far, a measure of time. */
  steps = 0;
  /** Pairs of items looked at so far, another one. */
  work = 0;
  readonly #sections: Sections;
  readonly #contemporaries: Contemporaries;
  readonly #random: Random;
  /** Ends everything from outside. */
  readonly #late: () => boolean;
  readonly #top: Float64Array;
  readonly #inside: Uint8Array;
  /** size · length, each relative to the largest. */
  readonly #hardness: Float64Array;
  readonly #weight: Float64Array;
  readonly #pool: Int32Array;
  #pooled = 0;
  #limit = 0;
  /** Contemporaries that are inside, by offset and by top. */
  readonly #byOffset: Int32Array;
  readonly #byTop: Int32Array;
  readonly #spare: Int32Array;

  constructor(sections: Sections, contemporaries: Contemporaries, random: Random, late: () => boolean) {
    const { n, count, size, lo, hi } = sections;
    this.#sections = sections;
    this.#contemporaries = contemporaries;
    this.#random = random;
    this.#late = late;
    this.offset = new Float64Array(n);
    this.#top = new Float64Array(n);
    this.#inside = new Uint8Array(n);
    this.#weight = new Float64Array(n);
    this.#pool = new Int32Array(n);
    this.#byOffset = new Int32Array(n);
    this.#byTop = new Int32Array(n);
    this.#spare = new Int32Array(n);
    const largest = size.reduce((most, x) => Math.max(most, x), 1);
    this.#hardness = size.map((x, i) => (x / largest) * (((hi[i] as number) - (lo[i] as number)) / Math.max(1, count)));
  }

  /** Starts from a placement, cut off at `limit`. False when a fixed item is above it. */
  load(offset: Float64Array, limit: number): boolean {
    const { n, size } = this.#sections;
    this.#begin(limit);
    for (let i = 0; i < n; i++) {
      const from = offset[i] as number;
      if (from + (size[i] as number) <= limit) this.#put(i, from);
      else if (!this.#evict(i)) return false;
    }
    return true;
  }

  /** Puts items of the pool back until it is empty (true) or the steps are used up. */
  fit(steps: number): boolean {
    const last = this.steps + steps;
    while (this.#pooled > 0) {
      if (this.steps >= last) return false;
      const at = Math.floor(this.#random() * this.#pooled);
      const item = this.#pool[at] as number;
      this.#pooled -= 1;
      this.#pool[at] = this.#pool[this.#pooled] as number;
      if (!this.#insert(item)) return false;
    }
    return true;
  }

  /** Builds a placement from nothing, the hardest items first. */
  build(limit: number, steps: number): boolean {
    const { n, fixed, size } = this.#sections;
    const hardness = this.#hardness;
    this.#begin(limit);
    for (let i = 0; i < n; i++) {
      const at = fixed[i] as number;
      if (at < 0) this.#inside[i] = 0;
      else if (at + (size[i] as number) > limit) return false;
      else this.#put(i, at);
    }
    const order = Int32Array.from({ length: n }, (_, i) => i);
    order.sort((a, b) => (hardness[b] as number) - (hardness[a] as number) || a - b);
    const last = this.steps + steps;
    let next = 0;
    for (const level of LEVELS) {
      for (let i = order[next]; i !== undefined && (hardness[i] as number) >= level; i = order[++next]) {
        if (this.#inside[i] === 0 && !this.#insert(i)) return false;
      }
      if (!this.fit(last - this.steps)) return false;
    }
    return true;
  }

  #begin(limit: number): void {
    this.#limit = limit;
    this.#pooled = 0;
    const { fixed } = this.#sections;
    this.#hardness.forEach((hardness, i) => {
      this.#weight[i] = (fixed[i] as number) >= 0 ? FIXED : Math.sqrt(hardness);
    });
  }

  #put(i: number, offset: number): void {
    this.offset[i] = offset;
    this.#top[i] = offset + (this.#sections.size[i] as number);
    this.#inside[i] = 1;
  }

  #evict(i: number): boolean {
    if ((this.#weight[i] as number) >= FIXED) return false;
    this.#inside[i] = 0;
    this.#pool[this.#pooled++] = i;
    return true;
  }

  /** Puts an item in, by force if need be; false when it does not fit even then. */
  #insert(i: number): boolean {
    const { size } = this.#sections;
    this.steps += 1;
    if ((this.steps & 63) === 0 && this.#late()) return false;
    const all = this.#contemporaries.of(i);
    let count = 0;
    for (let p = 0; p < all.length; p++) {
      const j = all[p] as number;
      if (this.#inside[j] === 1) this.#byOffset[count++] = j;
    }
    this.work += all.length + count;
    this.#byTop.set(this.#byOffset.subarray(0, count));
    sortBy(this.#byOffset, this.offset, count, this.#spare);
    const gap = this.#gapFor(i, count);
    if (gap >= 0) {
      this.#put(i, gap);
      return true;
    }
    sortBy(this.#byTop, this.#top, count, this.#spare);
    const from = this.#cheapestFor(i, count);
    if (from < 0) return false;
    const to = from + (size[i] as number);
    for (let p = 0; p < count; p++) {
      const j = this.#byOffset[p] as number;
      if ((this.offset[j] as number) < to && (this.#top[j] as number) > from) this.#evict(j);
    }
    this.#weight[i] = (this.#weight[i] as number) + Math.sqrt(this.#hardness[i] as number);
    this.#put(i, from);
    return true;
  }

  /** The lowest gap among the first `count` of #byOffset, or -1. */
  #gapFor(i: number, count: number): number {
    const size = this.#sections.size[i] as number;
    let floor = 0;
    for (let p = 0; p < count; p++) {
      const j = this.#byOffset[p] as number;
      if ((this.offset[j] as number) - floor >= size) return floor;
      const top = this.#up(i, this.#top[j] as number);
      if (top > floor) floor = top;
    }
    return floor + size <= this.#limit ? floor : -1;
  }

  /**
   * The offset at which least is in the way: on the top of something or right under it. What is in the way at p is what
   * starts below p + size, less what ends at or below p; both sums grow with p.
   */
  #cheapestFor(i: number, count: number): number {
    const size = this.#sections.size[i] as number;
    let best = FIXED / 2;
    let from = -1;
    let ties = 0;
    for (const above of [true, false]) {
      let [starts, ends, started, ended] = [0, 0, 0, 0];
      for (let q = -1; q <= count; q++) {
        const p = this.#candidate(i, q, count, above);
        if (p < 0) continue;
        if (p + size > this.#limit) break;
        for (; starts < count && (this.offset[this.#byOffset[starts] as number] as number) < p + size; starts++) {
          started += this.#weight[this.#byOffset[starts] as number] as number;
        }
        for (; ends < count && (this.#top[this.#byTop[ends] as number] as number) <= p; ends++) {
          ended += this.#weight[this.#byTop[ends] as number] as number;
        }
        const cost = started - ended;
        if (cost > best) continue;
        ties = cost < best ? 1 : ties + 1;
        best = cost;
        if (ties === 1 || this.#random() * ties < 1) from = p;
      }
    }
    return from;
  }

  /** Positions in rising order, -1 for none: on tops, with 0 first; or under offsets, with the limit last. */
  #candidate(i: number, q: number, count: number, above: boolean): number {
    if (above) {
      if (q < 0) return 0;
      return q < count ? this.#up(i, this.#top[this.#byTop[q] as number] as number) : -1;
    }
    if (q < 0) return -1;
    const ceiling = q < count ? (this.offset[this.#byOffset[q] as number] as number) : this.#limit;
    const { align } = this.#sections;
    const from = ceiling - (this.#sections.size[i] as number);
    return align ? Math.floor(from / (align[i] as number)) * (align[i] as number) : from;
  }

  #up(i: number, offset: number): number {
    const { align } = this.#sections;
    return align ? Math.ceil(offset / (align[i] as number)) * (align[i] as number) : offset;
  }
}

/** Sorts the first `count` of `items` by a key: runs of eight by insertion, then merged. */
export function sortBy(items: Int32Array, key: Float64Array, count: number, spare: Int32Array): void {
  for (let run = 0; run < count; run += 8) {
    for (let i = run + 1, end = Math.min(count, run + 8); i < end; i++) {
      const item = items[i] as number;
      const value = key[item] as number;
      let at = i - 1;
      for (; at >= run && (key[items[at] as number] as number) > value; at--) items[at + 1] = items[at] as number;
      items[at + 1] = item;
    }
  }
  for (let width = 8; width < count; width *= 2) {
    for (let from = 0; from + width < count; from += 2 * width) {
      const mid = from + width;
      const end = Math.min(count, mid + width);
      if ((key[items[mid - 1] as number] as number) <= (key[items[mid] as number] as number)) continue;
      spare.set(items.subarray(from, mid), 0);
      let [a, b, out] = [0, mid, from];
      while (a < width && b < end) {
        const second = (key[items[b] as number] as number) < (key[spare[a] as number] as number);
        items[out++] = second ? (items[b++] as number) : (spare[a++] as number);
      }
      while (a < width) items[out++] = spare[a++] as number;
    }
  }
}
