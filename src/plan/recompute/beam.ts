/**
 * @file Search over states for small graphs: (operations begun, values present). Where the budget is so tight that few
 * values fit at a time, states are few as well, and this finds plans that annealing, which has to cross sequences above
 * the budget, does not.
 *
 * ```
 *   begun   0      1      2      3        within a stage the state with the least cost + remainder is expanded first;
 *   states  {} ──▶ {a} ─▶ {ab}─▶ …        the `width` best that have run the stage's operation go on to the next
 *                    └──▶ {b} ─▶ …
 * ```
 *
 * Remainder: every operation that has to run again, because what it writes is absent and is read later, directly or for
 * computing others again, costs once more at least. Values are dropped only when room is needed (holding more is never
 * worse), and then no more of them than is needed. Sets are bits of a bigint.
 */
import type { FlatGraph } from "./flat-graph.ts";

interface State {
  readonly present: bigint;
  readonly cost: number;
  /** `cost` and the remainder. */
  readonly rank: number;
  /** The operation that led here. */
  readonly op: number;
  readonly from: State | null;
}

export interface BeamOptions {
  /** States that go on to the next stage. */
  readonly width: number;
  /** States to expand in one stage, at most. */
  readonly expansions: number;
  readonly deadline: number;
}

/** Ways to make room for one operation that are tried. */
const DROPS = 16;

interface Sets {
  readonly graph: FlatGraph;
  readonly budget: number;
  readonly inputs: readonly bigint[];
  readonly outputs: readonly bigint[];
  /** `read[t]`: values that operations from t on read for their first execution, and results. */
  readonly read: readonly bigint[];
}

function setsOf(graph: FlatGraph, budget: number): Sets {
  const bits = (start: Int32Array, entries: Int32Array, op: number): bigint => {
    let set = 0n;
    for (let i = start[op] as number; i < (start[op + 1] as number); i++) set |= 1n << BigInt(entries[i] as number);
    return set;
  };
  const ops = Array.from({ length: graph.ops }, (_, op) => op);
  const inputs = ops.map((op) => bits(graph.inputStart, graph.inputs, op));
  const outputs = ops.map((op) => bits(graph.outputStart, graph.outputs, op));
  const read = new Array<bigint>(graph.ops + 1);
  read[graph.ops] = [...graph.results].reduce((set, v) => set | (1n << BigInt(v)), 0n);
  for (let op = graph.ops - 1; op >= 0; op--) read[op] = (read[op + 1] as bigint) | (inputs[op] as bigint);
  return { graph, budget, inputs, outputs, read };
}

/** Operations that have to run again in a stage or later, given what is present. */
function pending({ graph, inputs, outputs, read }: Sets, stage: number, present: bigint): readonly number[] {
  let needed = read[stage] as bigint;
  const found: number[] = [];
  for (let op = Math.min(stage, graph.ops) - 1; op >= 0; op--) {
    if (((outputs[op] as bigint) & needed & ~present) === 0n) continue;
    needed |= inputs[op] as bigint;
    found.push(op);
  }
  return found;
}

function remainder(sets: Sets, stage: number, present: bigint): number {
  let cost = 0;
  for (const op of pending(sets, stage, present)) {
    cost += sets.graph.once[op] ? Number.POSITIVE_INFINITY : (sets.graph.cost[op] as number);
  }
  return cost;
}

function weigh({ graph }: Sets, set: bigint): number {
  let bytes = 0;
  for (let v = 0, rest = set; rest !== 0n; v++, rest >>= 1n) if (rest & 1n) bytes += graph.bytes[v] as number;
  return bytes;
}

/** What may be left present so that `op` fits: all of it, or without one of the least sets that make room. */
function rooms(sets: Sets, stage: number, present: bigint, op: number): readonly bigint[] {
  const { graph, budget, inputs, outputs } = sets;
  const operands = (inputs[op] as bigint) | (outputs[op] as bigint);
  let scratch = graph.madeBytes[op] as number;
  for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++)
    scratch -= graph.bytes[graph.outputs[o] as number] as number;
  const all = present | operands;
  const excess = weigh(sets, all) + scratch + (graph.pinnedBytes[stage] as number) - budget;
  if (excess <= 0) return [all];
  const loose: number[] = [];
  for (let v = 0, rest = all & ~operands; rest !== 0n; v++, rest >>= 1n) {
    if (rest & 1n && (graph.bytes[v] as number) > 0) loose.push(v);
  }
  loose.sort((a, b) => (graph.bytes[b] as number) - (graph.bytes[a] as number) || a - b);
  // All that the last of them could still free: where that is too little there is no way to make room.
  const rest = new Float64Array(loose.length + 1);
  for (let k = loose.length - 1; k >= 0; k--)
    rest[k] = (rest[k + 1] as number) + (graph.bytes[loose[k] as number] as number);
  const found: bigint[] = [];
  const choose = (k: number, left: bigint, short: number): void => {
    if (found.length >= DROPS || short > (rest[k] as number)) return;
    if (short <= 0) {
      found.push(left);
      return;
    }
    const v = loose[k] as number;
    choose(k + 1, left & ~(1n << BigInt(v)), short - (graph.bytes[v] as number));
    choose(k + 1, left, short);
  };
  choose(0, all, excess);
  return found;
}

/** A heap by rank; of equals the one that came first. */
class Queue {
  readonly #items: { readonly state: State; readonly age: number }[] = [];
  #age = 0;

  push(state: State): void {
    const items = this.#items;
    let k = items.push({ state, age: this.#age++ }) - 1;
    while (k > 0 && this.#before(k, (k - 1) >> 1)) k = this.#swap(k, (k - 1) >> 1);
  }

  pop(): State | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (first === undefined || last === undefined || items.length === 0) return first?.state;
    items[0] = last;
    for (let k = 0; ; ) {
      let least = k;
      for (const child of [2 * k + 1, 2 * k + 2]) if (child < items.length && this.#before(child, least)) least = child;
      if (least === k) return first.state;
      k = this.#swap(k, least);
    }
  }

  #before(a: number, b: number): boolean {
    const [p, q] = [this.#items[a] as { state: State; age: number }, this.#items[b] as { state: State; age: number }];
    return p.state.rank < q.state.rank || (p.state.rank === q.state.rank && p.age < q.age);
  }

  #swap(a: number, b: number): number {
    const items = this.#items;
    [items[a], items[b]] = [items[b] as (typeof items)[0], items[a] as (typeof items)[0]];
    return b;
  }
}

/** The best states after the stage's operation; for the stage after the last, those with all results. */
function advance(sets: Sets, stage: number, states: readonly State[], options: BeamOptions): readonly State[] {
  const { graph, inputs, read } = sets;
  const target = stage < graph.ops ? (inputs[stage] as bigint) : (read[graph.ops] as bigint);
  const queue = new Queue();
  for (const state of states) queue.push(state);
  const seen = new Set<bigint>();
  const done = new Map<bigint, State>();
  for (let count = 0; count < options.expansions && done.size < options.width; count++) {
    const state = queue.pop();
    if (!state) break;
    if (seen.has(state.present)) continue;
    seen.add(state.present);
    const reach = (op: number, after: number, into: (next: State) => void): void => {
      const cost = state.cost + (graph.cost[op] as number);
      for (const present of rooms(sets, stage, state.present, op)) {
        const rank = cost + remainder(sets, after, present);
        if (rank < Number.POSITIVE_INFINITY) into({ present, cost, rank, op, from: state });
      }
    };
    if ((target & ~state.present) === 0n) {
      if (stage === graph.ops) return [state];
      reach(stage, stage + 1, (next) => {
        const known = done.get(next.present);
        if (!known || next.rank < known.rank) done.set(next.present, next);
      });
    }
    for (const op of pending(sets, stage, state.present)) {
      if (graph.once[op] || ((inputs[op] as bigint) & ~state.present) !== 0n) continue;
      reach(op, stage, (next) => {
        if (!seen.has(next.present)) queue.push(next);
      });
    }
  }
  return [...done.values()];
}

/** A sequence within `budget`, or null where the search got stuck. */
export function beam(graph: FlatGraph, budget: number, options: BeamOptions): number[] | null {
  const sets = setsOf(graph, budget);
  let states: readonly State[] = [{ present: 0n, cost: 0, rank: 0, op: -1, from: null }];
  for (let stage = 0; stage <= graph.ops; stage++) {
    if (performance.now() > options.deadline) return null;
    states = advance(sets, stage, states, options);
    if (states.length === 0) return null;
  }
  const sequence: number[] = [];
  for (let state = states[0] ?? null; state && state.op >= 0; state = state.from) sequence.push(state.op);
  return sequence.reverse();
}
