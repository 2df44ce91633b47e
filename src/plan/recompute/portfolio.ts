/**
 * @file Many runs of the look-ahead planner: a portfolio of scorings, then a search around the best ones that changes the
 * worth of a few values at a time and keeps what is not worse. Which scoring wins differs by graph and budget: long
 * recomputations favour a distant next use, tight budgets large values.
 */
import { dice } from "./anneal.ts";
import type { FlatGraph } from "./flat-graph.ts";
import { lookAhead, type Scoring } from "./look-ahead.ts";
import { type Meter, metered, unmetered } from "./meter.ts";

const EXPONENTS: readonly (readonly [number, number])[] = [
  [0.5, 1],
  [1, 1],
  [0.25, 1],
  [0.5, 0.5],
  [2, 1],
  [1, 0.5],
  [1, 2],
  [0, 1],
];

export const SCORINGS: readonly Scoring[] = EXPONENTS.flatMap(([a, b]) => [
  { a, b, clock: "ops" as const },
  { a, b, clock: "time" as const },
]);

export interface Found {
  readonly sequence: readonly number[];
  readonly cost: number;
  readonly scoring: Scoring;
}

function costOf(graph: FlatGraph, sequence: readonly number[]): number {
  let cost = 0;
  for (const op of sequence) cost += graph.cost[op] as number;
  return cost;
}

/** Of the work for all scorings, the most that one of them may take: one that does not find its way is no loss. */
const SHARE = 0.5;

/** What each scoring finds, the cheapest first. At least one is tried, the others until `deadline` or the work is done. */
export function portfolio(
  graph: FlatGraph,
  budget: number,
  deadline = Number.POSITIVE_INFINITY,
  factor?: Float64Array,
  meter: Meter = unmetered(),
): readonly Found[] {
  const found: Found[] = [];
  const most = meter.left * SHARE;
  for (const plain of SCORINGS) {
    if (plain !== SCORINGS[0] && (performance.now() > deadline || meter.left <= 0)) break;
    const scoring = factor ? { ...plain, factor } : plain;
    const sequence = metered(meter, most, (part) => lookAhead(graph, budget, scoring, undefined, part));
    if (sequence) found.push({ sequence, cost: costOf(graph, sequence), scoring });
  }
  return found.sort((p, q) => p.cost - q.cost);
}

export interface PerturbOptions {
  readonly seed: number;
  readonly rounds: number;
  readonly deadline: number;
  readonly meter?: Meter;
}

/** The cheapest of `rounds` runs around `start`, each with the worth of some values changed by a factor. */
export function perturb(graph: FlatGraph, budget: number, start: Found, options: PerturbOptions): Found {
  const { seed, rounds, deadline, meter = unmetered() } = options;
  const random = dice(seed);
  let best = start;
  for (let round = 0; round < rounds && performance.now() < deadline && meter.left > 0; round++) {
    const factor = best.scoring.factor?.slice() ?? new Float64Array(graph.values).fill(1);
    // mostly a few values, at times many
    const share = random() < 0.7 ? 3 / graph.values : random() * 0.3;
    const strength = random() < 0.5 ? 1 : 4;
    for (let v = 0; v < factor.length; v++) {
      if (random() < share) factor[v] = Math.exp((random() - 0.5) * 2 * strength);
    }
    const scoring = { ...start.scoring, factor };
    const sequence = lookAhead(graph, budget, scoring, best.cost, meter);
    if (sequence) best = { sequence, cost: costOf(graph, sequence), scoring };
  }
  return best;
}

/** Several starts at once: all for a while, then the better half for as long, down to one. */
export function tournament(
  graph: FlatGraph,
  budget: number,
  starts: readonly Found[],
  options: PerturbOptions,
): Found[] {
  const field = [...starts];
  const levels = Math.max(1, Math.ceil(Math.log2(Math.max(1, field.length))) + 1);
  const began = performance.now();
  let left = field.length;
  for (let level = 0; level < levels; level++) {
    for (let k = 0; k < left; k++) {
      const until = began + ((options.deadline - began) * (level + (k + 1) / left)) / levels;
      const deadline = Number.isFinite(options.deadline) ? until : options.deadline;
      const rounds = options.rounds / (levels * left);
      const seed = options.seed + 31 * level + k;
      field[k] = perturb(graph, budget, field[k] as Found, { ...options, seed, rounds, deadline });
    }
    field.sort((p, q) => p.cost - q.cost);
    left = Math.max(1, left >> 1);
  }
  return field;
}
