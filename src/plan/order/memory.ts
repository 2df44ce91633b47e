/**
 * @file The memory model of all order searches: bytes live while steps run in sequence. It predicts the assignment of
 * alias.ts, step by step and without look-ahead:
 *
 *     while step i runs   live bytes before it, its workspace, and its results, except results written
 *                           - into a slot: the slot exists all the time
 *                           - over an operand that it reads for the last time
 *     after it            minus operands read for the last time, and results without readers
 *
 * A storage is live from its writer to its last reader, found by counting remaining readers. Its location is decided
 * when it is written: in a slot if it replaces a parameter that is no longer needed, or if it overwrites a value in a
 * slot and the slot is not needed before it dies (`Model.passing`).
 *
 * alias.ts can do better in one case: a chain of values, each written over the previous one, that ends in a slot may
 * use that slot from the start, if the slot's content died before the chain began. So the bound of the assignment is at
 * most the peak counted here, and equal without such chains; the test measures both.
 */
import { at } from "../../base/invariant.ts";
import { fromOf, lengthOf, lengthsOf } from "./lists.ts";
import type { Model } from "./model.ts";

const NOWHERE = -1;

export class Memory {
  /** Bytes live between steps. */
  live: number;
  /** Steps that have run. */
  ran = 0;
  readonly model: Model;
  /** Per storage: readers that have not run, and the slot that it is in. */
  readonly pending: Int32Array;
  readonly home: Int32Array;
  readonly done: Uint8Array;
  /** Bytes of parameters without readers: present during the first step, and not counted in `live`. */
  readonly #idle: number;
  readonly #start: number;
  readonly #readers: Int32Array;
  readonly #homes: Int32Array;
  /** Storage → the number of the `run` in which something was written over it. */
  readonly #taken: Int32Array;
  #runs = 0;

  constructor(model: Model) {
    this.model = model;
    const { storages, bytes, writer, isSlot, kept, readers } = model;
    this.#readers = lengthsOf(readers);
    this.pending = this.#readers.slice();
    this.#homes = new Int32Array(storages).fill(NOWHERE);
    for (let id = 0; id < storages; id++) if (isSlot[id]) this.#homes[id] = id;
    this.home = this.#homes.slice();
    this.#taken = new Int32Array(storages);
    this.done = new Uint8Array(model.steps);
    let [live, idle] = [0, 0];
    for (let id = 0; id < storages && at(writer, id) < 0; id++) {
      if (isSlot[id] || kept[id] || at(this.pending, id) > 0) live += at(bytes, id);
      else idle += at(bytes, id);
    }
    [this.live, this.#start, this.#idle] = [live, live, idle];
  }

  /** Back to the state before the first step. */
  reset(): void {
    this.pending.set(this.#readers);
    this.home.set(this.#homes);
    this.done.fill(0);
    this.live = this.#start;
    this.ran = 0;
  }

  /** Runs a step whose inputs are available; returns the bytes live during it. All searches spend their time here. */
  run(step: number): number {
    const { reads, writes, over, claims, bytes, kept, scratch } = this.model;
    const { pending, home } = this;
    this.#runs += 1;
    let during = this.live + (scratch[step] as number) + (this.ran === 0 ? this.#idle : 0);
    let after = this.live;
    const [lastRead, lastWrite] = [fromOf(reads, step + 1), fromOf(writes, step + 1)];
    for (let k = fromOf(reads, step); k < lastRead; k++) {
      const read = reads.items[k] as number;
      const left = (pending[read] as number) - 1;
      pending[read] = left;
      if (left === 0 && !kept[read] && home[read] === NOWHERE) after -= bytes[read] as number;
    }
    const mayOverwrite = fromOf(over, step) < fromOf(over, step + 1);
    for (let k = fromOf(writes, step); k < lastWrite; k++) {
      const written = writes.items[k] as number;
      const claimed = fromOf(claims, written) < fromOf(claims, written + 1) ? this.#claimed(step, written) : NOWHERE;
      const taken = claimed === NOWHERE && mayOverwrite ? this.#overwritten(step, written) : NOWHERE;
      const inSlot = taken === NOWHERE ? claimed : (home[taken] as number);
      home[written] = inSlot;
      if (taken !== NOWHERE) this.#taken[taken] = this.#runs;
      if (inSlot !== NOWHERE) continue;
      if (taken === NOWHERE) during += bytes[written] as number;
      if ((pending[written] as number) > 0 || kept[written]) after += bytes[written] as number;
    }
    this.done[step] = 1;
    this.live = after;
    this.ran += 1;
    return during;
  }

  /** Undoes the last `run`, before which `live` bytes were live. */
  undo(step: number, live: number): void {
    const { reads, writes } = this.model;
    const { pending, home } = this;
    const [lastRead, lastWrite] = [fromOf(reads, step + 1), fromOf(writes, step + 1)];
    for (let k = fromOf(reads, step); k < lastRead; k++) {
      const read = reads.items[k] as number;
      pending[read] = (pending[read] as number) + 1;
    }
    for (let k = fromOf(writes, step); k < lastWrite; k++) home[writes.items[k] as number] = NOWHERE;
    this.done[step] = 0;
    this.live = live;
    this.ran -= 1;
  }

  /** Bytes that running the step now would add to what is live afterwards. */
  balance(step: number): number {
    const before = this.live;
    this.run(step);
    const balance = this.live - before;
    this.undo(step, before);
    return balance;
  }

  /** Whether the step that just ran wrote a value outside a slot that it would use in another order. */
  missedSlot(step: number): boolean {
    const { writes, movable } = this.model;
    for (let k = fromOf(writes, step); k < fromOf(writes, step + 1); k++) {
      const written = writes.items[k] as number;
      if (movable[written] && this.home[written] === NOWHERE) return true;
    }
    return false;
  }

  /** The slot that `written` is to end in, if the slot's content is dead or dies in this step, which may overwrite it. */
  #claimed(step: number, written: number): number {
    const { claims, kept, readers } = this.model;
    for (let k = fromOf(claims, written); k < fromOf(claims, written + 1); k++) {
      const slot = claims.items[k] as number;
      if (kept[slot] || (this.pending[slot] as number) > 0) continue;
      if (lengthOf(readers, slot) === 0 ? this.ran > 0 : this.#isFree(step, written, slot)) return slot;
    }
    return NOWHERE;
  }

  /** Whether a step, if it reads a storage that is dead now, may write over it. */
  #isFree(step: number, written: number, read: number): boolean {
    const { reads, over } = this.model;
    for (let k = fromOf(reads, step); k < fromOf(reads, step + 1); k++) {
      if (reads.items[k] !== read) continue;
      for (let o = fromOf(over, step); o < fromOf(over, step + 1); o += 2) {
        if (over.items[o] === written && over.items[o + 1] === read) return true;
      }
      return false;
    }
    return true;
  }

  /** The operand that dies in the step and is overwritten: preferably one in a slot, because that is free. */
  #overwritten(step: number, written: number): number {
    const { over, kept } = this.model;
    let operand = NOWHERE;
    for (let k = fromOf(over, step); k < fromOf(over, step + 1); k += 2) {
      const read = over.items[k + 1] as number;
      if (over.items[k] !== written || kept[read] || (this.pending[read] as number) > 0) continue;
      if (this.#taken[read] === this.#runs) continue;
      const slot = this.home[read] as number;
      if (slot === NOWHERE && operand === NOWHERE) operand = read;
      if (slot !== NOWHERE && this.#mayPass(written, slot)) return read;
    }
    return operand;
  }

  /** Whether `written` dies before the slot is needed for its replacement or for a copy of it. */
  #mayPass(written: number, slot: number): boolean {
    const { replacement, passing, storages, kept, writer } = this.model;
    const result = replacement[slot] as number;
    if (result < 0 || passing.has(written * storages + slot)) return true;
    // The replacement is already stored elsewhere and will be copied in at the end.
    const elsewhere = (writer[result] as number) < 0 || this.done[writer[result] as number] === 1;
    return elsewhere && !kept[written];
  }
}

export interface Peak {
  readonly bytes: number;
  /** The first position that reaches the peak, and how many do. */
  readonly position: number;
  readonly count: number;
  /** Bytes live between steps, summed over all steps. */
  readonly area: number;
}

/** The peak of an order. */
export function peakOf(memory: Memory, order: ArrayLike<number>): Peak {
  memory.reset();
  let [bytes, position, count, area] = [0, 0, 0, 0];
  for (let k = 0; k < order.length; k++) {
    const during = memory.run(order[k] as number);
    area += memory.live;
    if (during > bytes) [bytes, position, count] = [during, k, 1];
    else if (during === bytes) count += 1;
  }
  return { bytes, position, count, area };
}
