/**
 * @file When does each step run? Program order, except that a step that leaves no more memory live than before runs as
 * soon as it is ready. That runs an optimizer's updates as soon as their gradient is whole, so that gradients of all
 * layers are never live together:
 *
 *     program order   d3  d2  d1  u3 u2 u1        gradients d3, d2, d1 live side by side
 *     eager           d3 u3  d2 u2  d1 u1         each dies in its update
 *
 * What a step leaves live is what it writes, less what it reads for the last time. A result that replaces a donated
 * parameter costs nothing once nobody else reads the parameter: it takes over the slot. So that it can, the step that
 * writes it waits for the other readers of the parameter, unless one of them needs its outcome.
 *
 * "Last reader" is known without search: per storage, the number of readers to come and the sum of their positions; when
 * one is left, the sum is its position. Of several eager steps the one that frees most goes first. A step's balance only
 * ever falls, so it is queued again when it does, and entries of steps that ran are skipped.
 * O((n + edges) log n). Outcomes are compared with program order by their lower bounds; the best one is kept.
 */
import { at, invariant } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { StepHeap } from "./heap.ts";
import { type Storage, type Storages, storagesOf } from "./liveness.ts";
import { alignUp } from "./problem.ts";
import { needsSlot, type Program, replacementOf } from "./program.ts";

/**
 * Shares of the peak that a step may add and still run early. Something small is often all that a large update waits for
 * (a learning rate, a norm), and to have it early costs next to nothing.
 */
const SLACKS = [0, 1 / 4096, 1 / 64];

/** The program with its steps in an order that needs no more memory at once than the given one. */
export function orderSteps(program: Program): Program {
  let best = program;
  let bytes = maxLive(program);
  const peak = bytes;
  for (const share of SLACKS) {
    const order = new EagerOrder(program, storagesOf(program), Math.floor(peak * share)).run();
    if (order.every((step, i) => step === i)) continue;
    const candidate: Program = { ...program, steps: order.map((step) => at(program.steps, step)) };
    const height = maxLive(candidate);
    // With equal peaks the eager order is better than the program's: less is live on average.
    if (height < bytes || (height === bytes && best === program)) [best, bytes] = [candidate, height];
  }
  return best;
}

function maxLive(program: Program): number {
  return boundOf(assignBuffers(program).problem).bytes;
}

/** Readers of a storage that have not run. */
interface Pending {
  count: number;
  /** Sum of their positions: with one left, its position. */
  sum: number;
}

class EagerOrder {
  readonly #program: Program;
  readonly #storages: Storages;
  readonly #pending: Pending[];
  readonly #results: ReadonlySet<Storage>;
  /** Must be kept after its last reader: results, slots. */
  readonly #kept: boolean[];
  /** Storage → the slot that it is to take over, and back. */
  readonly #slotOf = new Map<Storage, Storage>();
  readonly #replacedBy = new Map<Storage, Storage>();
  readonly #writerOf = new Map<Storage, number>();
  /** Per step: what it still waits for, and who waits for it. */
  readonly #inputsMissing: Int32Array;
  readonly #readersAhead: Int32Array;
  readonly #successors: number[][];
  readonly #waiters: number[][];
  readonly #done: boolean[];
  readonly #eager = new StepHeap();
  readonly #ready = new StepHeap();
  /** Bytes that a step may add and still run early. */
  readonly #slack: number;

  constructor(program: Program, storages: Storages, slack: number) {
    this.#slack = slack;
    const n = program.steps.length;
    this.#program = program;
    this.#storages = storages;
    this.#pending = storages.all.map(() => ({ count: 0, sum: 0 }));
    this.#kept = storages.all.map((s) => s.isParam && needsSlot(program, at(s.values, 0)));
    this.#inputsMissing = new Int32Array(n);
    this.#readersAhead = new Int32Array(n);
    this.#successors = program.steps.map(() => []);
    this.#waiters = program.steps.map(() => []);
    this.#done = program.steps.map(() => false);
    this.#results = new Set(program.results.map((result) => storages.of(result)));
    for (const storage of this.#results) this.#kept[storage.id] = true;
    this.#linkInputs();
    this.#linkSlots();
  }

  run(): number[] {
    const order: number[] = [];
    const n = this.#program.steps.length;
    for (let i = 0; i < n; i++) this.#announce(i);
    let first = 0;
    while (order.length < n) {
      let next = this.#eager.pop() ?? this.#ready.pop();
      if (next !== undefined && this.#done[next]) continue;
      if (next === undefined) {
        // Steps wait for each other's reads of donated storage. The first one has all its inputs: let it not wait.
        while (this.#done[first]) first += 1;
        next = first;
      }
      this.#done[next] = true;
      order.push(next);
      this.#release(next);
    }
    return order;
  }

  /** Definitions before uses, and the readers of every storage. */
  #linkInputs(): void {
    const writer = new Map<Value, number>();
    this.#program.steps.forEach((step, i) => {
      for (const value of step.reads) {
        const from = writer.get(value);
        if (from === undefined) continue;
        at(this.#successors, from).push(i);
        this.#inputsMissing[i] = at(this.#inputsMissing, i) + 1;
      }
      for (const storage of this.#readBy(i)) {
        const pending = at(this.#pending, storage.id);
        pending.count += 1;
        pending.sum += i;
      }
      for (const value of step.writes) {
        writer.set(value, i);
        if (!step.alias) this.#writerOf.set(this.#storages.of(value), i);
      }
    });
  }

  /** Writers of replacements wait for the other readers of the parameter where that makes no cycle. */
  #linkSlots(): void {
    const readers = new Map<Storage, number[]>();
    for (const param of this.#program.params) {
      const result = replacementOf(this.#program, param);
      const slot = this.#storages.of(param);
      const writer = result && this.#writerOf.get(this.#storages.of(result));
      if (!result || writer === undefined || this.#slotOf.has(this.#storages.of(result))) continue;
      this.#slotOf.set(this.#storages.of(result), slot);
      this.#replacedBy.set(slot, this.#storages.of(result));
      readers.set(slot, []);
    }
    this.#program.steps.forEach((_, i) => {
      for (const storage of this.#readBy(i)) readers.get(storage)?.push(i);
    });
    const reach = new Reach(this.#successors);
    for (const [slot, steps] of readers) {
      const writer = this.#writerOf.get(this.#replacedBy.get(slot) ?? slot) ?? 0;
      const others = steps.filter((reader) => reader !== writer);
      if (others.some((reader) => reader > writer) && reach.meets(writer, others)) continue;
      for (const reader of others) at(this.#waiters, reader).push(writer);
      this.#readersAhead[writer] = at(this.#readersAhead, writer) + others.length;
    }
  }

  /** Distinct storages that a step reads. */
  #readBy(i: number): ReadonlySet<Storage> {
    return new Set(at(this.#program.steps, i).reads.map((v) => this.#storages.of(v)));
  }

  /** Queues a step that can run; eagerly if it leaves no more live than before. */
  #announce(i: number): void {
    if (this.#done[i] || at(this.#inputsMissing, i) > 0 || at(this.#readersAhead, i) > 0) return;
    const balance = this.#balance(i);
    if (balance <= this.#slack) this.#eager.push(i, balance);
    else this.#ready.push(i);
  }

  /** After a step ran: its readers' inputs are there, storages have a reader less. */
  #release(i: number): void {
    const touched = new Set<number>();
    for (const next of at(this.#successors, i)) {
      this.#inputsMissing[next] = at(this.#inputsMissing, next) - 1;
      touched.add(next);
    }
    for (const next of at(this.#waiters, i)) {
      this.#readersAhead[next] = at(this.#readersAhead, next) - 1;
      touched.add(next);
    }
    for (const storage of this.#readBy(i)) {
      const pending = at(this.#pending, storage.id);
      pending.count -= 1;
      pending.sum -= i;
      invariant(pending.count >= 0, () => `a storage of ${this.#program.name} was read too often`);
      if (pending.count === 1) touched.add(pending.sum);
      const replacement = this.#replacedBy.get(storage);
      const writer = replacement && this.#writerOf.get(replacement);
      if (writer !== undefined && pending.count <= 1) touched.add(writer);
    }
    for (const step of touched) this.#announce(step);
  }

  /** Bytes that running the step now would add to what is live afterwards. */
  #balance(i: number): number {
    const step = at(this.#program.steps, i);
    const reads = this.#readBy(i);
    const bytes = (storage: Storage) => alignUp(storage.bytes, this.#program.alignment);
    let balance = 0;
    for (const storage of reads) {
      if (at(this.#pending, storage.id).count === 1 && !this.#kept[storage.id]) balance -= bytes(storage);
    }
    if (step.alias) return balance;
    for (const value of step.writes) {
      const storage = this.#storages.of(value);
      const diesAtOnce = at(this.#pending, storage.id).count === 0 && !this.#kept[storage.id];
      if (!diesAtOnce && !this.#takesSlot(i, storage, reads)) balance += bytes(storage);
    }
    return balance;
  }

  /** Whether the storage would be written over a parameter that nobody else reads any more. */
  #takesSlot(i: number, storage: Storage, reads: ReadonlySet<Storage>): boolean {
    const slot = this.#slotOf.get(storage);
    if (!slot || this.#results.has(slot)) return false;
    const { reads: values, inPlace } = at(this.#program.steps, i);
    const others = at(this.#pending, slot.id).count - (reads.has(slot) ? 1 : 0);
    const mine = values.filter((v) => this.#storages.of(v) === slot);
    return others === 0 && mine.every((v) => inPlace.some(([r, w]) => r === v && this.#storages.of(w) === storage));
  }
}

/** Bounded search forward along dependencies. */
class Reach {
  readonly #successors: readonly (readonly number[])[];
  /** Steps that may still be visited, over all searches; beyond it, the answer is a careful yes. */
  #credit: number;

  constructor(successors: readonly (readonly number[])[]) {
    this.#successors = successors;
    this.#credit = 64 * (successors.length + 1);
  }

  /** Whether any of the targets depends on `from`. */
  meets(from: number, targets: readonly number[]): boolean {
    const wanted = new Set(targets);
    const last = targets.reduce((a, b) => Math.max(a, b), 0);
    const seen = new Set([from]);
    const stack = [from];
    for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
      this.#credit -= 1;
      if (wanted.has(step) || this.#credit < 0) return true;
      for (const next of at(this.#successors, step)) {
        if (next <= last && !seen.has(next)) {
          seen.add(next);
          stack.push(next);
        }
      }
    }
    return false;
  }
}
