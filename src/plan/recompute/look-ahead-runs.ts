/**
 * @file Many runs of the look-ahead planner: a portfolio of scorings, then a search around the best ones that changes the
 * worth of a few values at a time and keeps plans that are not worse. Which scoring wins differs by graph and budget: long
 * recomputations favour a distant next use, tight budgets large values.
 */
import type { FlatGraph } from "./flat-graph.ts";
import { lookAhead, type Scoring } from "./look-ahead.ts";
import { Allowance, isSpent, type Meter, unlimited } from "./meter.ts";
import { seededRandom } from "./random.ts";

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

/** A plan of look-ahead, with the scoring that leads to it. */
export interface LookAheadRun {
  readonly sequence: readonly number[];
  readonly cost: number;
  readonly scoring: Scoring;
}

function costOf(graph: FlatGraph, sequence: readonly number[]): number {
  let cost = 0;
  for (const op of sequence) cost += graph.cost[op] as number;
  return cost;
}

/** Of the work for all scorings, the most that one of them may take: one that does not end is no loss. */
const SHARE = 0.5;

export interface ScoringOptions {
  readonly meter?: Meter;
  /** Factors of the worth of values. */
  readonly worth?: Float64Array | undefined;
}

/** The plans of all scorings, the cheapest first. At least one is tried, the others as long as work is left. */
export function runScorings(
  graph: FlatGraph,
  budget: number,
  { meter = unlimited(), worth }: ScoringOptions = {},
): readonly LookAheadRun[] {
  const runs: LookAheadRun[] = [];
  const allowance = new Allowance(meter);
  for (const plain of SCORINGS) {
    if (plain !== SCORINGS[0] && isSpent(meter)) break;
    const scoring = worth ? { ...plain, factor: worth } : plain;
    const sequence = allowance.spend(SHARE, (part) => lookAhead(graph, budget, scoring, { meter: part }));
    if (sequence) runs.push({ sequence, cost: costOf(graph, sequence), scoring });
  }
  return runs.sort((p, q) => p.cost - q.cost);
}

export interface VariationOptions {
  readonly seed: number;
  readonly meter: Meter;
}

/** The cheapest of several runs around `start`, each with the worth of some values changed by a factor; at least one is made. */
export function varied(
  graph: FlatGraph,
  budget: number,
  start: LookAheadRun,
  { seed, meter }: VariationOptions,
): LookAheadRun {
  const random = seededRandom(seed);
  let best = start;
  do {
    const factor = best.scoring.factor?.slice() ?? new Float64Array(graph.values).fill(1);
    // mostly a few values, at times many
    const share = random() < 0.7 ? 3 / graph.values : random() * 0.3;
    const strength = random() < 0.5 ? 1 : 4;
    for (let v = 0; v < factor.length; v++) {
      if (random() < share) factor[v] = Math.exp((random() - 0.5) * 2 * strength);
    }
    const scoring = { ...start.scoring, factor };
    const sequence = lookAhead(graph, budget, scoring, { mostCost: best.cost, meter });
    if (sequence) best = { sequence, cost: costOf(graph, sequence), scoring };
  } while (!isSpent(meter));
  return best;
}

/** Variations of several starts: of all for a while, then of the better half for as long, down to one. */
export function tournament(
  graph: FlatGraph,
  budget: number,
  starts: readonly LookAheadRun[],
  { seed, meter }: VariationOptions,
): readonly LookAheadRun[] {
  const field = [...starts];
  const rounds = Math.max(1, Math.ceil(Math.log2(Math.max(1, field.length))) + 1);
  const allowance = new Allowance(meter);
  for (let round = 0, left = field.length; round < rounds; round++, left = Math.max(1, left >> 1)) {
    for (let k = 0; k < left; k++) {
      if (isSpent(meter)) break;
      const options = { seed: seed + 31 * round + k };
      field[k] = allowance.spend(1 / (rounds * left), (part) =>
        varied(graph, budget, field[k] as LookAheadRun, { ...options, meter: part }),
      );
    }
    field.sort((p, q) => p.cost - q.cost);
  }
  return field;
}
