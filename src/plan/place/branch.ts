/**
 * @file Branch and bound: is there a placement of a given height? After MiniMalloc (Moffitt, ASPLOS 2023) and the
 * schedule-or-postpone branching of constraint programming (Le Pape et al., 1994), read sideways: sections are
 * machines, sizes are durations, offsets are starting times.
 *
 *     choose      the section that failed most often and has the least room left (fail first, Boussemart et al., 2004),
 *                 among those whose floor is below the lowest top that any item can still have: there nothing fits under
 *     branch      an item of it goes to its lowest offset | it does not, so it lies on an item placed later
 *     bound       floor + rest > capacity in some section (state.ts)
 *     decompose   where no unplaced item crosses, the two sides are solved one after the other, the smaller one first; if
 *                 one has no solution, the other's choices do not matter
 *     memoize     states without a solution are remembered by fingerprint, also across restarts
 *
 * The success of a run depends on the order in which items are tried (`priority`); runs end after a number of nodes and
 * restart with another order (search.ts). Choices are on an explicit stack, so depth costs no JavaScript frames:
 *
 *     stack:  choice a │ choice b │ parts [0,4) [4,9) │ choice c │ …      solved: pop down to the parts, the next one
 *                                                                        failed: pop up to a choice that has a second branch
 */
import type { SearchParams } from "./params.ts";
import type { Sections } from "./sections.ts";
import { SearchState } from "./state.ts";

export type Outcome = "solution" | "infeasible" | "limit";

/** Fields of one entry of the stack. */
const FIELDS = 9;
const [KIND, LEFT, RIGHT, MARK, ITEM, BASE1, BASE2, PRINT1, PRINT2] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
const [PLACED, POSTPONED, PARTS] = [0, 1, 2] as const;

export class Branch {
  readonly state: SearchState;
  /** Per item: larger is tried first. */
  readonly priority: Float64Array;
  /** Nodes of all runs. */
  nodes = 0;
  readonly #seen1: Int32Array;
  readonly #seen2: Int32Array;
  #salt = 0;
  #stack = new Int32Array(FIELDS * 256);
  #depth = 0;
  /** Parts that are still to be solved: pairs of sections, the next one last. */
  readonly #parts: number[] = [];
  /** The current part: sections [left, right), and the fingerprint of everything else. */
  #left = 0;
  #right = 0;
  #base1 = 0;
  #base2 = 0;

  readonly #params: SearchParams;

  constructor(sections: Sections, params: SearchParams) {
    this.#params = params;
    this.state = new SearchState(sections);
    this.priority = new Float64Array(sections.n);
    this.#seen1 = new Int32Array(params.memoize ? params.memory : 0);
    this.#seen2 = new Int32Array(params.memoize ? params.memory : 0);
  }

  /** Looks for a placement of at most `capacity` units, in `state.offset` if there is one; `isOver` ends it from outside. */
  run(capacity: number, limit: number, isOver: () => boolean = () => false): Outcome {
    const { state } = this;
    if (!state.reset(capacity)) return "infeasible";
    this.#salt = Math.imul(capacity | 0, 0x9e3779b1) ^ Math.imul((capacity / 4294967296) | 0, 0x85ebca6b);
    this.#depth = 0;
    this.#parts.length = 0;
    const { count, lo, hi } = state.sections;
    this.#enter(0, count);
    this.#decompose(0, count);
    const last = this.nodes + limit;
    for (;;) {
      this.nodes += 1;
      if (this.nodes > last || ((this.nodes & 255) === 0 && isOver())) return "limit";
      const item = this.#isInfeasible() ? -1 : this.#choose();
      if (item === -2) {
        if (!this.#solved()) return "solution";
        continue;
      }
      if (item >= 0) {
        this.#pushChoice(item);
        if (state.place(item)) {
          this.#decompose(lo[item] as number, hi[item] as number);
          continue;
        }
      }
      if (!this.#backtrack()) return "infeasible";
    }
  }

  /** The item to branch on; -2 when all are placed. */
  #choose(): number {
    const { low, floor, rest, failures, capacity, startsAt, list, base, live } = this.state;
    const lowestTop = this.state.lowestTop(startsAt[this.#left] as number, startsAt[this.#right] as number);
    if (lowestTop === Number.POSITIVE_INFINITY) return -2;
    const little = capacity / 1024;
    const factor = this.#params.learn ? 1 : 0;
    let section = -1;
    let least = Number.POSITIVE_INFINITY;
    for (let s = this.#left; s < this.#right; s++) {
      const bottom = floor[s] as number;
      if (bottom >= lowestTop) continue;
      const key = (capacity - bottom - (rest[s] as number) + little) / (1 + factor * (failures[s] as number));
      if (key > least || (key === least && bottom >= (floor[section] as number))) continue;
      least = key;
      section = s;
    }
    let item = -1;
    let best = Number.NEGATIVE_INFINITY;
    const bottom = floor[section] as number;
    for (let p = base[section] as number, e = p + (live[section] as number); p < e; p++) {
      const i = list[p] as number;
      if (low[i] !== bottom) continue;
      const value = this.priority[i] as number;
      if (value < best || (value === best && i > item)) continue;
      best = value;
      item = i;
    }
    return item;
  }

  /** Goes back to the last choice that has a second branch and takes it; false when there is none. */
  #backtrack(): boolean {
    const { state } = this;
    while (this.#depth > 0) {
      const top = (this.#depth - 1) * FIELDS;
      const stack = this.#stack;
      state.undo(stack[top + MARK] as number);
      const kind = stack[top + KIND];
      if (kind === PARTS) {
        this.#parts.length = stack[top + ITEM] as number;
      } else {
        this.#left = stack[top + LEFT] as number;
        this.#right = stack[top + RIGHT] as number;
        this.#base1 = stack[top + BASE1] as number;
        this.#base2 = stack[top + BASE2] as number;
        if (kind === PLACED) {
          stack[top + KIND] = POSTPONED;
          if (state.postpone(stack[top + ITEM] as number)) return true;
          state.undo(stack[top + MARK] as number);
        }
        this.#remember(stack[top + PRINT1] as number, stack[top + PRINT2] as number);
      }
      this.#depth -= 1;
    }
    return false;
  }

  /** The current part is solved: its choices are final. Goes on with the next part; false when there is none. */
  #solved(): boolean {
    while (this.#depth > 0) {
      const top = (this.#depth - 1) * FIELDS;
      if (this.#stack[top + KIND] === PARTS && this.#parts.length > (this.#stack[top + ITEM] as number)) {
        const right = this.#parts.pop() as number;
        this.#enter(this.#parts.pop() as number, right);
        return true;
      }
      this.#depth -= 1;
    }
    return false;
  }

  /** Splits the current part where no unplaced item crosses any more, which can only happen within [from, to). */
  #decompose(from: number, to: number): void {
    if (!this.#params.decompose) return;
    const { cross, floor, startsAt, low } = this.state;
    let cut = from + 1;
    while (cut < to && cross[cut] !== 0) cut += 1;
    if (cut >= to) return;
    const parts: (readonly [left: number, right: number, items: number])[] = [];
    let start = this.#left;
    for (let s = this.#left + 1; s <= this.#right; s++) {
      if (s < this.#right && cross[s] !== 0) continue;
      if (s - start > 1 || floor[start] !== Number.POSITIVE_INFINITY) {
        let items = 0;
        for (let i = startsAt[start] as number, e = startsAt[s] as number; i < e; i++) {
          if (low[i] !== Number.POSITIVE_INFINITY) items += 1;
        }
        if (items > 0) parts.push([start, s, items]);
      }
      start = s;
    }
    const [only] = parts;
    if (only && parts.length === 1 && only[0] === this.#left && only[1] === this.#right) return;
    if (!only || parts.length === 1) {
      if (only) this.#enter(only[0], only[1]);
      return;
    }
    const entry = this.#grow();
    this.#stack[entry + KIND] = PARTS;
    this.#stack[entry + MARK] = this.state.mark;
    this.#stack[entry + ITEM] = this.#parts.length;
    parts.sort((a, b) => b[2] - a[2] || b[0] - a[0]);
    for (const [left, right] of parts) this.#parts.push(left, right);
    const right = this.#parts.pop() as number;
    this.#enter(this.#parts.pop() as number, right);
  }

  #enter(left: number, right: number): void {
    const { startsAt } = this.state;
    const [part1, part2] = this.state.printOf(startsAt[left] as number, startsAt[right] as number);
    this.#left = left;
    this.#right = right;
    this.#base1 = this.state.print1 ^ part1;
    this.#base2 = this.state.print2 ^ part2;
  }

  #pushChoice(item: number): void {
    const entry = this.#grow();
    const stack = this.#stack;
    stack[entry + KIND] = PLACED;
    stack[entry + LEFT] = this.#left;
    stack[entry + RIGHT] = this.#right;
    stack[entry + MARK] = this.state.mark;
    stack[entry + ITEM] = item;
    stack[entry + BASE1] = this.#base1;
    stack[entry + BASE2] = this.#base2;
    stack[entry + PRINT1] = this.state.print1 ^ this.#base1 ^ this.#salt;
    stack[entry + PRINT2] = this.state.print2 ^ this.#base2;
  }

  /** Room for one more entry; its position. */
  #grow(): number {
    const entry = this.#depth * FIELDS;
    if (entry + FIELDS > this.#stack.length) {
      const larger = new Int32Array(2 * this.#stack.length);
      larger.set(this.#stack);
      this.#stack = larger;
    }
    this.#depth += 1;
    return entry;
  }

  /** Whether the current state is known to have no solution. */
  #isInfeasible(): boolean {
    if (!this.#params.memoize) return false;
    const one = this.state.print1 ^ this.#base1 ^ this.#salt;
    const two = this.state.print2 ^ this.#base2;
    const slot = (one ^ (two >>> 7)) & (this.#seen1.length - 1);
    return one !== 0 && this.#seen1[slot] === one && this.#seen2[slot] === two;
  }

  #remember(one: number, two: number): void {
    if (!this.#params.memoize) return;
    const slot = (one ^ (two >>> 7)) & (this.#seen1.length - 1);
    this.#seen1[slot] = one;
    this.#seen2[slot] = two;
  }
}
