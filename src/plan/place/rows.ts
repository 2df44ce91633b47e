/**
 * @file Where an item does least harm, for items whose sizes have a large common divisor: offsets are rows of that height,
 * a few hundred of them, so what is in the way of an item is counted for every row at once.
 *
 *     row 5 ┤          ┌───┐      item of 2 rows, contemporaries a (3 rows) and b (2 rows):
 *         4 ┤          │ b │        it meets a from row 0 to 2, b from row 3 to 5
 *         3 ┤          └───┘        in the way: a a a b b b, and where that falls or before it rises, it is tried
 *         2 ┤ ┌────┐
 *         1 ┤ │ a  │
 *         0 ┤ └────┘
 *
 * Lists of contemporaries are made once; nothing has to be kept sorted. That is several times as many steps in a second as
 * shelves.ts allows.
 */
import type { Places } from "./places.ts";
import type { Random } from "./random.ts";
import type { Sections } from "./sections.ts";

/** Weights that differ by less are equal: sums of them are not exact. */
const EQUAL = 1e-9;

export class RowPlaces implements Places {
  readonly offset: Float64Array;
  readonly top: Float64Array;
  readonly inside: Uint8Array;
  readonly met: Int32Array;
  work = 0;
  readonly #size: Float64Array;
  readonly #random: Random;
  /** Contemporaries of item i: [base[i], base[i + 1]) of `others`. */
  readonly #base: Int32Array;
  readonly #others: Int32Array;
  /** Per row: how the weight in the way changes, and whether it does. */
  #change = new Float64Array(0);
  #isEdge = new Uint8Array(0);
  #isGap = false;

  constructor(sections: Sections, random: Random) {
    const { n, size } = sections;
    this.offset = new Float64Array(n);
    this.top = new Float64Array(n);
    this.inside = new Uint8Array(n);
    this.met = new Int32Array(n);
    this.#size = size;
    this.#random = random;
    this.#base = new Int32Array(n + 1);
    this.#others = contemporaries(sections, this.#base);
  }

  clear(): void {
    this.inside.fill(0);
  }

  fill(items: Int32Array): void {
    for (const i of items) this.put(i, this.offset[i] as number);
  }

  put(i: number, offset: number): void {
    this.offset[i] = offset;
    this.top[i] = offset + (this.#size[i] as number);
    this.inside[i] = 1;
  }

  take(i: number): void {
    this.inside[i] = 0;
  }

  cheapestFor(i: number, limit: number, weight: Float64Array): number {
    const last = limit - (this.#size[i] as number);
    if (last < 0) return -1;
    this.#count(i, last, weight);
    const [change, isEdge] = [this.#change, this.#isEdge];
    let [cost, least, from, ties] = [0, Number.POSITIVE_INFINITY, -1, 0];
    for (let row = 0; row <= last; row++) {
      cost += change[row] as number;
      if (isEdge[row] === 0 || cost > least + EQUAL) continue;
      if (cost < EQUAL) {
        this.#isGap = true;
        return row;
      }
      ties = cost < least - EQUAL ? 1 : ties + 1;
      if (ties === 1 || this.#random() * ties < 1) from = row;
      least = Math.min(least, cost);
    }
    this.#isGap = false;
    return from;
  }

  meet(i: number, from: number): number {
    if (this.#isGap) return 0;
    const { offset, top, inside } = this;
    const others = this.#others;
    const to = from + (this.#size[i] as number);
    const end = this.#base[i + 1] as number;
    let found = 0;
    for (let p = this.#base[i] as number; p < end; p++) {
      const j = others[p] as number;
      if (inside[j] === 1 && (offset[j] as number) < to && (top[j] as number) > from) this.met[found++] = j;
    }
    return found;
  }

  /** What is in the way of item i in rows 0 to `last`. */
  #count(i: number, last: number, weight: Float64Array): void {
    if (this.#change.length < last + 2) {
      this.#change = new Float64Array(2 * last + 2);
      this.#isEdge = new Uint8Array(2 * last + 2);
    }
    const [change, isEdge, others] = [this.#change, this.#isEdge, this.#others];
    const { offset, top, inside } = this;
    change.fill(0, 0, last + 1);
    isEdge.fill(0, 0, last + 1);
    isEdge[0] = 1;
    isEdge[last] = 1;
    const before = (this.#size[i] as number) - 1;
    const end = this.#base[i + 1] as number;
    this.work += end - (this.#base[i] as number) + (last >> 1);
    for (let p = this.#base[i] as number; p < end; p++) {
      const j = others[p] as number;
      if (inside[j] === 0) continue;
      const first = (offset[j] as number) - before;
      if (first > last) continue;
      const w = weight[j] as number;
      if (first > 0) {
        change[first] = (change[first] as number) + w;
        isEdge[first - 1] = 1;
      } else change[0] = (change[0] as number) + w;
      const behind = top[j] as number;
      if (behind > last) continue;
      change[behind] = (change[behind] as number) - w;
      isEdge[behind] = 1;
    }
  }
}

/** How many pairs of items share a section. */
export function countPairs({ n, lo, hi }: Sections): number {
  const starts = Int32Array.from(lo).sort();
  const ends = Int32Array.from(hi).sort();
  let [pairs, ended] = [0, 0];
  for (let k = 0; k < n; k++) {
    while ((ends[ended] as number) <= (starts[k] as number)) ended += 1;
    pairs += k - ended;
  }
  return pairs;
}

/** Fills `base`, and lists who shares a section with whom; items come in order of their first section. */
function contemporaries(sections: Sections, base: Int32Array): Int32Array {
  const { n, lo, hi } = sections;
  const others = new Int32Array(2 * countPairs(sections));
  let found = 0;
  for (let i = 0; i < n; i++) {
    base[i] = found;
    for (let j = 0; j < n && (lo[j] as number) < (hi[i] as number); j++) {
      if (j !== i && (hi[j] as number) > (lo[i] as number)) others[found++] = j;
    }
  }
  base[n] = found;
  return others;
}
