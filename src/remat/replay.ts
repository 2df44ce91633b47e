/**
 * @file Many values recomputed at one place, for one price. Where values are read again far from where they were computed,
 * recomputing one of them takes nearly all operations before it, and so does recomputing fifty: only together do they pay.
 *
 * ```
 *   bytes        ▂▄▆████▆▄▂            before q all that held values follow from is computed once more; those
 *   u ━━━━━━━━━━━━━━━━━│━━━r           values are free from their last use to there
 *   v  ━━━━━━━━━━━━━━━━│━━━━━r
 *                      q
 * ```
 *
 * Which operations to replay before q is a minimum cut. An operation on the source's side runs again:
 *
 * ```
 *   source ──what its held values free──▶ op ──its price──▶ sink
 *   op ──∞──▶ operand that is not held into q ──what it takes to hold it until q──▶ the operation that makes it
 * ```
 *
 * Bytes count by how full the steps are across which they are held: (bytes / budget) to a power, whose sum over all steps is
 * what a replay has to make less. The cut does not see the bytes of the replay itself; so several places and prices are
 * drawn, and what the whole sequence has with each decides.
 */
import { Flow } from "../plan/order/flow.ts";
import type { FlatGraph } from "../plan/recompute/flat-graph.ts";
import { profiler } from "../plan/recompute/profile.ts";

/** Capacities are whole numbers, and all that is freed has this one. */
const WHOLE = 1e9;
/** More than any flow. */
const UNLIMITED = 1e15;
/** Edges of one network that may be looked at. */
const CREDIT = 3e6;
/** Places and prices drawn for one replay. */
const SAMPLES = 24;
/** Prices of computing everything once more, as parts of all that is freed: from the first by up to the second. */
const [CHEAPEST, DEARER] = [0.01, 1000];
/** How often earlier operations are left out, and bytes that a replay writes have a price. */
const [LATE_ONLY, PRICED_BYTES] = [0.6, 0.5];
/** What a replay costs at least, as a part of everything: or tiny ones that free little at nearly no cost would be preferred. */
const LEAST_COST = 0.02;

export interface ReplayOptions {
  readonly random: () => number;
  /** How much more a fuller step counts. */
  readonly power: number;
}

/** What a sequence holds at a position: per value whether it is read there or later, and where it is touched last before. */
interface Place {
  readonly position: number;
  readonly held: Uint8Array;
  readonly touched: Int32Array;
}

interface Prices {
  /** Of computing everything once more, as a part of all that is freed. */
  readonly cost: number;
  /** Of bytes that are written, in fullness of a mean step. */
  readonly bytes: number;
  /** Operations before it do not run again. */
  readonly first: number;
}

type Visit = (value: number) => void;

function eachInput({ inputStart, inputs }: FlatGraph, op: number, visit: Visit): void {
  for (let i = inputStart[op] as number; i < (inputStart[op + 1] as number); i++) visit(inputs[i] as number);
}

function eachOutput({ outputStart, outputs }: FlatGraph, op: number, visit: Visit): void {
  for (let o = outputStart[op] as number; o < (outputStart[op + 1] as number); o++) visit(outputs[o] as number);
}

function placeAt(graph: FlatGraph, sequence: readonly number[], position: number): Place {
  const held = new Uint8Array(graph.values);
  const touched = new Int32Array(graph.values).fill(-1);
  for (const value of graph.results) held[value] = 1;
  for (let step = sequence.length - 1; step >= position; step--) {
    const op = sequence[step] as number;
    eachOutput(graph, op, (value) => {
      held[value] = 0;
    });
    eachInput(graph, op, (value) => {
      held[value] = 1;
    });
  }
  for (let step = 0; step < position; step++) {
    const touch: Visit = (value) => {
      touched[value] = step;
    };
    eachInput(graph, sequence[step] as number, touch);
    eachOutput(graph, sequence[step] as number, touch);
  }
  return { position, held, touched };
}

/** Operations to run again at a place, by the cut; `fullness` is summed up to each step. */
function cutAt(graph: FlatGraph, { position, held, touched }: Place, fullness: Float64Array, prices: Prices): number[] {
  const { ops, values, once, producer } = graph;
  const until = fullness[position] as number;
  const across = (value: number): number =>
    (graph.bytes[value] as number) * (until - (fullness[(touched[value] as number) + 1] as number));
  const freed = new Float64Array(ops);
  let all = 0;
  for (let value = 0; value < values; value++) {
    const op = producer[value] as number;
    if (!held[value] || (touched[value] as number) < 0 || once[op] || op < prices.first) continue;
    (freed[op] as number) += across(value);
    all += across(value);
  }
  if (all <= 0) return [];
  const scale = WHOLE / all;
  const ofCost = (prices.cost * WHOLE) / graph.baseCost;
  const ofBytes = (prices.bytes * scale * until) / position;
  const [source, sink] = [ops + values, ops + values + 1];
  const flow = new Flow(ops + values + 2, CREDIT);
  const [reached, operand] = [new Uint8Array(ops), new Uint8Array(values)];
  const stack: number[] = [];
  const reach = (op: number): void => {
    if (!reached[op]) stack.push(op);
    reached[op] = 1;
  };
  for (let op = 0; op < ops; op++) {
    if (freed[op] === 0) continue;
    flow.addEdge(source, op, Math.round((freed[op] as number) * scale));
    reach(op);
  }
  for (let op = stack.pop(); op !== undefined; op = stack.pop()) {
    const asker = op;
    const price = ofCost * (graph.cost[op] as number) + ofBytes * (graph.madeBytes[op] as number);
    flow.addEdge(op, sink, Math.ceil(price + 1));
    eachInput(graph, op, (value) => {
      if (held[value]) return;
      const maker = producer[value] as number;
      flow.addEdge(asker, ops + value, UNLIMITED);
      if (operand[value]) return;
      operand[value] = 1;
      const stays = once[maker] === 1 || maker < prices.first;
      flow.addEdge(ops + value, stays ? sink : maker, Math.round(across(value) * scale));
      if (!stays) reach(maker);
    });
  }
  if (flow.maximum(source, sink) === null) return [];
  const side = flow.reachedFrom(source);
  const again: number[] = [];
  for (let op = 0; op < ops; op++) if (reached[op] && side[op]) again.push(op);
  return again;
}

/** Drops recomputations whose outputs are not read before they are written again. */
function withoutUnread(graph: FlatGraph, sequence: readonly number[]): number[] {
  const seen = new Uint8Array(graph.ops);
  const isFirst = sequence.map((op) => {
    const fresh = !seen[op];
    seen[op] = 1;
    return fresh;
  });
  const needed = new Uint8Array(graph.values);
  for (const value of graph.results) needed[value] = 1;
  const kept: number[] = [];
  for (let step = sequence.length - 1; step >= 0; step--) {
    const op = sequence[step] as number;
    let stays = isFirst[step] as boolean;
    eachOutput(graph, op, (value) => {
      stays ||= needed[value] === 1;
    });
    if (!stays) continue;
    kept.push(op);
    eachOutput(graph, op, (value) => {
      needed[value] = 0;
    });
    eachInput(graph, op, (value) => {
      needed[value] = 1;
    });
  }
  return kept.reverse();
}

/** `sequence` with the replay that lowers the sum of fullness most for its cost; null where none that is drawn does. */
export function replayed(
  graph: FlatGraph,
  budget: number,
  sequence: readonly number[],
  { random, power }: ReplayOptions,
): number[] | null {
  const { profile, bytesAt } = profiler(graph, budget, sequence.length + graph.ops);
  const { cost } = profile(Int32Array.from(sequence), sequence.length);
  const fullness = new Float64Array(sequence.length + 1);
  // operations begun by each step: those are all that may run again there
  const begun = new Int32Array(sequence.length);
  sequence.forEach((op, step) => {
    fullness[step + 1] = (fullness[step] as number) + ((bytesAt[step] as number) / budget) ** (power - 1);
    begun[step] = Math.max(op + 1, step === 0 ? 0 : (begun[step - 1] as number));
  });
  const total = (length: number): number => {
    let sum = 0;
    for (let step = 0; step < length; step++) sum += ((bytesAt[step] as number) / budget) ** power;
    return sum;
  };
  const before = total(sequence.length);
  let [best, most]: [number[] | null, number] = [null, 0];
  for (let sample = 0; sample < SAMPLES; sample++) {
    const position = 1 + Math.floor(random() * (sequence.length - 1));
    const bytes = random() < PRICED_BYTES ? 10 ** (2 * random() - 1) : 0;
    const first = random() < LATE_ONLY ? Math.floor(random() * (begun[position - 1] as number)) : 0;
    const prices = { cost: CHEAPEST * DEARER ** random(), bytes, first };
    const again = cutAt(graph, placeAt(graph, sequence, position), fullness, prices);
    if (again.length === 0) continue;
    const trial = withoutUnread(graph, [...sequence.slice(0, position), ...again, ...sequence.slice(position)]);
    const dearer = profile(Int32Array.from(trial), trial.length).cost - cost;
    const worth = (before - total(trial.length)) / (Math.max(0, dearer) + LEAST_COST * graph.baseCost);
    if (worth > most) [best, most] = [trial, worth];
  }
  return best;
}
