/** @file The strategy `optimal`, which asks a solver of integer programs. */
import type { Answer } from "../plan/recompute/auto.ts";
import { flatGraph } from "../plan/recompute/flat-graph.ts";
import type { RecomputeProblem } from "../plan/recompute/problem.ts";
import type { ExactPlanner, IntegerSolver } from "../plan/recompute/solver.ts";
import { answerOf, optimal as facts, noSolver, STRATEGIES } from "../plan/recompute/strategies.ts";
import type { RecomputeOptions, Strategy } from "../plan/recompute/strategy.ts";
import { solveOptimal } from "./optimal.ts";
import { planGraph } from "./plan-graph.ts";
import { SolvedFamily } from "./solved-family.ts";

/** Of the time for a plan by the solver, what a plan without it may take. */
const KNOWN = 0.25;
/** Where effort is counted: its least, nodes of the solver's search tree, and the seconds after which it ends all the same. */
const [LEAST_EFFORT, NODES, MOST_SECONDS] = [1, 1000, 10];

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

/** The strategy with its plans. */
export const optimal: Strategy = { ...facts, plan: optimalPlan };

/**
 * All strategies, each with its plans.
 *
 * @example
 * import { ALL_STRATEGIES } from "tidemark/remat";
 *
 * console.log(ALL_STRATEGIES.some(({ name }) => name === "optimal")); // → true
 */
export const ALL_STRATEGIES: readonly Strategy[] = STRATEGIES.map((one) => (one === facts ? optimal : one));

/**
 * The plans that a solver makes of a program.
 *
 * @example
 * import { exactPlanner } from "tidemark/remat";
 *
 * // `solve` asks a solver of integer programs; that of HiGHS is `highsSolver`.
 * const planner = exactPlanner(() => ({ status: "infeasible", objective: 0, bound: 0, value: () => 0 }));
 * console.log(typeof planner); // → object
 */
export function exactPlanner(solve: IntegerSolver): ExactPlanner {
  return {
    solve,
    family: (problem, base, realise, options) =>
      new SolvedFamily(problem, base, realise, { ...options, strategy: optimal, solver: solve }),
  };
}
