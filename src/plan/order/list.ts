/**
 * @file List scheduling: a given order, except that a step that leaves no more memory live than before runs as soon as
 * it is ready. An optimizer's updates then run as soon as their gradient is complete, so that the gradients of all
 * layers are never live together:
 *
 *     program order   d3  d2  d1  u3 u2 u1        gradients d3, d2, d1 live together
 *     eager           d3 u3  d2 u2  d1 u1         each dies in its update
 *
 * A result that replaces a donated parameter costs nothing once the parameter has no other reader: it takes over the
 * slot. Therefore the step that writes it waits for the other readers of the parameter, unless one of them depends on
 * that step.
 *
 * The last reader is found without search: each storage keeps the number of remaining readers and the sum of their
 * indices; when one is left, the sum is its index. Of several eager steps the one that frees most goes first. A step's
 * balance only decreases, so it is queued again when it does, and entries of steps that ran are skipped. O((n + edges)
 * log n).
 */
import { at } from "../../base/invariant.ts";
import { StepHeap } from "../heap.ts";
import { fromOf, type Lists, lengthOf, lengthsOf, listOf, makeLists } from "./lists.ts";
import { Memory } from "./memory.ts";
import type { Model } from "./model.ts";
import { Reach } from "./reach.ts";

export class ListScheduler {
  readonly #model: Model;
  /** Step → writers of replacements that wait for it. */
  readonly #waiters: Lists;

  constructor(model: Model) {
    this.#model = model;
    this.#waiters = waitersOf(model);
  }

  /**
   * `base`: any valid order. `slack`: bytes that a step may add and still run early. `limit`: a step during which more
   * would be live does not run early.
   */
  order(base: ArrayLike<number>, slack: number, limit = Number.POSITIVE_INFINITY): Int32Array {
    return new Run(this.#model, this.#waiters, base, { slack, limit }).run();
  }
}

/** Writers of replacements wait for the other readers of the parameter, unless that makes a cycle. */
function waitersOf(model: Model): Lists {
  const { claims, writer, readers, settled } = model;
  const reach = new Reach(model.successors);
  const pairs: (readonly [number, number])[] = [];
  for (let storage = 0; storage < model.storages; storage++) {
    if (lengthOf(claims, storage) === 0 || settled[storage]) continue;
    const step = at(writer, storage);
    const others = [...listOf(readers, at(listOf(claims, storage), 0))].filter((reader) => reader !== step);
    if (reach.meets(step, others) !== "no") continue;
    for (const reader of others) pairs.push([reader, step]);
  }
  return makeLists(model.steps, (add) => {
    for (const [reader, step] of pairs) add(reader, step);
  });
}

/** When a step runs early: it adds at most `slack` bytes, and no more than `limit` are live during it. */
interface EarlyRule {
  readonly slack: number;
  readonly limit: number;
}

class Run {
  readonly #model: Model;
  readonly #waiters: Lists;
  readonly #memory: Memory;
  readonly #base: ArrayLike<number>;
  readonly #rank: Int32Array;
  readonly #slack: number;
  readonly #limit: number;
  /** Steps that only the limit keeps from running early; retried after the next step. */
  readonly #postponed: number[] = [];
  /** Per step: inputs that it waits for, and readers of its slot. */
  readonly #inputsMissing: Int32Array;
  readonly #readersAhead: Int32Array;
  /** Per storage: the sum of the indices of its remaining readers. */
  readonly #readerSum: Float64Array;
  readonly #eager = new StepHeap();
  readonly #ready = new StepHeap();
  /** Steps to queue, and when each was last queued. */
  readonly #touched: number[] = [];
  readonly #touchedAt: Int32Array;

  constructor(model: Model, waiters: Lists, base: ArrayLike<number>, { slack, limit }: EarlyRule) {
    this.#model = model;
    this.#waiters = waiters;
    this.#memory = new Memory(model);
    this.#base = base;
    this.#rank = new Int32Array(model.steps);
    for (let k = 0; k < model.steps; k++) this.#rank[base[k] as number] = k;
    this.#slack = slack;
    this.#limit = limit;
    this.#inputsMissing = lengthsOf(model.predecessors);
    this.#readersAhead = new Int32Array(model.steps);
    for (const step of waiters.items) this.#readersAhead[step] = at(this.#readersAhead, step) + 1;
    this.#readerSum = new Float64Array(model.storages);
    const { readers } = model;
    for (let id = 0; id < model.storages; id++) {
      let sum = 0;
      for (let k = fromOf(readers, id); k < fromOf(readers, id + 1); k++) sum += readers.items[k] as number;
      this.#readerSum[id] = sum;
    }
    this.#touchedAt = new Int32Array(model.steps);
  }

  run(): Int32Array {
    const n = this.#model.steps;
    const order = new Int32Array(n);
    const { done } = this.#memory;
    for (let i = 0; i < n; i++) this.#announce(i);
    let [first, count] = [0, 0];
    while (count < n) {
      const eager = this.#eager.pop();
      let next = eager ?? this.#ready.pop();
      if (next !== undefined && done[next]) continue;
      if (next === undefined) {
        // Deadlock: steps wait for each other's reads of donated storage. The first one has all its inputs: run it.
        while (done[this.#base[first] as number]) first += 1;
        next = this.#base[first] as number;
      }
      const before = this.#memory.live;
      if (this.#memory.run(next) > this.#limit && eager !== undefined) {
        this.#memory.undo(next, before);
        this.#ready.push(next, this.#rank[next] as number);
        this.#postponed.push(next);
        continue;
      }
      order[count] = next;
      count += 1;
      this.#release(next);
      for (const step of this.#postponed.splice(0)) this.#announce(step);
    }
    return order;
  }

  /** Queues a step that can run. */
  #announce(i: number): void {
    if (this.#memory.done[i] || (this.#inputsMissing[i] as number) > 0 || (this.#readersAhead[i] as number) > 0) return;
    const balance = this.#memory.balance(i);
    if (balance <= this.#slack) this.#eager.push(i, balance);
    else this.#ready.push(i, this.#rank[i] as number);
  }

  /** After a step ran: updates its readers' missing inputs and the reader counts of storages. */
  #release(i: number): void {
    const { successors, reads, replacement, writer } = this.#model;
    const touched = this.#touched;
    for (let k = fromOf(successors, i); k < fromOf(successors, i + 1); k++) {
      const next = successors.items[k] as number;
      this.#inputsMissing[next] = (this.#inputsMissing[next] as number) - 1;
      touched.push(next);
    }
    for (let k = fromOf(this.#waiters, i); k < fromOf(this.#waiters, i + 1); k++) {
      const next = this.#waiters.items[k] as number;
      this.#readersAhead[next] = (this.#readersAhead[next] as number) - 1;
      touched.push(next);
    }
    for (let k = fromOf(reads, i); k < fromOf(reads, i + 1); k++) {
      const storage = reads.items[k] as number;
      const left = this.#memory.pending[storage] as number;
      const sum = (this.#readerSum[storage] as number) - i;
      this.#readerSum[storage] = sum;
      if (left === 1) touched.push(sum);
      const result = replacement[storage] as number;
      if (result >= 0 && left <= 1 && (writer[result] as number) >= 0) touched.push(writer[result] as number);
    }
    for (const step of touched) {
      if (this.#touchedAt[step] === this.#memory.ran) continue;
      this.#touchedAt[step] = this.#memory.ran;
      this.#announce(step);
    }
    touched.length = 0;
  }
}
