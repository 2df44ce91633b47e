/**
 * @file A search for the cheapest sequence within a budget, as a state that members of a portfolio improve one after the
 * other:
 *
 * ```
 *   member       when                     share of the work    run
 *   relief       nothing to start from    0.4                  offers a plan, which later members may start from
 *   variations   look-ahead has plans     0.1                  offers better ones
 * ```
 *
 * Each gets at most its share of all work, and no more than is left. What is left over is not spent.
 */
import { at } from "../../base/invariant.ts";
import type { FlatGraph } from "./flat-graph.ts";
import type { LookAheadRun } from "./look-ahead-runs.ts";
import { Allowance, type Limits, type Meter } from "./meter.ts";
import { leastBytes, type RecomputeProblem, type Sequence } from "./problem.ts";
import { simulate } from "./simulate.ts";

export interface SearchOptions extends Limits {
  /** A sequence to start from, within the budget or not. */
  readonly start?: Sequence | undefined;
  /** Factors of what values are worth to look-ahead: those below 1 are dropped sooner. */
  readonly worth?: Float64Array | undefined;
}

export interface PlanSearch {
  readonly problem: RecomputeProblem;
  readonly graph: FlatGraph;
  readonly budget: number;
  readonly options: SearchOptions;
  /** The cheapest plan so far and its cost: infinite where there is none. */
  best: Sequence | null;
  cost: number;
  /** The member that found it. */
  by: string;
  /** No plan with this order of first executions costs less. */
  bound: number;
  /** Nothing costs less than the best plan, or there is no plan. */
  isProven: boolean;
  /** No member after this one is run. */
  isEnded: boolean;
  /** Plans of look-ahead, the cheapest first. */
  runs: readonly LookAheadRun[];
  /** Plans of other members, within the budget or not. */
  readonly others: Sequence[];
}

export interface Member {
  readonly name: string;
  /** Whether it has something to do. */
  readonly when: (search: PlanSearch) => boolean;
  /** The most of all work that it may take; 0 for members that have little to do and count nothing. */
  readonly share: number;
  readonly run: (search: PlanSearch, meter: Meter) => void;
  /** Only makes plans cheaper, so it is left out where no effort is made. */
  readonly improves?: true;
}

/** Runs the members that have something to do, in their order, until one of them has proven its answer. */
export function runPortfolio(search: PlanSearch, members: readonly Member[], meter: Meter): void {
  const allowance = new Allowance(meter);
  const hasEffort = search.options.effort !== 0;
  for (const { when, share, run, improves } of members) {
    if (search.isProven || search.isEnded) return;
    if ((improves && !hasEffort) || !when(search)) continue;
    allowance.spend(share, (part) => run(search, part));
  }
}

/** Takes a plan if it is the cheapest within the budget. */
export function offer(search: PlanSearch, sequence: Sequence | null, by: string): void {
  if (sequence === null) return;
  const { cost, peakBytes, violations } = simulate(search.problem, sequence);
  if (violations.length > 0 || peakBytes > search.budget || cost >= search.cost) return;
  search.best = sequence;
  search.cost = cost;
  search.by = by;
}

/** Whether one operation or the results alone are too much, in whatever order. */
export function isImpossible(problem: RecomputeProblem, budget: number): boolean {
  const results = problem.results.reduce((sum, value) => sum + at(problem.bytes, value), 0);
  return Math.max(leastBytes(problem), results) > budget;
}
