/**
 * @file The state of branch and bound, with a trail to undo changes. Items are placed from below, never under anything
 * that was placed before, so the future depends on one number per unplaced item:
 *
 *     low[i] = the lowest offset that item i can still have (∞ once it is placed)
 *
 *       │ ┌──────┐                        placing a at 0 raises low[b] and low[c] to 2;
 *     2 ┤ │  b   ├────┐                   section s has {b, c}: floor[s] = min(low[b], low[c]) = 2,
 *       │ └──┬───┴ c ─┤                   rest[s] = size b + size c, and
 *     0 ┤    │ a │    │                   floor[s] + rest[s] > capacity is a dead end
 *
 * A floor includes fragmentation: it is the lowest offset of all unplaced items, not the top of the placed ones. Costs
 * are in items and sections next to the changed item; nothing is allocated. Each state has a 64-bit fingerprint, the
 * exclusive or of one number per unplaced item, updated with every change.
 */
import type { Sections } from "./sections.ts";

export class SearchState {
  readonly sections: Sections;
  readonly low: Float64Array;
  readonly offset: Float64Array;
  readonly floor: Float64Array;
  readonly rest: Float64Array;
  /** Per section, how many unplaced items it shares with the section before. */
  readonly cross: Int32Array;
  /** Per section, how many dead ends it has caused; decays (search.ts). */
  readonly failures: Float64Array;
  /** Items by first section: those that start in section s are [startsAt[s], startsAt[s + 1]). */
  readonly startsAt: Int32Array;
  /** Unplaced items of section s: list[base[s]] … list[base[s] + live[s] - 1]. */
  readonly list: Int32Array;
  readonly base: Int32Array;
  readonly live: Int32Array;
  /** The fingerprint of what is unplaced and where it may go. */
  print1 = 0;
  print2 = 0;
  capacity = 0;
  /** Position of item i in the list of section s: where[home[i] + s]. */
  readonly #where: Int32Array;
  readonly #home: Int32Array;
  /** Per section, an unplaced item that has its `low` at the floor, or -1: the floor stays as long as that is not raised. */
  readonly #witness: Int32Array;
  readonly #dirty: Int32Array;
  #dirtyCount = 0;
  /** Item i and its old `low`, or ~s and the old floor of section s. */
  #trailWhat = new Int32Array(1024);
  #trailOld = new Float64Array(1024);
  /** For sections, the old witness. */
  #trailWitness = new Int32Array(1024);
  #trailEnd = 0;

  constructor(sections: Sections) {
    const { n, count, lo, hi } = sections;
    this.sections = sections;
    this.low = new Float64Array(n);
    this.offset = new Float64Array(n);
    this.floor = new Float64Array(count);
    this.rest = new Float64Array(count);
    this.cross = new Int32Array(count + 1);
    this.failures = new Float64Array(count);
    this.live = new Int32Array(count);
    this.#witness = new Int32Array(count);
    this.#dirty = new Int32Array(count);
    this.startsAt = new Int32Array(count + 1).fill(n);
    for (let i = n - 1; i >= 0; i--) this.startsAt[lo[i] as number] = i;
    for (let s = count - 1; s >= 0; s--) {
      this.startsAt[s] = Math.min(this.startsAt[s] as number, this.startsAt[s + 1] as number);
    }
    this.base = new Int32Array(count + 1);
    this.#home = new Int32Array(n);
    let total = 0;
    for (let i = 0; i < n; i++) {
      this.#home[i] = total - (lo[i] as number);
      total += (hi[i] as number) - (lo[i] as number);
      for (let s = lo[i] as number; s < (hi[i] as number); s++) this.base[s + 1] = (this.base[s + 1] as number) + 1;
    }
    for (let s = 0; s < count; s++) this.base[s + 1] = (this.base[s + 1] as number) + (this.base[s] as number);
    this.list = new Int32Array(total);
    this.#where = new Int32Array(total);
  }

  /** Nothing is placed. False when a section alone is more than the capacity. */
  reset(capacity: number): boolean {
    const { n, count, lo, hi, fixed, load } = this.sections;
    this.capacity = capacity;
    this.#trailEnd = 0;
    this.live.fill(0);
    this.cross.fill(0);
    this.floor.fill(0);
    this.rest.set(load);
    this.print1 = 0;
    this.print2 = 0;
    for (let i = 0; i < n; i++) {
      this.low[i] = Math.max(0, fixed[i] as number);
      this.#imprint(i, this.low[i] as number);
      for (let s = lo[i] as number; s < (hi[i] as number); s++) {
        const at = (this.base[s] as number) + (this.live[s] as number);
        this.list[at] = i;
        this.#where[(this.#home[i] as number) + s] = at;
        this.live[s] = (this.live[s] as number) + 1;
        if (s > (lo[i] as number)) this.cross[s] = (this.cross[s] as number) + 1;
      }
    }
    for (let s = 0; s < count; s++) this.#dirty[s] = s;
    this.#dirtyCount = count;
    const possible = this.#refresh(0, 0, 0);
    this.#trailEnd = 0;
    return possible;
  }

  get mark(): number {
    return this.#trailEnd;
  }

  /** Places an item at its lowest offset. False if that is infeasible; the caller must then `undo`. */
  place(c: number): boolean {
    const { lo, hi, size, align } = this.sections;
    const { rest, cross, live, list, base, low } = this;
    const bytes = size[c] as number;
    const from = low[c] as number;
    const top = from + bytes;
    const first = lo[c] as number;
    const end = hi[c] as number;
    for (let s = first; s < end; s++) {
      if (from + (rest[s] as number) > this.capacity) return this.#failAt(s);
    }
    this.offset[c] = from;
    this.#dirtyCount = 0;
    this.#raise(c, Number.POSITIVE_INFINITY);
    for (let s = first; s < end; s++) {
      rest[s] = (rest[s] as number) - bytes;
      if (s > first) cross[s] = (cross[s] as number) - 1;
      this.#unlist(s, c);
    }
    // conflicting items: those live in the first section, and those that start later
    for (let p = base[first] as number, e = p + (live[first] as number); p < e; p++) {
      const j = list[p] as number;
      if ((low[j] as number) < top && !this.#push(j, top, align)) return false;
    }
    for (let j = this.startsAt[first + 1] as number, e = this.startsAt[end] as number; j < e; j++) {
      if ((low[j] as number) < top && !this.#push(j, top, align)) return false;
    }
    return this.#refresh(first, end, top);
  }

  /**
   * Decides that an item is not at its `low`. In a placement in which no item can move down, it then lies on top of a
   * conflicting item that is not placed yet. False if there is no such item, or no room.
   */
  postpone(c: number): boolean {
    const { lo, hi, size, align, fixed } = this.sections;
    const { low, list, base, live } = this;
    const first = lo[c] as number;
    let next = Number.POSITIVE_INFINITY;
    for (let p = base[first] as number, e = p + (live[first] as number); p < e; p++) {
      const j = list[p] as number;
      const top = (low[j] as number) + (size[j] as number);
      if (top < next && j !== c) next = top;
    }
    for (let j = this.startsAt[first + 1] as number, e = this.startsAt[hi[c] as number] as number; j < e; j++) {
      const top = (low[j] as number) + (size[j] as number);
      if (top < next) next = top;
    }
    if (align) next = Math.ceil(next / (align[c] as number)) * (align[c] as number);
    if ((fixed[c] as number) >= 0 || next + (size[c] as number) > this.capacity) return false;
    this.#dirtyCount = 0;
    this.#raise(c, next);
    return this.#refresh(0, 0, 0);
  }

  undo(mark: number): void {
    const { lo, hi, size } = this.sections;
    const { low, floor, rest, cross, live } = this;
    while (this.#trailEnd > mark) {
      this.#trailEnd -= 1;
      const what = this.#trailWhat[this.#trailEnd] as number;
      const old = this.#trailOld[this.#trailEnd] as number;
      if (what < 0) {
        floor[~what] = old;
        this.#witness[~what] = this.#trailWitness[this.#trailEnd] as number;
        continue;
      }
      const placed = low[what] === Number.POSITIVE_INFINITY;
      const first = lo[what] as number;
      const bytes = size[what] as number;
      for (let s = first, e = placed ? (hi[what] as number) : first; s < e; s++) {
        rest[s] = (rest[s] as number) + bytes;
        if (s > first) cross[s] = (cross[s] as number) + 1;
        live[s] = (live[s] as number) + 1; // it is still in the list, right behind the others
      }
      if (!placed) this.#imprint(what, low[what] as number);
      low[what] = old;
      this.#imprint(what, old);
    }
  }

  /** The lowest top that one of items [from, to) can still have. */
  lowestTop(from: number, to: number): number {
    const { low } = this;
    const { size } = this.sections;
    let least = Number.POSITIVE_INFINITY;
    for (let i = from; i < to; i++) {
      const top = (low[i] as number) + (size[i] as number);
      if (top < least) least = top;
    }
    return least;
  }

  /** The part of the fingerprint that items [from, to) make up. */
  printOf(from: number, to: number): readonly [number, number] {
    const [before1, before2] = [this.print1, this.print2];
    for (let i = from; i < to; i++) {
      if (this.low[i] !== Number.POSITIVE_INFINITY) this.#imprint(i, this.low[i] as number);
    }
    const part = [before1 ^ this.print1, before2 ^ this.print2] as const;
    this.print1 = before1;
    this.print2 = before2;
    return part;
  }

  /** Raises an item onto a top; false if it is fixed below that. */
  #push(j: number, top: number, align: Float64Array | null): boolean {
    if ((this.sections.fixed[j] as number) >= 0) return this.#failAt(this.sections.lo[j] as number);
    this.#raise(j, align ? Math.ceil(top / (align[j] as number)) * (align[j] as number) : top);
    return true;
  }

  #raise(j: number, value: number): void {
    const { lo, hi } = this.sections;
    const { low } = this;
    const witness = this.#witness;
    const old = low[j] as number;
    this.#record(j, old, 0);
    this.#imprint(j, old);
    low[j] = value;
    if (value !== Number.POSITIVE_INFINITY) this.#imprint(j, value);
    for (let s = lo[j] as number, e = hi[j] as number; s < e; s++) {
      if (witness[s] === j) this.#dirty[this.#dirtyCount++] = s;
    }
  }

  /**
   * Finds new witnesses for sections whose witness was raised. Floors never fall, and all items in sections [first,
   * end) are at or above `top`, the top of the item just placed; so the first item at that height will do.
   */
  #refresh(first: number, end: number, top: number): boolean {
    const { low, list, base, live, floor } = this;
    for (let k = 0; k < this.#dirtyCount; k++) {
      const s = this.#dirty[k] as number;
      const old = floor[s] as number;
      const enough = s >= first && s < end && top > old ? top : old;
      let least = Number.POSITIVE_INFINITY;
      let witness = -1;
      for (let p = base[s] as number, e = p + (live[s] as number); p < e && least > enough; p++) {
        const j = list[p] as number;
        const value = low[j] as number;
        if (value >= least) continue;
        least = value;
        witness = j;
      }
      this.#record(~s, old, this.#witness[s] as number);
      this.#witness[s] = witness;
      floor[s] = least;
      if (witness >= 0 && least + (this.rest[s] as number) > this.capacity) return this.#failAt(s);
    }
    return true;
  }

  #failAt(s: number): false {
    this.failures[s] = (this.failures[s] as number) + 1;
    return false;
  }

  #unlist(s: number, c: number): void {
    const { list, base, live } = this;
    const last = (base[s] as number) + (live[s] as number) - 1;
    const at = this.#where[(this.#home[c] as number) + s] as number;
    const other = list[last] as number;
    list[at] = other;
    list[last] = c;
    this.#where[(this.#home[other] as number) + s] = at;
    this.#where[(this.#home[c] as number) + s] = last;
    live[s] = (live[s] as number) - 1;
  }

  #record(what: number, old: number, witness: number): void {
    if (this.#trailEnd === this.#trailWhat.length) this.#growTrail();
    this.#trailWhat[this.#trailEnd] = what;
    this.#trailOld[this.#trailEnd] = old;
    this.#trailWitness[this.#trailEnd] = witness;
    this.#trailEnd += 1;
  }

  #growTrail(): void {
    const length = 2 * this.#trailEnd;
    const [what, old, witness] = [this.#trailWhat, this.#trailOld, this.#trailWitness];
    this.#trailWhat = new Int32Array(length);
    this.#trailOld = new Float64Array(length);
    this.#trailWitness = new Int32Array(length);
    this.#trailWhat.set(what);
    this.#trailOld.set(old);
    this.#trailWitness.set(witness);
  }

  /** Adds "item i at `value`" to the fingerprint, or takes it away. */
  #imprint(i: number, value: number): void {
    let x =
      Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(value | 0, 0x85ebca6b) ^ Math.imul((value / 4294967296) | 0, 0xc2b2ae35);
    x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d);
    x = Math.imul(x ^ (x >>> 12), 0x297a2d39);
    this.print1 ^= x ^ (x >>> 15);
    let y =
      Math.imul(value | 0, 0x27d4eb2f) ^ Math.imul(i + 1, 0x165667b1) ^ Math.imul((value / 4294967296) | 0, 0x9e3779b1);
    y = Math.imul(y ^ (y >>> 13), 0x5bd1e995);
    y = Math.imul(y ^ (y >>> 16), 0x7feb352d);
    this.print2 ^= y ^ (y >>> 14);
  }
}
