/**
 * @file Local search by ejection: items that do not fit below a target height go into a pool and are put back one at a
 * time, into a gap if there is one, otherwise where the conflicting items weigh least; those are ejected into the pool.
 * (The ejection pool of Nagata and Bräysy, 2009, for vehicle routes; items are customers, sections are vehicles.)
 *
 *     height ┤ ┌────┐        c sticks out           there is a gap of 2, and a of 1 weighs least:
 *     target ┤-│ c  │---                              c replaces a, a goes into the pool and
 *            │ └─┬──┴─┐                               finds a gap elsewhere
 *            │ a │ b  │
 *
 * An item that was placed by force gains weight, so that it is not ejected at once: that ends cycles. Gained weights
 * decay, otherwise all weigh the same in the end. Items that are hard to place, large and long, weigh more from the
 * start and are put back first: small ones fit around large ones, hardly ever the other way round.
 *
 *     best   ┤                    local search starts with nothing placed and a target close to the bound; without success for
 *     target ┤    ┌───┐           a while, the target is raised; with success, lowered. Near the best height it
 *            ┤ ┌──┘   └───┐       restarts, alternately from the best placement and from nothing.
 *     bound  ┤─┘          └──
 */
import { invariant } from "../../base/invariant.ts";
import { FIXED, PlacedItems } from "./conflicts.ts";
import type { SearchParams } from "./params.ts";
import type { Random } from "./random.ts";
import { heightOfItems, type Sections } from "./sections.ts";

/** Iterations between two decays. */
const DECAY_INTERVAL = 100;
/** Iterations of a round. */
const ROUND = 2000;

/** With more items, never start from an empty placement: that alone takes many seconds. */
const EMPTY_START_ITEMS = 40_000;

/** The state of the search: a placement of height `best` exists, none below `bound` does. */
export interface Incumbent {
  readonly offset: Float64Array;
  readonly best: number;
  readonly bound: number;
}

export class Repair {
  /** Items put back so far. */
  iterations = 0;
  readonly #sections: Sections;
  readonly #params: SearchParams;
  readonly #isOver: () => boolean;
  readonly #placed: PlacedItems;
  /** The initial weight of an item, and its gain when placed by force; the hardest item is reinserted first. */
  readonly #hardness: Float64Array;
  readonly #weight: Float64Array;
  /** Unplaced items, the hardest last. */
  readonly #pool: Int32Array;
  #pooled = 0;
  /** The height that no item may exceed. */
  #target = 0;
  #rounds = 0;
  #restarts = 0;
  /** Iterations since the last success. */
  #unsuccessful = Number.POSITIVE_INFINITY;

  constructor(sections: Sections, params: SearchParams, random: Random, isOver: () => boolean) {
    const { n, count, size, lo, hi } = sections;
    this.#sections = sections;
    this.#params = params;
    this.#isOver = isOver;
    this.#placed = new PlacedItems(sections, random);
    this.#weight = new Float64Array(n);
    this.#pool = new Int32Array(n);
    const largest = size.reduce((most, x) => Math.max(most, x), 1);
    this.#hardness = size.map((x, i) => {
      const length = ((hi[i] as number) - (lo[i] as number)) / Math.max(1, count);
      return (x / largest) ** params.sizeExponent * length ** (1 - params.sizeExponent);
    });
  }

  /** Offsets after a success. */
  get offset(): Float64Array {
    return this.#placed.offset;
  }

  /** Pairs of items examined so far, and all items once a round. */
  get work(): number {
    return this.#placed.work + this.#rounds * this.#sections.n;
  }

  /** One round; true if it ends with a placement that is lower than the best. */
  round(incumbent: Incumbent): boolean {
    const { best, bound } = incumbent;
    this.#rounds += 1;
    if (this.#unsuccessful >= Math.max(this.#params.patience, 2 * this.#sections.n)) this.#raise(incumbent);
    this.#unsuccessful += ROUND;
    if (!this.#fit(ROUND)) return false;
    this.#unsuccessful = 0;
    const height = heightOfItems(this.#sections, this.offset);
    this.#aimAt(this.#below(Math.min(best, height), bound));
    return height < best;
  }

  /** A height to try next: lower than `height` by a part of its distance to the bound, by a unit at least. */
  #below(height: number, bound: number): number {
    return Math.max(bound, height - Math.max(1, Math.ceil(this.#params.descent * (height - bound))));
  }

  /** Doubles the target's distance to the bound; restarts where that is too close to the best. */
  #raise(incumbent: Incumbent): void {
    const { best, bound } = incumbent;
    this.#unsuccessful = 0;
    const raised = bound + 2 * (this.#target - bound);
    if (this.#rounds > 1 && raised > this.#target && raised <= this.#below(best, bound)) this.#target = raised;
    else this.#restart(incumbent);
  }

  #restart({ offset, best, bound }: Incumbent): void {
    const { n, size, fixed } = this.#sections;
    const isEmpty = this.#params.emptyStart && n <= EMPTY_START_ITEMS && this.#restarts % 2 === 0;
    this.#restarts += 1;
    this.#target = isEmpty ? bound + Math.ceil(this.#params.descent * (best - bound)) : this.#below(best, bound);
    this.#target = Math.min(this.#target, best - 1);
    const within: number[] = [];
    this.#pooled = 0;
    for (let i = 0; i < n; i++) {
      const isFixed = (fixed[i] as number) >= 0;
      this.#weight[i] = isFixed ? FIXED : (this.#hardness[i] as number);
      this.#placed.offset[i] = offset[i] as number;
      const fits = (offset[i] as number) + (size[i] as number) <= this.#target;
      invariant(fits || !isFixed, () => `item ${i} is fixed above the bound`);
      if (isFixed || (fits && !isEmpty)) within.push(i);
      else this.#pool[this.#pooled++] = i;
    }
    const hardness = this.#hardness;
    this.#pool.subarray(0, this.#pooled).sort((a, b) => (hardness[a] as number) - (hardness[b] as number) || b - a);
    this.#placed.fill(Int32Array.from(within));
  }

  /** Lowers the target; items above it join the pool. */
  #aimAt(target: number): void {
    const { isPlaced, top } = this.#placed;
    this.#target = target;
    for (let i = 0; i < this.#sections.n; i++) {
      if (isPlaced[i] === 1 && (top[i] as number) > target) this.#eject(i);
    }
  }

  /** Puts items of the pool back until it is empty (true) or the iterations are used up. */
  #fit(iterations: number): boolean {
    const last = this.iterations + iterations;
    while (this.#pooled > 0) {
      if (this.iterations >= last) return false;
      this.#pooled -= 1;
      const item = this.#pool[this.#pooled] as number;
      if (this.#insert(item)) continue;
      this.#addToPool(item);
      return false;
    }
    return true;
  }

  #addToPool(i: number): void {
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

  #eject(i: number): void {
    invariant((this.#weight[i] as number) < FIXED, () => `item ${i} is fixed and would be ejected`);
    this.#placed.remove(i);
    this.#addToPool(i);
  }

  /** Puts an item in, by force if need be; false when it does not fit even then. */
  #insert(i: number): boolean {
    this.iterations += 1;
    if (this.#params.decay && this.iterations % DECAY_INTERVAL === 0) this.#decay();
    if ((this.iterations & 63) === 0 && this.#isOver()) return false;
    const placed = this.#placed;
    const from = placed.cheapestFor(i, this.#target, this.#weight);
    if (from < 0) return false;
    const count = placed.conflictsAt(i, from);
    for (let p = 0; p < count; p++) this.#eject(placed.conflicts[p] as number);
    if (count > 0) this.#weight[i] = (this.#weight[i] as number) + (this.#hardness[i] as number);
    placed.place(i, from);
    return true;
  }

  /** Moves weights towards their initial values. */
  #decay(): void {
    const [weight, hardness] = [this.#weight, this.#hardness];
    for (let i = 0; i < weight.length; i++) {
      const first = hardness[i] as number;
      const now = weight[i] as number;
      if (now < FIXED) weight[i] = first + this.#params.weightDecay * (now - first);
    }
  }
}
