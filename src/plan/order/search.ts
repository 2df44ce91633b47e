/**
 * @file Decides whether some order of these steps keeps at most `limit` bytes live. Depth-first search over sets of
 * executed steps, with three rules that prune it and keep the answer exact:
 *
 *   failed    A set is looked into once; what can follow depends on the set, not on the order in which it was reached
 *             (and on which storages got into a slot, which is part of the set's key).
 *   closure   A step that fits under the limit and leaves no more live than before is run at once, without alternatives:
 *             in any order that has it later it can be moved here, and everything in between has no more live.
 *   valleys   A branch followed into a valley no higher than where it began is not taken back. If the search fails from
 *             the valley, it fails from where the branch began.
 *
 *         live   ╱╲                  S: closed set, b its branch, T the closed set after it
 *            S ─╯  ╲   ╱             T not above S: whatever can follow S can follow T
 *                   T ╯
 *
 * Why valleys hold: bytes live after a set of steps are submodular, f(U ∪ T) + f(U ∩ T) ≤ f(U) + f(T). If f(T) ≤ f(X)
 * for all sets X from S to T, then f(U ∪ T) ≤ f(U): an order that goes from S through sets U can go through U ∪ T. The
 * condition holds if everything from S to T depends on the branch: each branch depends on the one before it, the steps
 * run by closure depend on their branch, and T is the lowest closed set since S. It is the rule of Liu's trees
 * (trees.ts) for any graph. Both rules exclude steps that miss a slot they could use, because then the order matters.
 *
 * Work is counted in steps tried. If the credit runs out, the answer is "unknown".
 */
import { at } from "../../base/invariant.ts";
import { fromOf, listOf } from "./lists.ts";
import type { Memory } from "./memory.ts";

export type Answer = "found" | "none" | "unknown";

/** Sums of the first 52 powers of two are exact; of more steps, keys are sums of random numbers. */
const EXACT_BITS = 52;
const FOUND = -1;

export class Search {
  readonly #memory: Memory;
  /** Per step: predecessors among the steps that have not run; -1 for steps outside the search. */
  readonly #missing: Int32Array;
  /** Number of branches taken when the step became ready. */
  readonly #readyAt: Int32Array;
  /** Steps that are ready, and where each is in this list. */
  readonly #ready: number[] = [];
  readonly #place: Int32Array;
  /** Position in the given order: breaks ties. */
  readonly #rank: Int32Array;
  /** Key of a step, and of a storage in a slot. */
  readonly #stepKey: Float64Array;
  readonly #homeKey: Float64Array;
  readonly #failed = new Set<number>();
  #steps: ArrayLike<number> = [];
  #key = 0;
  #limit = 0;
  #credit = 0;
  /** Steps executed so far, and the bytes live before each. */
  readonly #trail: number[] = [];
  readonly #liveBefore: number[] = [];
  /** Per branch: its step, the bytes live before it, and whether everything after it depends on it. */
  readonly #branch: number[] = [];
  readonly #ground: number[] = [];
  readonly #dependent: boolean[] = [];

  constructor(memory: Memory) {
    this.#memory = memory;
    const { steps, storages } = memory.model;
    this.#missing = new Int32Array(steps).fill(-1);
    this.#readyAt = new Int32Array(steps);
    this.#place = new Int32Array(steps);
    this.#rank = new Int32Array(steps);
    this.#stepKey = new Float64Array(steps);
    this.#homeKey = new Float64Array(storages);
  }

  /** Steps that may still be tried. */
  get credit(): number {
    return this.#credit;
  }

  /** The steps to be ordered, in some valid order. `memory` is the state before them, and is restored. */
  begin(steps: ArrayLike<number>, credit: number): void {
    const { predecessors, writes, movable } = this.#memory.model;
    for (let k = 0; k < this.#steps.length; k++) this.#missing[this.#steps[k] as number] = -1;
    this.#steps = steps;
    this.#credit = credit;
    this.#failed.clear();
    this.#key = 0;
    this.#ready.length = 0;
    const moving: number[] = [];
    for (let k = 0; k < steps.length; k++) this.#missing[steps[k] as number] = 0;
    for (let k = 0; k < steps.length; k++) {
      const step = steps[k] as number;
      this.#rank[step] = k;
      for (const before of listOf(predecessors, step)) {
        if (at(this.#missing, before) >= 0) this.#missing[step] = at(this.#missing, step) + 1;
      }
      if (this.#missing[step] === 0) this.#makeReady(step, 0);
      for (const id of listOf(writes, step)) if (movable[id]) moving.push(id);
    }
    const keyOf = keys(steps.length + moving.length);
    for (let k = 0; k < steps.length; k++) this.#stepKey[steps[k] as number] = keyOf(k);
    moving.forEach((id, k) => {
      this.#homeKey[id] = keyOf(steps.length + k);
    });
  }

  /** Looks for an order; limits must not rise between calls, since failed sets are remembered. */
  find(limit: number): { readonly answer: Answer; readonly order: readonly number[] } {
    this.#limit = limit;
    const succeeded = this.#descend(0) === FOUND;
    const order = succeeded ? [...this.#trail] : [];
    this.#retreat(0);
    if (succeeded) return { answer: "found", order };
    return { answer: this.#credit > 0 ? "none" : "unknown", order };
  }

  /** FOUND, or the index of the first branch that is known to fail; `depth` if only this one is. */
  #descend(depth: number): number {
    this.#close(depth);
    if (this.#trail.length === this.#steps.length) return FOUND;
    if (this.#credit <= 0) return 0;
    const back = this.#valleyFrom(depth);
    const key = this.#key;
    if (this.#failed.has(key)) return back;
    this.#ground[depth] = this.#memory.live;
    const mark = this.#trail.length;
    for (const step of this.#choices()) {
      this.#branch[depth] = step;
      this.#run(step, depth + 1);
      this.#dependent[depth] = !this.#memory.missedSlot(step);
      const outcome = this.#descend(depth + 1);
      if (outcome === FOUND) return FOUND;
      this.#retreat(mark);
      if (this.#credit <= 0) return 0;
      if (outcome <= depth) {
        this.#failed.add(key);
        return Math.min(outcome, back);
      }
    }
    this.#failed.add(key);
    return back;
  }

  /** Runs all steps that need no alternatives, in any order: the result is the same. */
  #close(depth: number): void {
    const memory = this.#memory;
    for (let k = 0, tried = 0; tried < this.#ready.length; tried++) {
      if (k >= this.#ready.length) k = 0;
      const step = this.#ready[k] as number;
      const live = memory.live;
      const during = memory.run(step);
      const good = during <= this.#limit && memory.live <= live && !memory.missedSlot(step);
      memory.undo(step, live);
      this.#credit -= 1;
      if (!good) {
        k += 1;
        continue;
      }
      if (depth > 0 && (this.#readyAt[step] as number) < depth) this.#dependent[depth - 1] = false;
      this.#run(step, depth);
      tried = -1;
    }
  }

  /** The earliest branch whose valley the search has reached; `depth` if there is none. */
  #valleyFrom(depth: number): number {
    let first = depth;
    for (let d = depth - 1; d >= 0; d--) {
      if (!this.#dependent[d] || this.#memory.live > (this.#ground[d] as number)) break;
      if (d < depth - 1 && (this.#readyAt[this.#branch[d + 1] as number] as number) <= d) break;
      first = d;
    }
    return first;
  }

  /** Steps that may run now, the one that leaves least live first. */
  #choices(): readonly number[] {
    const memory = this.#memory;
    const choices: { readonly step: number; readonly live: number }[] = [];
    for (const step of this.#ready) {
      const live = memory.live;
      const during = memory.run(step);
      if (during <= this.#limit) choices.push({ step, live: memory.live });
      memory.undo(step, live);
    }
    this.#credit -= this.#ready.length;
    choices.sort((a, b) => a.live - b.live || at(this.#rank, a.step) - at(this.#rank, b.step));
    return choices.map(({ step }) => step);
  }

  #makeReady(step: number, depth: number): void {
    this.#readyAt[step] = depth;
    this.#place[step] = this.#ready.length;
    this.#ready.push(step);
  }

  #run(step: number, depth: number): void {
    const { successors, writes, movable } = this.#memory.model;
    this.#trail.push(step);
    this.#liveBefore.push(this.#memory.live);
    this.#memory.run(step);
    this.#key += this.#stepKey[step] as number;
    for (let k = fromOf(writes, step); k < fromOf(writes, step + 1); k++) {
      const id = writes.items[k] as number;
      if (movable[id] && (this.#memory.home[id] as number) >= 0) this.#key += this.#homeKey[id] as number;
    }
    // The last entry of the list takes the step's position; `retreat` undoes this.
    const [place, last] = [this.#place[step] as number, this.#ready.pop() as number];
    if (last !== step) [this.#ready[place], this.#place[last]] = [last, place];
    for (let k = fromOf(successors, step); k < fromOf(successors, step + 1); k++) {
      const next = successors.items[k] as number;
      const left = (this.#missing[next] as number) - 1;
      if (left < -1) continue;
      this.#missing[next] = left;
      if (left === 0) this.#makeReady(next, depth);
    }
  }

  /** Undoes steps until `length` are left. */
  #retreat(length: number): void {
    const { successors, writes, movable } = this.#memory.model;
    while (this.#trail.length > length) {
      const step = this.#trail.pop() as number;
      this.#key -= this.#stepKey[step] as number;
      for (let k = fromOf(writes, step); k < fromOf(writes, step + 1); k++) {
        const id = writes.items[k] as number;
        if (movable[id] && (this.#memory.home[id] as number) >= 0) this.#key -= this.#homeKey[id] as number;
      }
      for (let k = fromOf(successors, step); k < fromOf(successors, step + 1); k++) {
        const next = successors.items[k] as number;
        const missing = this.#missing[next] as number;
        if (missing < 0) continue;
        if (missing === 0) this.#ready.pop();
        this.#missing[next] = missing + 1;
      }
      const place = this.#place[step] as number;
      const displaced = this.#ready[place];
      if (displaced !== undefined) {
        this.#place[displaced] = this.#ready.length;
        this.#ready.push(displaced);
        this.#ready[place] = step;
      } else {
        this.#ready.push(step);
      }
      this.#memory.undo(step, this.#liveBefore.pop() as number);
    }
  }
}

/** Numbers whose sums identify sets: exactly for up to 52 steps, otherwise with high probability. */
function keys(count: number): (k: number) => number {
  if (count <= EXACT_BITS) return (k) => 2 ** k;
  const scale = 2 ** (EXACT_BITS - Math.ceil(Math.log2(count)));
  return (k) => Math.floor(fraction(k) * scale);
}

/** Spread over [0, 1): two rounds of a mixing hash, 26 bits each. */
function fraction(k: number): number {
  const mix = (x: number): number => {
    let h = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
    h = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
    return (h ^ (h >>> 16)) >>> 6;
  };
  return (mix(2 * k + 1) * 2 ** 26 + mix(2 * k + 0x9e3779b9)) / 2 ** 52;
}
