/**
 * @file What a state of a small graph still costs at least. A state is (operations begun, values present), sets are bits
 * of two 32-bit numbers, so graphs have up to 64 operations and values.
 *
 * Pending: every operation that writes something absent which is read later, directly or for computing other pending
 * ones, runs again. On top of those, at the first execution of each later operation t the values that are read
 * after it have to fit beside its operands:
 *
 * ```
 *   operands of t │ held │ pending: absent at no further cost │ budget
 *                        └ if that is not enough, others become absent: the cheapest for their bytes, the last in part
 * ```
 *
 * Both are lower bounds for every way on from the state, whatever the order of repetitions.
 */
import type { FlatGraph } from "../plan/recompute/flat-graph.ts";

export const MOST_BITS = 64;

/** Operations whose values cross the first execution of one operation, cheapest for their bytes first. */
interface Crossing {
  readonly excess: number;
  readonly ops: Int32Array;
  readonly bytes: Float64Array;
}

export function fitsBits(graph: FlatGraph): boolean {
  return graph.ops <= MOST_BITS && graph.values <= MOST_BITS;
}

/** One half of a set as bits. */
export function bits(list: Iterable<number>, half: 0 | 1): number {
  let mask = 0;
  for (const entry of list) if (entry >> 5 === half) mask |= 1 << (entry & 31);
  return mask;
}

export class StateBounds {
  readonly graph: FlatGraph;
  readonly budget: number;
  readonly end: number;
  readonly inLo: Int32Array;
  readonly inHi: Int32Array;
  readonly outLo: Int32Array;
  readonly outHi: Int32Array;
  /** Values that operations from each on read for their first execution, and what is wanted in the end. */
  readonly readLo: Int32Array;
  readonly readHi: Int32Array;
  readonly #crossings: readonly (Crossing | null)[];
  // what `assess` found about the state it was asked last
  pendingLo = 0;
  pendingHi = 0;
  /** What has been looked at so far. */
  work = 0;

  /** The stage to reach, with the values of `wanted` present: the end with all results, or the end of a window. */
  constructor(graph: FlatGraph, budget: number, end: number, wanted: Iterable<number>) {
    this.graph = graph;
    this.end = end;
    this.budget = budget;
    const masks = (start: Int32Array, entries: Int32Array, half: 0 | 1): Int32Array =>
      Int32Array.from({ length: graph.ops }, (_, op) => bits(entries.subarray(start[op], start[op + 1]), half));
    this.inLo = masks(graph.inputStart, graph.inputs, 0);
    this.inHi = masks(graph.inputStart, graph.inputs, 1);
    this.outLo = masks(graph.outputStart, graph.outputs, 0);
    this.outHi = masks(graph.outputStart, graph.outputs, 1);
    this.readLo = new Int32Array(end + 1);
    this.readHi = new Int32Array(end + 1);
    this.readLo[end] = bits(wanted, 0);
    this.readHi[end] = bits(wanted, 1);
    for (let op = end - 1; op >= 0; op--) {
      this.readLo[op] = (this.readLo[op + 1] as number) | (this.inLo[op] as number);
      this.readHi[op] = (this.readHi[op + 1] as number) | (this.inHi[op] as number);
    }
    this.#crossings = Array.from({ length: end }, (_, t) => this.#crossingOf(t));
    this.work += 4 * graph.values + end * graph.ops;
  }

  /** What crosses the first execution of `t`; null if all of it fits. */
  #crossingOf(t: number): Crossing | null {
    const { graph, readLo, readHi, inLo, inHi } = this;
    const laterLo = (readLo[t + 1] as number) & ~(inLo[t] as number);
    const laterHi = (readHi[t + 1] as number) & ~(inHi[t] as number);
    let excess = (graph.madeBytes[t] as number) + (graph.pinnedBytes[t] as number) - this.budget;
    excess += this.bytesOf(inLo[t] as number, inHi[t] as number);
    const items: { readonly op: number; readonly bytes: number }[] = [];
    for (let op = 0; op < t; op++) {
      const bytes = this.bytesOf((this.outLo[op] as number) & laterLo, (this.outHi[op] as number) & laterHi);
      excess += bytes;
      if (bytes > 0 && !graph.once[op]) items.push({ op, bytes });
    }
    if (excess <= 0) return null;
    const cost = ({ op }: { readonly op: number }): number => graph.cost[op] as number;
    items.sort((p, q) => cost(p) * q.bytes - cost(q) * p.bytes || p.op - q.op);
    return {
      excess,
      ops: Int32Array.from(items, ({ op }) => op),
      bytes: Float64Array.from(items, ({ bytes }) => bytes),
    };
  }

  bytesOf(lo: number, hi: number): number {
    const { bytes } = this.graph;
    let sum = 0;
    for (let rest = lo; rest !== 0; rest &= rest - 1) sum += bytes[31 - Math.clz32(rest & -rest)] as number;
    for (let rest = hi; rest !== 0; rest &= rest - 1) sum += bytes[63 - Math.clz32(rest & -rest)] as number;
    return sum;
  }

  /** Least cost of repetitions from a state on; infinite for a dead end. Nothing beyond `enough` is looked for. */
  assess(stage: number, lo: number, hi: number, enough: number): number {
    const { graph, inLo, inHi, outLo, outHi } = this;
    let [neededLo, neededHi] = [this.readLo[stage] as number, this.readHi[stage] as number];
    let [pendingLo, pendingHi, cost] = [0, 0, 0];
    for (let op = stage - 1; op >= 0; op--) {
      const absent = ((outLo[op] as number) & neededLo & ~lo) | ((outHi[op] as number) & neededHi & ~hi);
      if (absent === 0) continue;
      neededLo |= inLo[op] as number;
      neededHi |= inHi[op] as number;
      if (op < 32) pendingLo |= 1 << op;
      else pendingHi |= 1 << (op & 31);
      cost += graph.once[op] ? Number.POSITIVE_INFINITY : (graph.cost[op] as number);
    }
    this.pendingLo = pendingLo;
    this.pendingHi = pendingHi;
    this.work += 10 + stage;
    return cost >= enough ? cost : cost + this.#more(stage, enough - cost);
  }

  /** What others than the pending operations cost again, the most at any later stage. */
  #more(stage: number, enough: number): number {
    const { graph, pendingLo, pendingHi } = this;
    let most = 0;
    for (let t = stage; t < this.end && most < enough; t++) {
      const crossing = this.#crossings[t] as Crossing | null;
      if (crossing === null) continue;
      const { ops, bytes } = crossing;
      let { excess } = crossing;
      for (let k = 0; k < ops.length && excess > 0; k++) {
        const op = ops[k] as number;
        if (((op < 32 ? pendingLo : pendingHi) >>> (op & 31)) & 1) excess -= bytes[k] as number;
      }
      let cost = 0;
      for (let k = 0; k < ops.length && excess > 0 && cost <= enough; k++) {
        const op = ops[k] as number;
        if (((op < 32 ? pendingLo : pendingHi) >>> (op & 31)) & 1) continue;
        const part = Math.min(1, excess / (bytes[k] as number));
        cost += part * (graph.cost[op] as number);
        excess -= bytes[k] as number;
      }
      this.work += ops.length;
      if (excess > 0 && cost <= enough) return Number.POSITIVE_INFINITY;
      if (cost > most) most = cost;
    }
    return most;
  }
}
