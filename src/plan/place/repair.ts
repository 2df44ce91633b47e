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
 * It is forgotten again after some thousand steps; otherwise all weigh the same in the end, and the walk gets worse the
 * longer it is. What is hard to place, large and long, weighs more from the start and goes back first: the small ones find
 * a place around the large ones, hardly ever the other way round. Weights and places are kept when the height is lowered
 * further: one long walk comes lower than many short ones.
 */
import type { Random } from "./random.ts";
import type { Sections } from "./sections.ts";
import { Shelves } from "./shelves.ts";

/** A fixed item weighs more than everything else together. */
const FIXED = 1e9;
/** After so many steps, so much is left of the weight that items have gained: half of it is gone after 1,350. */
const FORGETTING = 100;
const KEPT = 0.95;

export class Repair {
  /** Items put back so far, a measure of time. */
  steps = 0;
  readonly #sections: Sections;
  readonly #shelves: Shelves;
  readonly #random: Random;
  /** Ends everything from outside. */
  readonly #late: () => boolean;
  /** What an item weighs at first, by how much it gains, and what goes back first. */
  readonly #hardness: Float64Array;
  readonly #weight: Float64Array;
  /** What is outside, the hardest last. */
  readonly #pool: Int32Array;
  #pooled = 0;
  #limit = 0;
  /** The best so far: its weight, where it is, and how many are as good. */
  #least = 0;
  #from = -1;
  #ties = 0;
  #weighed = 0;

  constructor(sections: Sections, random: Random, late: () => boolean) {
    const { n } = sections;
    this.#sections = sections;
    this.#shelves = new Shelves(sections, true);
    this.#random = random;
    this.#late = late;
    this.#weight = new Float64Array(n);
    this.#pool = new Int32Array(n);
    this.#hardness = new Float64Array(n);
  }

  get offset(): Float64Array {
    return this.#shelves.offset;
  }

  /** Pairs of items looked at so far, another measure of time. */
  get work(): number {
    return this.#shelves.work + this.#weighed;
  }

  /**
   * Starts from a placement, cut off at `limit`, or from nothing but what is fixed. `mix` says how much size counts for
   * being hard, against length. False when a fixed item is above the limit.
   */
  load(offset: Float64Array | null, limit: number, mix: number): boolean {
    this.#measure(mix);
    const { n, size, fixed } = this.#sections;
    this.#limit = limit;
    this.#pooled = 0;
    this.#shelves.clear();
    const within: number[] = [];
    for (let i = 0; i < n; i++) {
      const isFixed = (fixed[i] as number) >= 0;
      this.#weight[i] = isFixed ? FIXED : (this.#hardness[i] as number);
      const from = offset?.[i] ?? (isFixed ? (fixed[i] as number) : Number.POSITIVE_INFINITY);
      this.#shelves.offset[i] = from;
      if (from + (size[i] as number) <= limit) within.push(i);
      else if (isFixed) return false;
      else this.#pool[this.#pooled++] = i;
    }
    const hardness = this.#hardness;
    this.#pool.subarray(0, this.#pooled).sort((a, b) => (hardness[a] as number) - (hardness[b] as number) || b - a);
    this.#shelves.fill(Int32Array.from(within));
    return true;
  }

  /** How hard items are: size^mix · length^(1 - mix), each relative to the largest. */
  #measure(mix: number): void {
    const { count, size, lo, hi } = this.#sections;
    const largest = size.reduce((most, x) => Math.max(most, x), 1);
    size.forEach((x, i) => {
      const length = ((hi[i] as number) - (lo[i] as number)) / Math.max(1, count);
      this.#hardness[i] = (x / largest) ** mix * length ** (1 - mix);
    });
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
      this.#pooled -= 1;
      const item = this.#pool[this.#pooled] as number;
      if (this.#insert(item)) continue;
      this.#drop(item);
      return false;
    }
    return true;
  }

  /** Puts an item into the pool. */
  #drop(i: number): void {
    const [pool, hardness, value] = [this.#pool, this.#hardness, this.#hardness[i] as number];
    let [low, high] = [0, this.#pooled];
    while (low < high) {
      const mid = (low + high) >> 1;
      if ((hardness[pool[mid] as number] as number) < value) low = mid + 1;
      else high = mid;
    }
    pool.copyWithin(low + 1, low, this.#pooled);
    pool[low] = i;
    this.#pooled += 1;
  }

  #evict(i: number): boolean {
    if ((this.#weight[i] as number) >= FIXED) return false;
    this.#shelves.take(i);
    this.#drop(i);
    return true;
  }

  /** Puts an item in, by force if need be; false when it does not fit even then. */
  #insert(i: number): boolean {
    this.steps += 1;
    if (this.steps % FORGETTING === 0) this.#forget();
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

  /** Lets the weights go back to what they were at first. */
  #forget(): void {
    const [weight, hardness] = [this.#weight, this.#hardness];
    for (let i = 0; i < weight.length; i++) {
      const first = hardness[i] as number;
      const now = weight[i] as number;
      if (now < FIXED) weight[i] = first + KEPT * (now - first);
    }
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

  /**
   * The offset at which least is in the way. What is in the way at p is what starts below p + size, less what ends at or
   * below p, so it gets less at every top, and more right behind every offset less the size; nothing is less than it is
   * from the last top up to there:
   *
   *     in the way ┤──┐     ┌──       tried are both ends, on the top of something and right under something,
   *                │  └─┐ ┌─┘         and with alignment what is in between
   *              p ┤    ├─┤
   */
  #cheapestFor(i: number, count: number): number {
    const { offset, top, byOffset, byTop } = this.#shelves;
    const weight = this.#weight;
    const size = this.#sections.size[i] as number;
    const last = this.#limit - size;
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
