/**
 * @file A plan by relief: starts with every operation once and, as long as a step is above the budget, recomputes values that
 * are held across the fullest step, just before their next use.
 *
 * ```
 *   bytes   budget ┄┄┄┄┄▟█▙┄┄┄┄        v is held across the peak and read at r. Recomputing it before r frees its
 *                  ▁▂▄▆█████▆▄▂▁       bytes from its last use to there, and holds its operands longer, or
 *                   v━━━━━━━━━r        recomputes those too.
 * ```
 *
 * Of all values the one is taken that frees bytes above the budget at the least cost per byte. How much one frees is
 * first estimated (its bytes times the steps above the budget that it is held across, from one pass over the sequence)
 * and tried for the most promising; the fullest step is brought below the budget before the next pass. In the end needless
 * repetitions are removed. Where eviction in order of time gets stuck (graphs in which values are read soon, and
 * recomputation needs many others), this finds a plan.
 */
import type { FlatGraph } from "./flat-graph.ts";
import { isLate, type Meter, unlimited } from "./meter.ts";
import { Timeline } from "./timeline.ts";

/** Values to try for one move: on small graphs, and at least on large ones, where trying is dear. */
const TRIALS = 24;
const FEWEST_TRIALS = 4;
/** Operations up to which all `TRIALS` are made; beyond, as many fewer as steps are more. */
const SMALL = 300;
/** How often so many are tried on large graphs before long recomputations are. */
const BATCHES = 8;
/** Operations to recompute for one value, at most: at first, and where nothing else helps. */
const LONGEST = 12;
export const LONGER = 60;

export interface ReliefOptions {
  readonly meter?: Meter;
  /** Where to start from; every operation once unless told. */
  readonly start?: readonly number[];
  /** Operations to recompute for one value where nothing else helps, at most; default: 60. */
  readonly longer?: number;
}

interface Trial {
  readonly value: number;
  readonly before: number;
  /** Operations that it may add. */
  readonly most: number;
}

interface Relief {
  readonly line: Timeline;
  /** Steps above the budget up to and including each, from the latest pass; by step. */
  full: Int32Array;
  readonly givenUp: Set<number>;
  readonly meter: Meter;
  readonly longer: number;
}

function spent({ line, meter }: Relief): boolean {
  return line.work > meter.left || isLate(meter.deadline);
}

/** The step with the most bytes above the budget that is not yet given up, or -1. Counts the steps above it on the way. */
function fullest(relief: Relief): number {
  const { line, givenUp } = relief;
  if (relief.full.length < line.op.length) relief.full = new Int32Array(line.op.length);
  const { full } = relief;
  let [worst, most, count] = [-1, line.budget, 0];
  for (let step = 0; step !== line.end; step = line.next[step] as number) {
    const bytes = line.bytesAt(step);
    if (bytes > line.budget) count++;
    full[step] = count;
    if (bytes > most && !givenUp.has(step)) [worst, most] = [step, bytes];
  }
  full[line.end] = count;
  line.work += line.end + line.repetitions.length;
  return worst;
}

interface Held {
  readonly value: number;
  /** Estimated cost for each byte above the budget that it frees. */
  readonly price: number;
}

/** Bytes of `value` at the steps above the budget from its last touch before `step` to there. */
function share({ line, full }: Relief, value: number, step: number): number {
  const across = (full[step] as number) - (full[line.touchBefore(value, step)] as number);
  return (line.graph.bytes[value] as number) * Math.max(0, across);
}

/** Estimated price of recomputing `value` before `read`: its absent operands are held longer, or recomputed too. */
function priceOf(relief: Relief, value: number, read: number): number {
  const { line } = relief;
  const { graph } = line;
  const op = graph.producer[value] as number;
  const freed = Math.max(1, share(relief, value, read));
  let [net, cost] = [freed, graph.cost[op] as number];
  for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++) {
    const input = graph.inputs[i] as number;
    if (line.heldInto(input, read)) continue;
    const maker = graph.producer[input] as number;
    net -= share(relief, input, read);
    cost += graph.once[maker] ? Number.POSITIVE_INFINITY : (graph.cost[maker] as number);
  }
  const longer = net > 0 ? (graph.cost[op] as number) / net : Number.POSITIVE_INFINITY;
  return Math.min(longer, cost / freed);
}

/** What is held across a step without being touched there, the most promising first. */
function heldAcross(relief: Relief, step: number): readonly Held[] {
  const { line } = relief;
  const { graph } = line;
  const candidates: Held[] = [];
  for (let value = 0; value < graph.values; value++) {
    const op = graph.producer[value] as number;
    if (op < 0 || graph.once[op] || graph.bytes[value] === 0) continue;
    const read = line.readAfter(value, step);
    if (read >= 0) candidates.push({ value, price: priceOf(relief, value, read) });
  }
  line.work += 4 * graph.values + 20 * candidates.length;
  return candidates.sort((p, q) => p.price - q.price || p.value - q.value);
}

/** Recomputes `value` before `before`, and up to `most` operations also its absent operands, and theirs. */
function apply(line: Timeline, { value, before, most }: Trial): number[] {
  const { graph } = line;
  const added: number[] = [];
  const visit = (v: number, step: number): void => {
    const op = graph.producer[v] as number;
    const absent: number[] = [];
    for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++) {
      const input = graph.inputs[i] as number;
      const maker = graph.producer[input] as number;
      if (!graph.once[maker] && !line.heldInto(input, step)) absent.push(input);
    }
    const at = line.insert(op, step);
    added.push(at);
    for (const input of absent) {
      // an operand of two of them is there by now
      if (added.length < most && line.op[line.touchBefore(input, at)] !== graph.producer[input]) visit(input, at);
    }
  };
  visit(value, before);
  return added;
}

/** The trial of some values that frees the most for its cost, or null if none frees anything. */
function bestOf(line: Timeline, step: number, values: readonly Held[], lengths: readonly number[]): Trial | null {
  const { cost, over } = line;
  let [best, least]: [Trial | null, number] = [null, Number.POSITIVE_INFINITY];
  for (const { value } of values) {
    const before = line.readAfter(value, step);
    if (before < 0) continue;
    let longest = 0;
    for (const most of lengths) {
      const trial = { value, before, most };
      const added = apply(line, trial);
      const freed = over - line.over;
      const price = (line.cost - cost) / freed;
      if (freed > 0 && price < least) [best, least] = [trial, price];
      const { length } = added;
      for (const inserted of added.reverse()) line.remove(inserted);
      if (length < most || length === longest) break;
      longest = length;
    }
  }
  return best;
}

/** A value to recompute: the best of the first few, of the next if none of them helps, at last with long recomputations. */
function bestTrial(relief: Relief, step: number, values: readonly Held[]): Trial | null {
  const { line } = relief;
  const trials = Math.max(FEWEST_TRIALS, Math.min(TRIALS, Math.round((TRIALS * SMALL) / line.end)));
  const most = trials < TRIALS ? BATCHES * trials : values.length;
  for (let from = 0; from < Math.min(most, values.length); from += trials) {
    const trial = bestOf(line, step, values.slice(from, from + trials), [1, LONGEST]);
    if (trial) return trial;
    if (spent(relief)) return null;
  }
  return bestOf(line, step, values.slice(0, 3 * trials), [relief.longer]);
}

/** Brings a step below the budget, or gives it up. */
function relieveStep(relief: Relief, step: number): void {
  const { line } = relief;
  let values = heldAcross(relief, step);
  while (line.bytesAt(step) > line.budget && !spent(relief)) {
    const trial = bestTrial(relief, step, values);
    if (!trial) {
      relief.givenUp.add(step);
      return;
    }
    apply(line, trial);
    values = values.filter(({ value }) => value !== trial.value);
  }
}

/** Removes repetitions that the budget does not need, the most expensive first. */
function removeNeedless(relief: Relief): void {
  const { line } = relief;
  const costOf = (step: number): number => line.graph.cost[line.op[step] as number] as number;
  for (const step of [...line.repetitions].sort((p, q) => costOf(q) - costOf(p) || p - q)) {
    if (spent(relief)) return;
    const op = line.op[step] as number;
    const before = line.next[step] as number;
    line.remove(step);
    if (line.over > 0) line.insert(op, before);
  }
}

/** The sequence that relief ends with; it may still be above the budget. */
export function relieve(graph: FlatGraph, budget: number, options: ReliefOptions = {}): number[] {
  const { meter = unlimited(), start, longer = LONGER } = options;
  const line = new Timeline(graph, budget, start ?? Array.from({ length: graph.ops }, (_, op) => op));
  const relief: Relief = { line, full: new Int32Array(0), givenUp: new Set(), meter, longer };
  while (line.over > 0 && !spent(relief)) {
    const step = fullest(relief);
    if (step < 0) break;
    relieveStep(relief, step);
  }
  if (line.over === 0) removeNeedless(relief);
  meter.left -= line.work;
  return line.sequence();
}
