/** @file All strategies: those of the compiler, and `optimal`, which asks a solver of integer programs. */
import { TidemarkError } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import type { Answer } from "../plan/recompute/auto.ts";
import { flatGraph } from "../plan/recompute/flat-graph.ts";
import type { RecomputeProblem } from "../plan/recompute/problem.ts";
import { answerOf, auto, PLAIN_STRATEGIES, recomputeAll } from "../plan/recompute/strategies.ts";
import type { RecomputeOptions, Strategy, StrategyName } from "../plan/recompute/strategy.ts";
import { solveOptimal } from "./optimal.ts";
import { planGraph } from "./plan-graph.ts";

/** Of the time for a plan by the solver, what a plan without it may take. */
const KNOWN = 0.25;
/** Where effort is counted: its least, nodes of the solver's search tree, and the seconds after which it ends all the same. */
const [LEAST_EFFORT, NODES, MOST_SECONDS] = [1, 1000, 10];

/** What to say where a strategy needs a solver and there is none. */
export function noSolver(): TidemarkError {
  return new TidemarkError("InvalidArgument", 'strategy "optimal": there is no solver of integer programs', {
    help: [
      'in Node: npm install highs, and import "tidemark/node", which finds it',
      "elsewhere: { solver: highsSolver(await highs()) }, with highsSolver from tidemark/plan",
      'or take the strategy "auto", which needs none',
    ].join("; "),
  });
}

/**
 * A plan without the solver first: for small graphs the search over states is often complete, which is a proof. Otherwise
 * the solver looks for cheaper ones, or shows that there are none; where it ends before, the plan stays.
 */
function optimalPlan(problem: RecomputeProblem, budget: number, options: RecomputeOptions): Answer {
  const { solver, seconds = MOST_SECONDS, effort, start } = options;
  if (!solver) throw noSolver();
  const began = performance.now();
  const limit = effort === undefined ? { seconds: seconds * KNOWN } : { effort: Math.max(effort, LEAST_EFFORT) };
  const unsolved = planGraph(problem, budget, { start, ...limit });
  if (unsolved.proven) return unsolved;
  const deadline = (effort === undefined ? began : performance.now()) + seconds * 1000;
  const nodes = effort === undefined ? undefined : NODES;
  const cost = unsolved.feasible ? unsolved.cost : Number.POSITIVE_INFINITY;
  const limits = { deadline, gap: 1e-6, known: cost, nodes };
  const solved = solveOptimal(flatGraph(problem), { budget: Math.floor(budget), solver }, limits);
  const answer = solved.sequence ? answerOf(problem, budget, solved.sequence) : unsolved;
  const boundCost = Math.max(unsolved.boundCost, solved.bound);
  return {
    ...answer,
    boundCost: answer.feasible ? Math.min(boundCost, answer.cost) : boundCost,
    proven: solved.proven,
  };
}

export const optimal: Strategy = {
  name: "optimal",
  aims: true,
  solver: "required",
  rules: () => [auto, recomputeAll],
  plan: optimalPlan,
};

export const STRATEGIES: readonly Strategy[] = [...PLAIN_STRATEGIES.filter(({ isFree }) => !isFree), optimal, auto];

export const STRATEGY_NAMES: readonly StrategyName[] = STRATEGIES.map(({ name }) => name);

/** The strategy of that name; `auto` unless told. */
export function strategyNamed(name: StrategyName = auto.name): Strategy {
  const strategy = STRATEGIES.find((one) => one.name === name);
  invariant(strategy !== undefined, () => `there is no strategy ${name}`);
  return strategy;
}
