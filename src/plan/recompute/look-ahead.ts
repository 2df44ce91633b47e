/**
 * @file Eviction with look-ahead. The operations run in their order; when bytes are short, the present value that is
 * worth least is dropped, and values that are missing later are recomputed on demand.
 *
 * ```
 *   worth(v) = (cost to recompute v, with its absent ancestors) · bytes(v)^-b · (time to its next use)^-a
 * ```
 *
 * Two things set this apart from eviction at run time (Kirisame et al., "Dynamic tensor rematerialization", 2021): the
 * next use is known, and it counts uses through absent descendants, since recomputing those reads v. A value is
 * freed at no cost only when nothing needs it any more, absent descendants included.
 *
 * Invariants: `need[v]` = later first executions that read v + absent, needed values computed from v (+ 1 for results);
 * a value is present, or absent and needed (then its operation is pending), or of no use.
 */
import type { FlatGraph } from "./flat-graph.ts";
import { isSpent, type Meter, unlimited } from "./meter.ts";

export interface Scoring {
  /** Exponent of the time to the next use. */
  readonly a: number;
  /** Exponent of the bytes. */
  readonly b: number;
  /** Distance in operations, or in time that they take. */
  readonly clock: "ops" | "time";
  /** Factors of the worth of each value, for the search around a scoring. */
  readonly factor?: Float64Array;
}

/** Values visited for one worth, at most; beyond them the cost is large enough, and the next use near enough. */
const REACH = 400;
/** Rounds of recomputing the inputs of one operation before the budget counts as too small. */
const ROUNDS = 60;

interface State {
  readonly graph: FlatGraph;
  readonly budget: number;
  readonly present: Uint8Array;
  readonly pinned: Int32Array;
  readonly need: Int32Array;
  /** Absent, needed outputs of each operation. */
  readonly pending: Int32Array;
  /** The next reader of each value among operations that have not run. */
  readonly nextUse: Int32Array;
  readonly list: Int32Array;
  readonly slot: Int32Array;
  /** Worth without the time: stale when an ancestor or descendant came or went. */
  readonly again: Float64Array;
  readonly due: Float64Array;
  readonly stale: Uint8Array;
  readonly weight: Float64Array;
  readonly clock: Float64Array;
  readonly urgent: Float64Array;
  readonly urgentAt: Int32Array;
  readonly mark: Int32Array;
  readonly stack: number[];
  readonly sequence: number[];
  readonly meter: Meter;
  /** What repetitions may still cost. */
  allowance: number;
  stamp: number;
  count: number;
  live: number;
  now: number;
}

export interface LookAheadOptions {
  /** Plans that cost more are not completed. */
  readonly mostCost?: number;
  readonly meter?: Meter;
}

/** The sequence within `budget` bytes, or null where this scoring finds none within its limits. */
export function lookAhead(
  graph: FlatGraph,
  budget: number,
  scoring: Scoring,
  { mostCost = Number.POSITIVE_INFINITY, meter = unlimited() }: LookAheadOptions = {},
): number[] | null {
  meter.left -= 10 * (graph.ops + graph.values);
  const state = start(graph, budget, scoring, meter);
  state.allowance = (mostCost - graph.baseCost) * (1 + 1e-12);
  for (let op = 0; op < graph.ops; op++) {
    state.now = op;
    const inputs = inputsOf(graph, op);
    if (!materialize(state, inputs, scoring.a) || !run(state, op, scoring.a)) return null;
    pin(state, inputs, -1);
    advance(state, op);
  }
  state.now = graph.ops;
  return materialize(state, graph.results, scoring.a) ? state.sequence : null;
}

function start(graph: FlatGraph, budget: number, scoring: Scoring, meter: Meter): State {
  const { ops, values, bytes, useStart, uses, result } = graph;
  const need = Int32Array.from(
    { length: values },
    (_, v) => (useStart[v + 1] as number) - (useStart[v] as number) + (result[v] as number),
  );
  const clock = new Float64Array(ops + 1);
  const mean = Math.max(graph.baseCost / Math.max(1, ops), Number.MIN_VALUE);
  for (let op = 0; op < ops; op++) {
    // every operation takes some time, or a series of free ones would have no length
    clock[op + 1] = (clock[op] as number) + (scoring.clock === "ops" ? 1 : (graph.cost[op] as number) / mean + 0.01);
  }
  const weight = Float64Array.from(
    { length: values },
    (_, v) => Math.max(bytes[v] as number, 1) ** -scoring.b * (scoring.factor?.[v] ?? 1),
  );
  return {
    graph,
    budget,
    present: new Uint8Array(values),
    pinned: new Int32Array(values),
    need,
    pending: new Int32Array(ops),
    nextUse: Int32Array.from({ length: values }, (_, v) =>
      (useStart[v] as number) < (useStart[v + 1] as number) ? (uses[useStart[v] as number] as number) : ops,
    ),
    list: new Int32Array(values),
    slot: new Int32Array(values).fill(-1),
    again: new Float64Array(values),
    due: new Float64Array(values),
    stale: new Uint8Array(values).fill(1),
    weight,
    clock,
    urgent: new Float64Array(ops + 1),
    urgentAt: new Int32Array(ops + 1).fill(-1),
    mark: new Int32Array(Math.max(ops, values)),
    stack: [],
    sequence: [],
    meter,
    allowance: Number.POSITIVE_INFINITY,
    stamp: 0,
    count: 0,
    live: 0,
    now: 0,
  };
}

function enter(state: State, value: number): void {
  state.present[value] = 1;
  state.live += state.graph.bytes[value] as number;
  state.slot[value] = state.count;
  state.list[state.count++] = value;
  state.stale[value] = 1;
}

function leave(state: State, value: number): void {
  state.present[value] = 0;
  state.live -= state.graph.bytes[value] as number;
  const slot = state.slot[value] as number;
  const last = state.list[--state.count] as number;
  state.list[slot] = last;
  state.slot[last] = slot;
  state.slot[value] = -1;
}

/** One more need for `value`; an absent one becomes pending, and so do the absent values that it is computed from. */
function require(state: State, value: number): void {
  const { stack, graph, need, present, pending } = state;
  const base = stack.length;
  stack.push(value);
  while (stack.length > base) {
    const v = stack.pop() as number;
    if ((need[v] as number)++ > 0 || present[v]) continue;
    const op = graph.producer[v] as number;
    if ((pending[op] as number)++ === 0)
      for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++)
        stack.push(graph.inputs[i] as number);
  }
}

/** One need less; a value without any is freed, or if absent no longer pending, nor are the values it would be computed from. */
function release(state: State, value: number): void {
  const { stack, graph, need, present } = state;
  const base = stack.length;
  stack.push(value);
  while (stack.length > base) {
    const v = stack.pop() as number;
    if (--(need[v] as number) > 0) continue;
    if (present[v]) leave(state, v);
    else settle(state, graph.producer[v] as number);
  }
}

/** One absent, needed output less: an operation with none left needs its inputs no more. Leaves them on the stack. */
function settle(state: State, op: number): void {
  const { graph, pending, stack } = state;
  if (--(pending[op] as number) > 0) return;
  for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++)
    stack.push(graph.inputs[i] as number);
}

function releaseStack(state: State, base: number): void {
  while (state.stack.length > base) release(state, state.stack.pop() as number);
}

function drop(state: State, value: number): void {
  const { graph, pending } = state;
  leave(state, value);
  const op = graph.producer[value] as number;
  if ((pending[op] as number)++ === 0)
    for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++)
      require(state, graph.inputs[i] as number);
  disturb(state, value);
}

/** Marks the worth of present values stale that depends on whether `value` is here: through absent ones, both ways. */
function disturb(state: State, value: number): void {
  const { graph, present, stale, mark, stack } = state;
  const visit = (v: number, stamp: number): void => {
    if (mark[v] === stamp) return;
    mark[v] = stamp;
    if (present[v]) stale[v] = 1;
    else stack.push(v);
  };
  for (const down of [true, false]) {
    const stamp = ++state.stamp;
    mark[value] = stamp;
    stack.push(value);
    for (let seen = 0; stack.length > 0; seen++) {
      const v = stack.pop() as number;
      state.meter.left -= 4;
      if (seen > REACH) continue;
      const op = graph.producer[v] as number;
      if (!down) {
        for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++)
          visit(graph.inputs[i] as number, stamp);
        continue;
      }
      for (let u = graph.useStart[v] as number; u < (graph.useStart[v + 1] as number); u++) {
        const user = graph.uses[u] as number;
        if (user >= state.now) break;
        for (let o = graph.outputStart[user] as number; o < (graph.outputStart[user + 1] as number); o++)
          visit(graph.outputs[o] as number, stamp);
      }
    }
  }
}

/** Cost of recomputing `value` with its absent ancestors; infinite when one of them may not run again. */
function costAgain(state: State, value: number): number {
  const { graph, present, mark, stack } = state;
  const stamp = ++state.stamp;
  let [cost, seen] = [0, 0];
  stack.push(graph.producer[value] as number);
  mark[graph.producer[value] as number] = stamp;
  while (stack.length > 0) {
    const op = stack.pop() as number;
    cost += graph.once[op] ? Number.POSITIVE_INFINITY : (graph.cost[op] as number);
    if (++seen > REACH) continue;
    for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++) {
      const input = graph.inputs[i] as number;
      const maker = graph.producer[input] as number;
      if (present[input] || mark[maker] === stamp) continue;
      mark[maker] = stamp;
      stack.push(maker);
    }
  }
  state.meter.left -= 4 * seen;
  return cost;
}

/** When `value` is read next: by an operation that has not run, or for recomputing an absent, needed value. */
function dueOf(state: State, value: number): number {
  const { graph, pending, nextUse, mark, stack, present } = state;
  const stamp = ++state.stamp;
  let [due, seen] = [graph.ops, 0];
  stack.push(value);
  while (stack.length > 0) {
    const v = stack.pop() as number;
    if ((nextUse[v] as number) < due) due = nextUse[v] as number;
    if (++seen > REACH) continue;
    for (let u = graph.useStart[v] as number; u < (graph.useStart[v + 1] as number); u++) {
      const user = graph.uses[u] as number;
      if (user >= state.now) break;
      if ((pending[user] as number) === 0 || mark[user] === stamp) continue;
      mark[user] = stamp;
      for (let o = graph.outputStart[user] as number; o < (graph.outputStart[user + 1] as number); o++) {
        const output = graph.outputs[o] as number;
        if (!present[output] && (state.need[output] as number) > 0) stack.push(output);
      }
    }
  }
  state.meter.left -= 4 * seen;
  return due;
}

/** (time to operation `due`)^-a, remembered while the same operation waits. */
function urgency(state: State, due: number, a: number): number {
  const { urgent, urgentAt, clock, now } = state;
  if (urgentAt[due] !== now) {
    urgentAt[due] = now;
    urgent[due] = Math.max((clock[due] as number) - (clock[now] as number), 0.01) ** -a;
  }
  return urgent[due] as number;
}

/** The present, unpinned value of at least `least` bytes that is worth least, or -1. */
function worthLeast(state: State, a: number, least: number): number {
  const { list, pinned, again, due, stale, weight, graph } = state;
  let [best, worst] = [-1, Number.POSITIVE_INFINITY];
  state.meter.left -= 2 * state.count;
  for (let k = 0; k < state.count; k++) {
    const v = list[k] as number;
    if ((graph.bytes[v] as number) < least || (pinned[v] as number) > 0) continue;
    if (stale[v]) {
      again[v] = (costAgain(state, v) + 1e-9 * graph.baseCost) * (weight[v] as number);
      due[v] = dueOf(state, v);
      stale[v] = 0;
    }
    const score = (again[v] as number) * urgency(state, due[v] as number, a);
    if (score >= worst) continue;
    best = v;
    worst = score;
  }
  return best;
}

/** Drops values until `bytes` more fit beside what is present. */
function makeRoom(state: State, bytes: number, a: number): boolean {
  const limit = state.budget - bytes - (state.graph.pinnedBytes[state.now] as number);
  while (state.live > limit) {
    // tiny values are considered only when there are no others
    let victim = worthLeast(state, a, state.budget * 1e-5);
    if (victim < 0) victim = worthLeast(state, a, 1);
    if (victim < 0 || state.meter.left < 0) return false;
    drop(state, victim);
  }
  return true;
}

function inputsOf(graph: FlatGraph, op: number): Int32Array {
  return graph.inputs.subarray(graph.inputStart[op] as number, graph.inputStart[op + 1] as number);
}

function pin({ pinned }: State, values: Int32Array, by: number): void {
  for (const v of values) pinned[v] = (pinned[v] as number) + by;
}

/** Operations to run again for `values`: those that make the absent ones, each after those that it needs (post-order). */
function missing(state: State, values: Int32Array): number[] {
  const { graph, present, mark } = state;
  const { producer } = graph;
  const stamp = ++state.stamp;
  const order: number[] = [];
  // a path of operations, the first of which stands for the asker, and how far the inputs of each are seen to
  const path = [-1];
  const lists = [values];
  const cursor = [0];
  while (path.length > 0) {
    const depth = path.length - 1;
    const list = lists[depth] as Int32Array;
    const k = cursor[depth] as number;
    cursor[depth] = k + 1;
    if (k >= list.length) {
      order.push(path.pop() as number);
      lists.pop();
      cursor.pop();
      continue;
    }
    const maker = producer[list[k] as number] as number;
    if (present[list[k] as number] || mark[maker] === stamp) continue;
    mark[maker] = stamp;
    path.push(maker);
    lists.push(inputsOf(graph, maker));
    cursor.push(0);
  }
  order.pop();
  state.meter.left -= 8 * order.length;
  return order;
}

/** Makes `values` present and pins them. */
function materialize(state: State, values: Int32Array, a: number): boolean {
  pin(state, values, 1);
  for (let round = 0; round < ROUNDS; round++) {
    const order = missing(state, values);
    if (order.length === 0) return true;
    if (isSpent(state.meter)) return false;
    for (const absent of order) {
      // what one of them needs may have been dropped for the one before: the next round sees to it
      if (!inputsPresent(state, absent)) break;
      const inputs = inputsOf(state.graph, absent);
      pin(state, inputs, 1);
      const done = run(state, absent, a);
      pin(state, inputs, -1);
      state.allowance -= state.graph.cost[absent] as number;
      if (!done || state.allowance < 0) return false;
      restore(state, absent);
    }
  }
  return false;
}

function inputsPresent({ graph, present }: State, op: number): boolean {
  for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++)
    if (!present[graph.inputs[i] as number]) return false;
  return true;
}

/** Room for what `op` writes, and its place in the sequence. */
function run(state: State, op: number, a: number): boolean {
  const { graph, present } = state;
  let bytes = graph.madeBytes[op] as number;
  for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++) {
    const v = graph.outputs[o] as number;
    if (!present[v]) continue;
    // written again while it is present: the same bytes, which may not be dropped in between
    bytes -= graph.bytes[v] as number;
    (state.pinned[v] as number)++;
  }
  const fits = makeRoom(state, bytes, a);
  for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++) {
    const v = graph.outputs[o] as number;
    if (present[v]) (state.pinned[v] as number)--;
  }
  state.sequence.push(op);
  return fits;
}

/** After recomputing `op`: outputs that are needed are present, and its inputs have one reader less. */
function restore(state: State, op: number): void {
  const { graph, present, need } = state;
  const back: number[] = [];
  for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++) {
    const v = graph.outputs[o] as number;
    if (!present[v] && (need[v] as number) > 0) back.push(v);
  }
  const base = state.stack.length;
  for (const v of back) {
    enter(state, v);
    settle(state, op);
  }
  releaseStack(state, base);
  for (const v of back) disturb(state, v);
}

/** After the first execution of `op`: its outputs are present if anyone needs them, its inputs have one reader less. */
function advance(state: State, op: number): void {
  const { graph, need, nextUse, stale } = state;
  state.now = op + 1;
  for (let o = graph.outputStart[op] as number; o < (graph.outputStart[op + 1] as number); o++) {
    const v = graph.outputs[o] as number;
    if ((need[v] as number) > 0) enter(state, v);
  }
  for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++) {
    const v = graph.inputs[i] as number;
    let u = graph.useStart[v] as number;
    while (u < (graph.useStart[v + 1] as number) && (graph.uses[u] as number) <= op) u++;
    nextUse[v] = u < (graph.useStart[v + 1] as number) ? (graph.uses[u] as number) : graph.ops;
    stale[v] = 1;
    release(state, v);
  }
}
