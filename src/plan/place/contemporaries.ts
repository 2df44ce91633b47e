/**
 * @file Which items share a section with a given one? Items are sorted by first section, so they are a prefix of all
 * items, less those that end too early; a segment tree of latest ends finds them in O(log n) each. Answers are kept while
 * there is room for them, since search asks for the same items again and again.
 */
import type { Sections } from "./sections.ts";

/** Most answers to keep, in items. */
const ROOM = 1 << 23;

export class Contemporaries {
  readonly #sections: Sections;
  readonly #leaves: number;
  readonly #latest: Int32Array;
  /** Per section, how many items start before it. */
  readonly #before: Int32Array;
  readonly #found: Int32Array;
  #count = 0;
  readonly #kept: (Int32Array | undefined)[];
  #room = ROOM;

  constructor(sections: Sections) {
    const { n, count, lo, hi } = sections;
    this.#sections = sections;
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(1, n)));
    this.#latest = new Int32Array(2 * this.#leaves);
    this.#latest.set(hi, this.#leaves);
    for (let i = this.#leaves - 1; i > 0; i--) {
      this.#latest[i] = Math.max(this.#latest[2 * i] as number, this.#latest[2 * i + 1] as number);
    }
    this.#before = new Int32Array(count + 1);
    for (let i = 0; i < n; i++) this.#before[(lo[i] as number) + 1] = i + 1;
    for (let s = 1; s <= count; s++) {
      this.#before[s] = Math.max(this.#before[s] as number, this.#before[s - 1] as number);
    }
    this.#found = new Int32Array(n);
    this.#kept = new Array(n).fill(undefined);
  }

  /** All that share a section with item i, but not itself, in order. Valid until the next call. */
  of(i: number): Int32Array {
    const known = this.#kept[i];
    if (known) return known;
    const { lo, hi } = this.#sections;
    this.#count = 0;
    this.#collect(1, 0, this.#leaves, this.#before[hi[i] as number] as number, lo[i] as number, i);
    const view = this.#found.subarray(0, this.#count);
    if (this.#count > this.#room) return view;
    this.#room -= this.#count;
    const kept = view.slice();
    this.#kept[i] = kept;
    return kept;
  }

  #collect(node: number, from: number, to: number, limit: number, start: number, self: number): void {
    if (from >= limit || (this.#latest[node] as number) <= start) return;
    if (to - from === 1) {
      if (from !== self) this.#found[this.#count++] = from;
      return;
    }
    const mid = (from + to) >> 1;
    this.#collect(2 * node, from, mid, limit, start, self);
    this.#collect(2 * node + 1, mid, to, limit, start, self);
  }
}
