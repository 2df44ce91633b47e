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
import { invariant } from "../../base/invariant.ts";
import { FIXED, type Places } from "./places.ts";
import type { Sections } from "./sections.ts";

/** After so many steps, a part of the weight that items have gained is gone. */
const FORGETTING = 100;

export class Repair {
  /** Items put back so far, a measure of time. */
  steps = 0;
  readonly #sections: Sections;
  readonly #places: Places;
  /** Ends everything from outside. */
  readonly #late: () => boolean;
  /** How much is left of what items have gained, each time that they forget. */
  #kept = 0;
  /** What an item weighs at first, by how much it gains, and what goes back first. */
  readonly #hardness: Float64Array;
  readonly #weight: Float64Array;
  /** What is outside, the hardest last. */
  readonly #pool: Int32Array;
  #pooled = 0;
  /** Below what each item has to end. */
  #limits: Float64Array;

  constructor(sections: Sections, places: Places, late: () => boolean) {
    const { n } = sections;
    this.#sections = sections;
    this.#places = places;
    this.#late = late;
    this.#limits = new Float64Array(n);
    this.#weight = new Float64Array(n);
    this.#pool = new Int32Array(n);
    this.#hardness = new Float64Array(n);
  }

  get offset(): Float64Array {
    return this.#places.offset;
  }

  /** Pairs of items looked at so far, another measure of time. */
  get work(): number {
    return this.#places.work;
  }

  /**
   * Starts from a placement, cut off at the items' limits, or from nothing but what is fixed. `mix` says how much size
   * counts for being hard, against length; `kept`, how much is left of what items have gained after `FORGETTING` steps.
   * Nothing that is fixed may be above its limit.
   */
  load(offset: Float64Array | null, limits: Float64Array, mix: number, kept: number): void {
    this.#kept = kept;
    this.#measure(mix);
    const { n, size, fixed } = this.#sections;
    this.#limits = limits;
    this.#pooled = 0;
    this.#places.clear();
    const within: number[] = [];
    for (let i = 0; i < n; i++) {
      const isFixed = (fixed[i] as number) >= 0;
      this.#weight[i] = isFixed ? FIXED : (this.#hardness[i] as number);
      const from = offset?.[i] ?? (isFixed ? (fixed[i] as number) : Number.POSITIVE_INFINITY);
      this.#places.offset[i] = from;
      if (from + (size[i] as number) <= (limits[i] as number)) within.push(i);
      else {
        invariant(!isFixed, () => `item ${i} is fixed at ${from}, and has to end at ${limits[i]}`);
        this.#pool[this.#pooled++] = i;
      }
    }
    const hardness = this.#hardness;
    this.#pool.subarray(0, this.#pooled).sort((a, b) => (hardness[a] as number) - (hardness[b] as number) || b - a);
    this.#places.fill(Int32Array.from(within));
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

  /** Goes on with other limits; what sticks out joins the pool. */
  aimAt(limits: Float64Array): void {
    const { inside, top } = this.#places;
    this.#limits = limits;
    for (let i = 0; i < this.#sections.n; i++) {
      if (inside[i] === 1 && (top[i] as number) > (limits[i] as number)) this.#evict(i);
    }
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

  #evict(i: number): void {
    invariant((this.#weight[i] as number) < FIXED, () => `item ${i} is fixed and would be pushed out`);
    this.#places.take(i);
    this.#drop(i);
  }

  /** Puts an item in, by force if need be; false when it does not fit even then. */
  #insert(i: number): boolean {
    this.steps += 1;
    if (this.steps % FORGETTING === 0) this.#forget();
    if ((this.steps & 63) === 0 && this.#late()) return false;
    const from = this.#places.cheapestFor(i, this.#limits[i] as number, this.#weight);
    if (from < 0) return false;
    const { met } = this.#places;
    const count = this.#places.meet(i, from);
    for (let p = 0; p < count; p++) this.#evict(met[p] as number);
    if (count > 0) this.#weight[i] = (this.#weight[i] as number) + (this.#hardness[i] as number);
    this.#places.put(i, from);
    return true;
  }

  /** Lets the weights go back to what they were at first. */
  #forget(): void {
    const [weight, hardness] = [this.#weight, this.#hardness];
    for (let i = 0; i < weight.length; i++) {
      const first = hardness[i] as number;
      const now = weight[i] as number;
      if (now < FIXED) weight[i] = first + this.#kept * (now - first);
    }
  }
}
