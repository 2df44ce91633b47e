/**
 * @file The planner to use when nothing is known: everything here, in an order that gives a plan early and spends the
 * rest of the time where it helps. Nothing to do if all fits; a proof if one operation alone does not. Then look-ahead
 * with a portfolio of scorings, a search around the best, annealing of the sequences, and with a solver: exact answers
 * and bounds for small graphs, windows of large ones.
 *
 * With `effort` the amount of work is counted in steps of the searches and the plan depends on its arguments alone;
 * otherwise the clock ends it.
 */
import { at } from "../../base/invariant.ts";
import { anneal } from "./anneal.ts";
import { dropBound } from "./drop-bound.ts";
import { type FlatGraph, flatGraph } from "./flat-graph.ts";
import { type IntegerSolver, solveOptimal } from "./optimal.ts";
import { type Found, portfolio, tournament } from "./portfolio.ts";
import { baseSequence, type RecomputeProblem, type Sequence } from "./problem.ts";
import { simulate } from "./simulate.ts";
import { improveWindows } from "./windows.ts";

export interface AutoOptions {
  /** Time for all of it. */
  readonly seconds?: number;
  /** Instead of time: 1 is about a second for a hundred operations. */
  readonly effort?: number;
  readonly solver?: IntegerSolver | undefined;
}

export interface Answer {
  readonly feasible: boolean;
  /** The plan; where none fits, the one with the least bytes that was met. */
  readonly sequence: Sequence;
  readonly peakBytes: number;
  readonly cost: number;
  readonly baseCost: number;
  /** No plan with this order of first executions costs less. */
  readonly boundCost: number;
  /** No plan that computes a value at most once between two first executions costs less (or, if infeasible, fits). */
  readonly proven: boolean;
  readonly strategy: string;
}

/** Largest graphs that are solved exactly, and those whose relaxation is. */
const EXACT_OPS = 130;

/** Bytes that the operation with the largest operands needs; no order and no recomputation goes lower. */
export function leastBytes(problem: RecomputeProblem): number {
  return Math.max(
    0,
    ...problem.ops.map(({ inputs, outputs, scratchBytes = 0 }, k) => {
      const operands = [...inputs, ...outputs].reduce((sum, v) => sum + at(problem.bytes, v), 0);
      return operands + scratchBytes + at(problem.pinnedBytes, k);
    }),
  );
}

interface Search {
  readonly problem: RecomputeProblem;
  readonly graph: FlatGraph;
  readonly budget: number;
  readonly began: number;
  readonly options: AutoOptions;
  best: Sequence | null;
  cost: number;
  strategy: string;
  bound: number;
  proven: boolean;
}

/** The time by the clock at which `part` of the whole is spent; a little is kept for checking. */
function until(search: Search, part: number): number {
  if (search.options.effort !== undefined) return Number.POSITIVE_INFINITY;
  return search.began + (search.options.seconds ?? 10) * 970 * part;
}

function offer(search: Search, sequence: Sequence | null, strategy: string): void {
  if (sequence === null) return;
  const { cost, peakBytes, violations } = simulate(search.problem, sequence);
  if (violations.length > 0 || peakBytes > search.budget || cost >= search.cost) return;
  search.best = sequence;
  search.cost = cost;
  search.strategy = strategy;
}

export function auto(problem: RecomputeProblem, budget: number, options: AutoOptions = {}): Answer {
  const graph = flatGraph(problem);
  const base = baseSequence(problem);
  const search: Search = {
    problem,
    graph,
    budget: Math.floor(budget),
    began: performance.now(),
    options,
    best: null,
    cost: Number.POSITIVE_INFINITY,
    strategy: "none",
    bound: graph.baseCost,
    proven: false,
  };
  offer(search, base, "store-all");
  if (search.best) search.proven = true;
  else search.bound = leastBytes(problem) > budget ? Number.POSITIVE_INFINITY : dropBound(graph, search.budget);
  if (search.bound === Number.POSITIVE_INFINITY) search.proven = true;
  else if (!search.best) improve(search);
  const sequence = search.best ?? base;
  const { cost, peakBytes } = simulate(problem, sequence);
  const feasible = search.best !== null;
  return {
    feasible,
    sequence,
    peakBytes,
    cost,
    baseCost: graph.baseCost,
    boundCost: feasible ? Math.min(search.bound, cost) : search.bound,
    proven: search.proven || (feasible && search.cost <= search.bound * (1 + 1e-9)),
    strategy: search.strategy,
  };
}

function improve(search: Search): void {
  const { graph, budget } = search;
  const found = [...portfolio(graph, budget, until(search, 0.3))];
  // annealing can start above the budget: from a plan for a little more, if there is none
  for (let more = 1.05; found.length === 0 && more < 2 && performance.now() < until(search, 0.5); more *= 1.1) {
    found.push(...portfolio(graph, Math.floor(budget * more), until(search, 0.5)));
  }
  offer(search, found[0]?.sequence ?? null, "look-ahead");
  const exact = search.options.solver !== undefined && graph.ops <= EXACT_OPS;
  if (exact) {
    annealFrom(search, found, 0.25);
    solve(search, 0.85);
    if (search.proven) return;
  }
  const rounds = (search.options.effort ?? Number.POSITIVE_INFINITY) * 300 * Math.min(1, 300 / graph.ops);
  const deadline = until(search, 0.42);
  const around = search.best ? tournament(graph, budget, found.slice(0, 6), { seed: 1, rounds, deadline }) : found;
  offer(search, around[0]?.sequence ?? null, "look-ahead");
  annealFrom(search, around, exact ? 1 : 0.85);
  windows(search);
  annealFrom(search, around, 1);
}

/** Rounds of annealing from the best and from the runners-up, hot and less hot, until `part` of the time is spent. */
function annealFrom(search: Search, starts: readonly Found[], part: number): void {
  const { graph, budget, options } = search;
  const deadline = until(search, part);
  const moves = options.effort === undefined ? 2e6 : options.effort * 5e4;
  const rounds = options.effort === undefined ? 1000 : 3;
  const left = deadline - performance.now();
  for (let round = 0; round < rounds && performance.now() < deadline - 5; round++) {
    const other = starts[(round + 1) % Math.max(1, starts.length)]?.sequence;
    const start = (round % 3 === 2 ? other : search.best) ?? other ?? baseSequence(search.problem);
    const slice = options.effort === undefined ? performance.now() + Math.max(300, left / 4) : deadline;
    const hot = round % 2 === 0 ? 0.3 : 1;
    const result = anneal(graph, budget, start, {
      seed: round,
      moves,
      deadline: Math.min(slice, deadline),
      hot,
      cold: 0.01,
    });
    offer(search, result, "anneal");
  }
}

function solve(search: Search, part: number): void {
  const { graph, budget, options, cost } = search;
  if (!options.solver) return;
  const deadline = options.effort === undefined ? until(search, part) : performance.now() + options.effort * 1e4;
  const answer = solveOptimal(graph, budget, options.solver, { deadline, gap: 1e-6, known: cost });
  offer(search, answer.sequence, "optimal");
  search.bound = Math.max(search.bound, answer.bound);
  search.proven = answer.proven;
}

function windows(search: Search): void {
  const { graph, budget, options, best } = search;
  if (!options.solver || !best || options.effort !== undefined || graph.ops <= EXACT_OPS) return;
  const deadline = until(search, 0.92);
  const improved = improveWindows(graph, budget, best, options.solver, { stages: 60, seconds: 0.7, deadline });
  if (improved !== best) offer(search, improved, "windows");
}
