/**
 * @file A sequence that can be edited: steps are added and taken away, and its time, its bytes at every step and the
 * bytes above the budget are kept up to date, in time proportional to the steps whose bytes change.
 *
 * ```
 *   step      0  1  2  3  4  5
 *   value v   w──r     w─────r      w: written, r: read; between 1 and 3 nothing is held
 *   gap        1  2  3  4  5        gap g lies before step g
 *   held       ■        ■  ■
 * ```
 *
 * Between two consecutive touches of a value its bytes are held exactly if the second is a read. So adding a step that
 * writes v just before 5 frees the gaps from 4 to there, adding one that reads v before 3 fills the gaps 2 and 3.
 * Steps are a linked list with labels that grow along it; each value has the list of steps that touch it. All bytes are
 * whole numbers, so adding and taking away cancel exactly.
 */
import { invariant } from "../../base/invariant.ts";
import type { FlatGraph } from "./flat-graph.ts";

const SPACING = 2 ** 20;
/** The work of an edit besides the steps that it changes, in such steps. */
const EDIT = 20;

export class Timeline {
  readonly graph: FlatGraph;
  readonly budget: number;
  /** First executions are steps 0 … ops - 1, the end is step `ops`; repetitions have higher numbers. */
  readonly end: number;
  readonly repetitions: number[] = [];
  cost = 0;
  /** Bytes above the budget, summed over steps. */
  over = 0;
  /** The work of edits so far, in steps changed. */
  work = 0;
  /** The last edit's worst step: the one furthest above the budget among those it made worse, or -1. */
  worst = -1;
  op: Int32Array;
  next: Int32Array;
  previous: Int32Array;
  label: Float64Array;
  #held: Float64Array;
  #pinned: Float64Array;
  #slot: Int32Array;
  readonly #touches: number[][];
  readonly #free: number[] = [];
  // the ranges of an edit: from the step after `#from` up to the edit, `#by` bytes more
  readonly #from: number[] = [];
  readonly #by: number[] = [];
  #worstBytes = 0;

  constructor(graph: FlatGraph, budget: number, sequence: readonly number[], capacity = 2 * sequence.length + 64) {
    const n = graph.ops;
    this.graph = graph;
    this.budget = Math.floor(budget);
    this.end = n;
    this.op = new Int32Array(capacity).fill(-1);
    this.next = new Int32Array(capacity).fill(-1);
    this.previous = new Int32Array(capacity).fill(-1);
    this.label = new Float64Array(capacity);
    this.#held = new Float64Array(capacity);
    this.#pinned = new Float64Array(capacity);
    this.#slot = new Int32Array(capacity).fill(-1);
    this.#touches = Array.from({ length: graph.values }, () => []);
    for (let step = capacity - 1; step > n; step--) this.#free.push(step);
    this.#load(sequence);
  }

  #load(sequence: readonly number[]): void {
    const { graph, op, next, previous, label } = this;
    let [started, before] = [0, -1];
    const last = new Int32Array(graph.values).fill(-1);
    const change = new Float64Array(sequence.length + 2);
    const order: number[] = [];
    const append = (step: number): void => {
      if (before >= 0) next[before] = step;
      previous[step] = before;
      label[step] = (order.length + 1) * SPACING;
      this.#pinned[step] = graph.pinnedBytes[started] as number;
      before = step;
      order.push(step);
    };
    sequence.forEach((index, p) => {
      const step = index === started ? index : this.#take();
      append(step);
      op[step] = index;
      this.cost += graph.cost[index] as number;
      if (index === started) started++;
      else this.#enlist(step);
      for (let i = graph.inputStart[index] as number; i < (graph.inputStart[index + 1] as number); i++) {
        const v = graph.inputs[i] as number;
        invariant((last[v] as number) >= 0, () => `operation ${index} reads value ${v} before it is written`);
        (change[(last[v] as number) + 1] as number) += graph.bytes[v] as number;
        (change[p + 1] as number) -= graph.bytes[v] as number;
        last[v] = p;
        (this.#touches[v] as number[]).push(step);
      }
      for (let o = graph.outputStart[index] as number; o < (graph.outputStart[index + 1] as number); o++) {
        last[graph.outputs[o] as number] = p;
        (this.#touches[graph.outputs[o] as number] as number[]).push(step);
      }
    });
    invariant(started === graph.ops, () => `the sequence runs ${started} of ${graph.ops} operations`);
    for (const v of graph.results) {
      (change[(last[v] as number) + 1] as number) += graph.bytes[v] as number;
      (this.#touches[v] as number[]).push(this.end);
    }
    append(this.end);
    let held = 0;
    order.forEach((step, p) => {
      held += change[p] as number;
      this.#held[step] = held;
      this.over += this.#excess(step);
    });
  }

  sequence(): number[] {
    const ops: number[] = [];
    for (let step = 0; step !== this.end; step = this.next[step] as number) ops.push(this.op[step] as number);
    return ops;
  }

  bytesAt(step: number): number {
    const op = this.op[step] as number;
    return (
      (this.#held[step] as number) +
      (this.#pinned[step] as number) +
      (op < 0 ? 0 : (this.graph.madeBytes[op] as number))
    );
  }

  /** The step that touches `value` last before `step`. */
  touchBefore(value: number, step: number): number {
    const touches = this.#touches[value] as number[];
    return touches[this.#rank(touches, this.label[step] as number) - 1] as number;
  }

  /** Whether `value` is held from before `step` into it or beyond. */
  heldInto(value: number, step: number): boolean {
    const touches = this.#touches[value] as number[];
    return this.#reads(touches[this.#rank(touches, this.label[step] as number)], value);
  }

  /** The step that reads `value` next after `step`, if it is held across `step` without being touched there; else -1. */
  readAfter(value: number, step: number): number {
    const touches = this.#touches[value] as number[];
    const rank = this.#rank(touches, this.label[step] as number);
    const next = touches[rank];
    return rank > 0 && next !== step && this.#reads(next, value) ? (next as number) : -1;
  }

  /** Adds a computation of `op` before `step`, which comes after the first one. Returns the new step. */
  insert(op: number, step: number): number {
    const { graph } = this;
    const at = this.label[step] as number;
    this.#from.length = 0;
    this.#by.length = 0;
    let held = this.#held[step] as number;
    for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++) {
      const v = graph.outputs[o] as number;
      const touches = this.#touches[v] as number[];
      const rank = this.#rank(touches, at);
      if (!this.#reads(touches[rank], v)) continue;
      this.#range(touches[rank - 1] as number, -(graph.bytes[v] as number));
      held -= graph.bytes[v] as number;
    }
    for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++) {
      const v = graph.inputs[i] as number;
      const touches = this.#touches[v] as number[];
      const rank = this.#rank(touches, at);
      if (this.#reads(touches[rank], v)) continue;
      this.#range(touches[rank - 1] as number, graph.bytes[v] as number);
      held += graph.bytes[v] as number;
    }
    this.worst = -1;
    this.#worstBytes = this.budget;
    this.#applyRanges(this.previous[step] as number);
    const added = this.#link(op, step);
    this.#held[added] = held;
    this.cost += graph.cost[op] as number;
    const excess = this.#excess(added);
    this.over += excess;
    if (excess > 0 && this.bytesAt(added) > this.#worstBytes) this.worst = added;
    this.#touch(op, added);
    return added;
  }

  /** Takes a repetition away. */
  remove(step: number): void {
    const { graph } = this;
    const op = this.op[step] as number;
    this.#from.length = 0;
    this.#by.length = 0;
    for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++)
      this.#untouch(graph.outputs[o] as number, step, true);
    for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++)
      this.#untouch(graph.inputs[i] as number, step, false);
    this.over -= this.#excess(step);
    this.cost -= graph.cost[op] as number;
    const before = this.previous[step] as number;
    const after = this.next[step] as number;
    this.next[before] = after;
    this.previous[after] = before;
    this.worst = -1;
    this.#worstBytes = this.budget;
    this.#applyRanges(before);
    const slot = this.#slot[step] as number;
    const last = this.repetitions.pop() as number;
    if (last !== step) {
      this.repetitions[slot] = last;
      this.#slot[last] = slot;
    }
    this.#free.push(step);
  }

  #reads(step: number | undefined, value: number): boolean {
    return step !== undefined && this.op[step] !== this.graph.producer[value];
  }

  #excess(step: number): number {
    return Math.max(0, this.bytesAt(step) - this.budget);
  }

  /** How many of `touches` come before `label`. */
  #rank(touches: readonly number[], label: number): number {
    let [low, high] = [0, touches.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.label[touches[middle] as number] as number) < label) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Keeps ranges by where they begin, the latest first. */
  #range(from: number, by: number): void {
    let k = this.#from.length;
    while (k > 0 && (this.label[this.#from[k - 1] as number] as number) < (this.label[from] as number)) {
      this.#from[k] = this.#from[k - 1] as number;
      this.#by[k] = this.#by[k - 1] as number;
      k--;
    }
    this.#from[k] = from;
    this.#by[k] = by;
  }

  /** Applies the ranges, which all end with the gap after `step`, going back from `step`. */
  #applyRanges(last: number): void {
    const { previous, budget, graph } = this;
    const count = this.#from.length;
    let [by, k] = [0, 0];
    for (const bytes of this.#by) by += bytes;
    let changed = EDIT;
    for (let step = last; k < count; step = previous[step] as number) {
      changed++;
      while (k < count && this.#from[k] === step) by -= this.#by[k++] as number;
      if (by === 0) continue;
      const old =
        (this.#held[step] as number) +
        (this.#pinned[step] as number) +
        (graph.madeBytes[this.op[step] as number] as number);
      (this.#held[step] as number) += by;
      const now = old + by;
      if (old > budget) this.over -= old - budget;
      if (now <= budget) continue;
      this.over += now - budget;
      if (by > 0 && now > this.#worstBytes) {
        this.#worstBytes = now;
        this.worst = step;
      }
    }
    this.work += changed;
  }

  #untouch(value: number, step: number, written: boolean): void {
    const touches = this.#touches[value] as number[];
    const rank = this.#rank(touches, this.label[step] as number);
    const read = this.#reads(touches[rank + 1], value);
    // written: the copy before has to last; read: without a later reader, the copy before may end
    if (written && read) this.#range(touches[rank - 1] as number, this.graph.bytes[value] as number);
    if (!written && !read) this.#range(touches[rank - 1] as number, -(this.graph.bytes[value] as number));
    touches.splice(rank, 1);
  }

  #touch(op: number, step: number): void {
    const { graph } = this;
    const add = (v: number): void => {
      const touches = this.#touches[v] as number[];
      touches.splice(this.#rank(touches, this.label[step] as number), 0, step);
    };
    for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++)
      add(graph.outputs[o] as number);
    for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++)
      add(graph.inputs[i] as number);
  }

  #link(op: number, after: number): number {
    const step = this.#take();
    const before = this.previous[after] as number;
    if ((this.label[after] as number) - (this.label[before] as number) < 2 ** -20) this.#relabel();
    this.label[step] = ((this.label[before] as number) + (this.label[after] as number)) / 2;
    this.op[step] = op;
    this.next[before] = step;
    this.previous[step] = before;
    this.next[step] = after;
    this.previous[after] = step;
    this.#pinned[step] = this.#pinned[after] as number;
    this.#enlist(step);
    return step;
  }

  #relabel(): void {
    let label = SPACING;
    for (let step = 0; step >= 0; step = this.next[step] as number) {
      this.label[step] = label;
      label += SPACING;
    }
  }

  #enlist(step: number): void {
    this.#slot[step] = this.repetitions.length;
    this.repetitions.push(step);
  }

  #take(): number {
    const step = this.#free.pop();
    if (step !== undefined) return step;
    const length = this.op.length;
    const grow = <T extends Int32Array | Float64Array>(old: T, made: T): T => {
      made.set(old);
      return made;
    };
    this.op = grow(this.op, new Int32Array(2 * length));
    this.next = grow(this.next, new Int32Array(2 * length));
    this.previous = grow(this.previous, new Int32Array(2 * length));
    this.label = grow(this.label, new Float64Array(2 * length));
    this.#held = grow(this.#held, new Float64Array(2 * length));
    this.#pinned = grow(this.#pinned, new Float64Array(2 * length));
    this.#slot = grow(this.#slot, new Int32Array(2 * length));
    for (let fresh = 2 * length - 1; fresh > length; fresh--) this.#free.push(fresh);
    return length;
  }
}
