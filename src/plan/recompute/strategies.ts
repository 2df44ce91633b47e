/**
 * @file The ways to plan recomputation that need no solver. Rules with a free number try several values of it and take the
 * cheapest plan that fits.
 */
import { TidemarkError } from "../../base/errors.ts";
import { invariant } from "../../base/invariant.ts";
import { type Answer, auto as autoPlan } from "./auto.ts";
import { callPlans } from "./calls.ts";
import { chainPlan } from "./chain-of-graph.ts";
import { dropBound } from "./drop-bound.ts";
import { flatGraph } from "./flat-graph.ts";
import { runScorings, varied } from "./look-ahead-runs.ts";
import { Allowance, meterOf } from "./meter.ts";
import { baseCost, baseSequence, leastBytes, type RecomputeProblem, type Sequence } from "./problem.ts";
import { minCutPlans, segmentPlans, selectivePlans } from "./rules.ts";
import { cheapest, recomputeAll as recomputeAllPlan, squareRoot } from "./segments.ts";
import { simulate } from "./simulate.ts";
import type { RecomputeOptions, Strategy, StrategyName } from "./strategy.ts";

/** A sequence, or none. */
type Rule = (problem: RecomputeProblem, budget: number, options: RecomputeOptions) => Sequence | null;

/** The answer that a sequence is, or where it is null, storing everything; its bound is one that takes no search. */
export function answerOf(problem: RecomputeProblem, budget: number, sequence: Sequence | null): Answer {
  const tried = sequence ?? baseSequence(problem);
  const { cost, peakBytes } = simulate(problem, tried);
  const feasible = peakBytes <= budget;
  const boundCost = feasible && sequence === null ? cost : dropBound(flatGraph(problem), Math.floor(budget));
  const impossible = boundCost === Number.POSITIVE_INFINITY || leastBytes(problem) > budget;
  const proven = feasible ? cost <= boundCost * (1 + 1e-12) : impossible;
  return { feasible, sequence: tried, peakBytes, cost, baseCost: baseCost(problem), boundCost, proven, strategy: "" };
}

const planBy =
  (rule: Rule): Strategy["plan"] =>
  (problem, budget, options) =>
    answerOf(problem, budget, rule(problem, budget, options));

/** A rule that takes the cheapest of some plans. */
const ruleOf = (plans: NonNullable<Strategy["plans"]>): Pick<Strategy, "plan" | "plans"> => ({
  plans,
  plan: planBy((problem, budget, { segments }) => cheapest(problem, budget, plans(problem, segments))),
});

/** Of the work of the strategy `look-ahead`, the shares of all scorings and of variations of the best. */
const [SCORED, VARIED] = [1, 0.1];

function lookAheadPlan(problem: RecomputeProblem, budget: number, options: RecomputeOptions): Sequence | null {
  const graph = flatGraph(problem);
  const allowance = new Allowance(meterOf(graph.ops, options));
  const [best] = allowance.spend(SCORED, (meter) => runScorings(graph, budget, { meter }));
  if (!best) return null;
  if (options.effort === 0) return best.sequence;
  return allowance.spend(VARIED, (meter) => varied(graph, budget, best, { seed: 0, meter })).sequence;
}

export const storeAll: Strategy = {
  name: "store-all",
  aims: false,
  recomputesNothing: true,
  plan: planBy(baseSequence),
};

export const recomputeAll: Strategy = {
  name: "recompute-all",
  aims: false,
  plan: planBy(recomputeAllPlan),
  look: { colour: 4, mark: "triangle", line: "none" },
};

export const everyK: Strategy = {
  name: "every-k",
  aims: false,
  loops: { schedule: "periodic", isSingle: false, isAlways: false },
  ...ruleOf(segmentPlans),
  look: { colour: 4, mark: "cross", line: "none" },
};

export const sqrt: Strategy = {
  name: "sqrt",
  aims: false,
  loops: { schedule: "periodic", isSingle: true, isAlways: false },
  plan: planBy((problem, _, { segments }) => squareRoot(problem, segments)),
  look: { colour: 2, mark: "ring", line: "none" },
};

export const selective: Strategy = {
  name: "selective",
  aims: false,
  ...ruleOf(selectivePlans),
  look: { colour: 2, mark: "square", line: "thin" },
};

export const minCut: Strategy = {
  name: "min-cut",
  aims: false,
  ...ruleOf(minCutPlans),
  look: { colour: 3, mark: "diamond", line: "dashed" },
};

export const calls: Strategy = {
  name: "calls",
  aims: false,
  ...ruleOf(callPlans),
  look: { colour: 5, mark: "square", line: "dashed" },
};

export const chain: Strategy = { name: "chain", aims: true, plan: planBy(chainPlan) };

export const lookAhead: Strategy = {
  name: "look-ahead",
  aims: true,
  plan: planBy(lookAheadPlan),
  look: { colour: 6, mark: "triangle", line: "thin" },
};

export const binomial: Strategy = {
  name: "binomial",
  aims: true,
  loops: { schedule: "binomial", isSingle: false, isAlways: true },
  loopsOnly: true,
  // without a number of bytes, loops keep everything: the fewest states would take the square of the time
  plan: planBy(baseSequence),
};

export const auto: Strategy = {
  name: "auto",
  aims: true,
  solver: "optional",
  isFree: true,
  // in small programs the bytes that a planner counts differ from those of a real plan by more than plans differ from
  // each other; `sqrt` is one plan, `every-k` are many
  rules: (ops) => [sqrt, everyK, lookAhead, minCut, selective].filter((rule) => ops <= (rule === sqrt ? 1000 : 200)),
  plan: autoPlan,
  look: { colour: 1, mark: "circle", line: "bold" },
};

/**
 * All that need no solver.
 *
 * @example
 * import { PLAIN_STRATEGIES } from "tidemark/plan";
 *
 * console.log(PLAIN_STRATEGIES.map(({ name }) => name).slice(0, 3)); // → [store-all, recompute-all, every-k]
 */
export const PLAIN_STRATEGIES: readonly Strategy[] = [
  storeAll,
  recomputeAll,
  everyK,
  sqrt,
  selective,
  minCut,
  calls,
  chain,
  lookAhead,
  binomial,
  auto,
];

/** What to say where a strategy needs a solver and there is none. */
export function noSolver(): TidemarkError {
  return new TidemarkError("InvalidArgument", 'strategy "optimal": there is no solver of integer programs', {
    help: [
      'in Node: npm install highs, and import "tidemark/node", which finds it',
      "elsewhere: { solver: highsSolver(await highs()) }, with highsSolver from tidemark/remat",
      'or take the strategy "auto", which needs none',
    ].join("; "),
  });
}

/** Its plans come with a solver (`ExactPlanner`). */
export const optimal: Strategy = {
  name: "optimal",
  aims: true,
  solver: "required",
  rules: () => [auto, recomputeAll],
  plan: () => {
    throw noSolver();
  },
};

export const STRATEGIES: readonly Strategy[] = [...PLAIN_STRATEGIES.filter(({ isFree }) => !isFree), optimal, auto];

/** The strategy of that name; `auto` unless told. */
export function strategyNamed(name: StrategyName = auto.name): Strategy {
  const strategy = STRATEGIES.find((one) => one.name === name);
  invariant(strategy !== undefined, () => `there is no strategy ${name}`);
  return strategy;
}

/** The strategy of that name for a graph without loops; throws where there is none. */
export function graphStrategy(name: string, all: readonly Strategy[] = PLAIN_STRATEGIES): Strategy {
  const strategy = all.find((one) => one.name === name);
  if (strategy && !strategy.loopsOnly) return strategy;
  const summary = strategy
    ? `the strategy ${name} is about loops, and a graph of operations has none`
    : `there is no recomputation strategy ${name}`;
  const names = all.filter(({ loopsOnly }) => !loopsOnly).map((one) => one.name);
  throw new TidemarkError("InvalidArgument", summary, { help: `strategies are ${names.join(", ")}` });
}

/**
 * Plans `problem` within `budget` bytes by a strategy, or by the strategy of that name.
 *
 * @throws InvalidArgument for a name that is no strategy for graphs, and for "optimal" without a solver
 *
 * @example
 * import { planRecompute, readGraph } from "tidemark/plan";
 *
 * const nodes = [0, 1].map((id) => ({ id, cost_cpu: 1, cost_ram: 1 }));
 * const problem = readGraph(JSON.stringify({ graph: {}, nodes, links: [{ source: 0, target: 1 }] }));
 * const { feasible, sequence } = planRecompute(problem, 2);
 * console.log(feasible, sequence); // → true [0, 1]
 */
export function planRecompute(
  problem: RecomputeProblem,
  budget: number,
  strategy: Strategy | StrategyName = auto,
  options: RecomputeOptions = {},
): Answer {
  const { plan, name, isFree } = typeof strategy === "string" ? graphStrategy(strategy) : strategy;
  // nothing to recompute
  if (problem.ops.length === 0) return { ...answerOf(problem, budget, baseSequence(problem)), strategy: name };
  const answer = plan(problem, budget, options);
  // a free strategy says which of its searches found the plan
  return isFree ? answer : { ...answer, strategy: name };
}
