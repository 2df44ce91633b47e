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
 * What is hard to place, large and long, weighs more from the start. Weights and places are kept when the height is
 * lowered further: one long walk comes lower than many short ones.
 */
import type { Random } from "./random.ts";
import type { Sections } from "./sections.ts";
import { Shelves } from "./shelves.ts";

/** A fixed item weighs more than everything else together. */
const FIXED = 1e9;

export class Repair {
  /** Items put back so far, a measure of time. */
  steps = 0;
  readonly #sections: Sections;
  readonly #shelves: Shelves;
  readonly #random: Random;
  /** Ends everything from outside. */
  readonly #late: () => boolean;
  /** √(size · length), each relative to the largest: what an item weighs at first, and by how much it gains. */
  readonly #hardness: Float64Array;
  readonly #weight: Float64Array;
  readonly #pool: Int32Array;
  #pooled = 0;
  #limit = 0;
  /** For weighing: contemporaries' offsets and tops in order, the weights that start and end there, where to try. */
  readonly #offsets: Float64Array;
  readonly #tops: Float64Array;
  readonly #starting: Float64Array;
  readonly #ending: Float64Array;
  readonly #candidates: Float64Array;
  /** The best so far: its weight, where it is, and how many are as good. */
  #least = 0;
  #from = -1;
  #ties = 0;
  #weighed = 0;

  constructor(sections: Sections, random: Random, late: () => boolean) {
    const { n, count, size, lo, hi } = sections;
    this.#sections = sections;
    this.#shelves = new Shelves(sections, true);
    this.#random = random;
    this.#late = late;
    this.#weight = new Float64Array(n);
    this.#pool = new Int32Array(n);
    this.#offsets = new Float64Array(n);
    this.#tops = new Float64Array(n);
    this.#starting = new Float64Array(n);
    this.#ending = new Float64Array(n);
    this.#candidates = new Float64Array(n + 1);
    const largest = size.reduce((most, x) => Math.max(most, x), 1);
    const length = (i: number): number => ((hi[i] as number) - (lo[i] as number)) / Math.max(1, count);
    this.#hardness = size.map((x, i) => Math.sqrt((x / largest) * length(i)));
  }

  get offset(): Float64Array {
    return this.#shelves.offset;
  }

  /** Pairs of items looked at so far, another measure of time. */
  get work(): number {
    return this.#shelves.work + this.#weighed;
  }

  /** Starts from a placement, cut off at `limit`. False when a fixed item is above it. */
  load(offset: Float64Array, limit: number): boolean {
    const { n, size, fixed } = this.#sections;
    this.#limit = limit;
    this.#pooled = 0;
    this.#shelves.clear();
    const within: number[] = [];
    for (let i = 0; i < n; i++) {
      const isFixed = (fixed[i] as number) >= 0;
      this.#weight[i] = isFixed ? FIXED : (this.#hardness[i] as number);
      this.#shelves.offset[i] = offset[i] as number;
      if ((offset[i] as number) + (size[i] as number) <= limit) within.push(i);
      else if (isFixed) return false;
      else this.#pool[this.#pooled++] = i;
    }
    this.#shelves.fill(Int32Array.from(within));
    return true;
  }

  /** Goes on with another limit; what sticks out of it joins the pool. False when that is fixed. */
  aimAt(limit: number): boolean {
    const { inside, top } = this.#shelves;
    this.#limit = limit;
    for (let i = 0; i < this.#sections.n; i++) {
      if (inside[i] === 1 && (top[i] as number) > limit && !this.#evict(i)) return false;
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
      if (this.#insert(item)) continue;
      this.#pool[this.#pooled++] = item;
      return false;
    }
    return true;
  }

  #evict(i: number): boolean {
    if ((this.#weight[i] as number) >= FIXED) return false;
    this.#shelves.take(i);
    this.#pool[this.#pooled++] = i;
    return true;
  }

  /** Puts an item in, by force if need be; false when it does not fit even then. */
  #insert(i: number): boolean {
    this.steps += 1;
    if ((this.steps & 63) === 0 && this.#late()) return false;
    const { offset, top, byOffset } = this.#shelves;
    const count = this.#shelves.around(i);
    const gap = this.#gapFor(i, count);
    if (gap >= 0) {
      this.#shelves.put(i, gap);
      return true;
    }
    this.#shelves.aroundByTop(i);
    const from = this.#cheapestFor(i, count);
    if (from < 0) return false;
    const to = from + (this.#sections.size[i] as number);
    for (let p = 0; p < count; p++) {
      const j = byOffset[p] as number;
      if ((offset[j] as number) < to && (top[j] as number) > from) this.#evict(j);
    }
    this.#weight[i] = (this.#weight[i] as number) + (this.#hardness[i] as number);
    this.#shelves.put(i, from);
    return true;
  }

  /** The lowest gap among the first `count` by offset, or -1. */
  #gapFor(i: number, count: number): number {
    const { offset, top, byOffset } = this.#shelves;
    const size = this.#sections.size[i] as number;
    let floor = 0;
    for (let p = 0; p < count; p++) {
      const j = byOffset[p] as number;
      if ((offset[j] as number) - floor >= size) return floor;
      if ((top[j] as number) > floor) floor = this.#up(i, top[j] as number);
    }
    return floor + size <= this.#limit ? floor : -1;
  }

  /** The offset at which least is in the way: on the top of something, or right under something. */
  #cheapestFor(i: number, count: number): number {
    const { offset, top, byOffset, byTop } = this.#shelves;
    for (let p = 0; p < count; p++) {
      const first = byOffset[p] as number;
      this.#offsets[p] = offset[first] as number;
      this.#starting[p] = this.#weight[first] as number;
      const second = byTop[p] as number;
      this.#tops[p] = top[second] as number;
      this.#ending[p] = this.#weight[second] as number;
    }
    const { align } = this.#sections;
    const step = align ? (align[i] as number) : 0;
    const size = this.#sections.size[i] as number;
    const candidates = this.#candidates;
    candidates[0] = 0;
    for (let p = 0; p < count; p++) candidates[p + 1] = this.#up(i, this.#tops[p] as number);
    this.#weighed += 2 * count;
    this.#least = FIXED / 2;
    this.#from = -1;
    this.#ties = 0;
    this.#weigh(size, count);
    for (let p = 0; p <= count; p++) {
      const under = (p < count ? (this.#offsets[p] as number) : this.#limit) - size;
      candidates[p] = step > 0 ? Math.floor(under / step) * step : under;
    }
    this.#weigh(size, count);
    return this.#from;
  }

  /**
   * What is in the way at p is what starts below p + size, less what ends at or below p; both sums grow with p. The best
   * of count + 1 candidates, which rise, goes to #from.
   */
  #weigh(size: number, count: number): void {
    const [offsets, tops, starting, ending] = [this.#offsets, this.#tops, this.#starting, this.#ending];
    let [starts, ends, cost] = [0, 0, 0];
    for (let q = 0; q <= count; q++) {
      const p = this.#candidates[q] as number;
      if (p < 0) continue;
      const to = p + size;
      if (to > this.#limit) break;
      for (; starts < count && (offsets[starts] as number) < to; starts++) cost += starting[starts] as number;
      for (; ends < count && (tops[ends] as number) <= p; ends++) cost -= ending[ends] as number;
      if (cost > this.#least) continue;
      this.#ties = cost < this.#least ? 1 : this.#ties + 1;
      this.#least = cost;
      if (this.#ties === 1 || this.#random() * this.#ties < 1) this.#from = p;
    }
  }

  #up(i: number, offset: number): number {
    const { align } = this.#sections;
    return align ? Math.ceil(offset / (align[i] as number)) * (align[i] as number) : offset;
  }
}
