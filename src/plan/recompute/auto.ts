/**
 * @file The planner to use when nothing is known about a graph: nothing to do if all fits; a proof if one operation alone
 * does not; else a portfolio of searches (search.ts), in the compiler that of members.ts.
 */
import { dropBound } from "./drop-bound.ts";
import { flatGraph } from "./flat-graph.ts";
import { COMPILER_PORTFOLIO } from "./members.ts";
import { meterOf } from "./meter.ts";
import { baseSequence, type RecomputeProblem, type Sequence } from "./problem.ts";
import { isImpossible, type Member, offer, type PlanSearch, runPortfolio, type SearchOptions } from "./search.ts";
import { simulate } from "./simulate.ts";

export interface AutoOptions extends SearchOptions {
  /** The searches that are tried; default: those of the compiler. @internal */
  readonly portfolio?: readonly Member[] | undefined;
}

/** What a strategy of recomputation found. */
export interface Answer {
  readonly feasible: boolean;
  /** The plan; where none fits, the operations in their order. */
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

export function auto(problem: RecomputeProblem, budget: number, options: AutoOptions = {}): Answer {
  const { start, portfolio = COMPILER_PORTFOLIO } = options;
  const search = begin(problem, budget, options);
  const base = baseSequence(problem);
  offer(search, base, "store-all");
  if (search.best) search.isProven = true;
  else
    search.bound = isImpossible(problem, search.budget)
      ? Number.POSITIVE_INFINITY
      : dropBound(search.graph, search.budget);
  if (search.bound === Number.POSITIVE_INFINITY) search.isProven = true;
  offer(search, start ?? null, "start");
  runPortfolio(search, portfolio, meterOf(search.graph.ops, options));
  return answerOf(search, base);
}

function begin(problem: RecomputeProblem, budget: number, options: SearchOptions): PlanSearch {
  const graph = flatGraph(problem);
  return {
    problem,
    graph,
    budget: Math.floor(budget),
    options,
    best: null,
    cost: Number.POSITIVE_INFINITY,
    by: "none",
    bound: graph.baseCost,
    isProven: false,
    isEnded: false,
    runs: [],
    others: [],
  };
}

function answerOf({ problem, graph, best, bound, by, isProven }: PlanSearch, base: Sequence): Answer {
  const sequence = best ?? base;
  const { cost, peakBytes } = simulate(problem, sequence);
  const feasible = best !== null;
  return {
    feasible,
    sequence,
    peakBytes,
    cost,
    baseCost: graph.baseCost,
    boundCost: feasible ? Math.min(bound, cost) : bound,
    proven: isProven || (feasible && cost <= bound * (1 + 1e-9)),
    strategy: by,
  };
}
