/**
 * @file Every way to plan recomputation, by name, with what others need to know about it. Rules with a free number try a
 * ladder of them and take the cheapest that fits.
 */
import { TidemarkError } from "../../base/errors.ts";
import { type Answer, type AutoOptions, auto, leastBytes } from "./auto.ts";
import { calls } from "./calls.ts";
import { chainPlan } from "./chain-of-graph.ts";
import { dropBound } from "./drop-bound.ts";
import { flatGraph } from "./flat-graph.ts";
import { allowanceOf } from "./meter.ts";
import { solveOptimal } from "./optimal.ts";
import { perturb, portfolio } from "./portfolio.ts";
import { baseCost, baseSequence, type RecomputeProblem, type Sequence } from "./problem.ts";
import { minCutPlans, segmentPlans, selectivePlans } from "./rules.ts";
import { cheapest, recomputeAll, squareRoot } from "./segments.ts";
import { simulate } from "./simulate.ts";

export interface Strategy {
  /** Makes plans for a number of bytes; the others are rules that do not know it. */
  readonly aims: boolean;
  /** Whether it asks a solver of integer programs: has to have one, or is better with one. */
  readonly solver?: "required" | "optional";
  /** Is about loops, of which graphs of operations have none: what they hold is decided in loops/strategies.ts. */
  readonly loopsOnly?: true;
  /** Strategies whose plans are this one's too, by the number of operations. */
  readonly rules?: (ops: number) => readonly StrategyName[];
  readonly plan: (problem: RecomputeProblem, budget: number, options: AutoOptions) => Answer;
}

export type StrategyName =
  | "store-all"
  | "recompute-all"
  | "every-k"
  | "sqrt"
  | "selective"
  | "min-cut"
  | "calls"
  | "chain"
  | "look-ahead"
  | "binomial"
  | "optimal"
  | "auto";

type Rule = (problem: RecomputeProblem, budget: number, options: AutoOptions) => Sequence | null;

/** A strategy that finds a sequence, or none; its bound is what can be had without a search. */
function byRule(rule: Rule, aims = false): Strategy {
  return { aims, plan: (problem, budget, options) => answerOf(problem, budget, rule(problem, budget, options)) };
}

function answerOf(problem: RecomputeProblem, budget: number, sequence: Sequence | null): Answer {
  const tried = sequence ?? baseSequence(problem);
  const { cost, peakBytes } = simulate(problem, tried);
  const feasible = peakBytes <= budget;
  const boundCost = feasible && sequence === null ? cost : dropBound(flatGraph(problem), Math.floor(budget));
  const impossible = boundCost === Number.POSITIVE_INFINITY || leastBytes(problem) > budget;
  const proven = feasible ? cost <= boundCost * (1 + 1e-12) : impossible;
  return { feasible, sequence: tried, peakBytes, cost, baseCost: baseCost(problem), boundCost, proven, strategy: "" };
}

function lookAheadPlan(problem: RecomputeProblem, budget: number, options: AutoOptions): Sequence | null {
  const { seconds = 10, effort } = options;
  const graph = flatGraph(problem);
  const deadline = effort === undefined ? performance.now() + seconds * 1000 : Number.POSITIVE_INFINITY;
  const meter = { left: allowanceOf(graph.ops, effort) };
  const [best] = portfolio(graph, budget, deadline, undefined, meter);
  if (!best) return null;
  const rounds = effort === undefined ? 3000 : 100 * effort;
  return perturb(graph, budget, best, { seed: 0, rounds, deadline, meter }).sequence;
}

/** Of the time for a plan by the solver, what a plan without it may take. */
const KNOWN = 0.25;
/** Where effort is counted: its least, nodes of the solver's search tree, and the seconds after which it ends all the same. */
const [LEAST_EFFORT, NODES, MOST_SECONDS] = [1, 1000, 10];

/**
 * A plan without the solver first: for small graphs the search over states is often complete, which is a proof. Otherwise
 * the solver looks for cheaper ones, or shows that there are none; where it ends before, the plan stays.
 */
function optimal(problem: RecomputeProblem, budget: number, options: AutoOptions): Answer {
  const { solver, seconds = MOST_SECONDS, effort, start } = options;
  if (!solver) throw noSolver();
  const began = performance.now();
  const limit = effort === undefined ? { seconds: seconds * KNOWN } : { effort: Math.max(effort, LEAST_EFFORT) };
  const known = auto(problem, budget, { start, ...limit });
  if (known.proven) return known;
  const deadline = (effort === undefined ? began : performance.now()) + seconds * 1000;
  const nodes = effort === undefined ? undefined : NODES;
  const cost = known.feasible ? known.cost : Number.POSITIVE_INFINITY;
  const limits = { deadline, gap: 1e-6, known: cost, nodes };
  const found = solveOptimal(flatGraph(problem), Math.floor(budget), solver, limits);
  const answer = found.sequence ? answerOf(problem, budget, found.sequence) : known;
  const boundCost = Math.max(known.boundCost, found.bound);
  return { ...answer, boundCost: answer.feasible ? Math.min(boundCost, answer.cost) : boundCost, proven: found.proven };
}

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

export const STRATEGY: Readonly<Record<StrategyName, Strategy>> = {
  "store-all": byRule(baseSequence),
  "recompute-all": byRule(recomputeAll),
  "every-k": byRule((problem, budget, { level }) => cheapest(problem, budget, segmentPlans(problem, level))),
  sqrt: byRule((problem, _, { level }) => squareRoot(problem, level)),
  selective: byRule((problem, budget) => cheapest(problem, budget, selectivePlans(problem))),
  "min-cut": byRule((problem, budget) => cheapest(problem, budget, minCutPlans(problem))),
  calls: byRule(calls),
  chain: byRule(chainPlan, true),
  "look-ahead": byRule(lookAheadPlan, true),
  // without a number of bytes, loops keep everything: the fewest states would take the square of the time
  binomial: { ...byRule(baseSequence, true), loopsOnly: true },
  optimal: { aims: true, solver: "required", rules: () => ["auto", "recompute-all"], plan: optimal },
  auto: {
    aims: true,
    solver: "optional",
    // in small programs the bytes that a planner counts differ from those of a real plan by more than plans differ from
    // each other; `sqrt` is one plan, `every-k` are many
    rules: (ops) =>
      (["sqrt", "every-k", "look-ahead", "min-cut", "selective"] as const).filter(
        (name) => ops <= (name === "sqrt" ? 1000 : 200),
      ),
    plan: auto,
  },
};

export const STRATEGIES = Object.keys(STRATEGY) as readonly StrategyName[];

/** Those that have something to say about graphs without loops. */
export const GRAPH_STRATEGIES = STRATEGIES.filter((name) => !STRATEGY[name].loopsOnly);

/** The strategy of that name for a graph without loops; throws where there is none. */
export function strategyOf(name: string): StrategyName {
  const found = GRAPH_STRATEGIES.find((known) => known === name);
  if (found) return found;
  const isKnown = STRATEGIES.some((known) => known === name);
  const summary = isKnown
    ? `the strategy ${name} is about loops, and a graph of operations has none`
    : `there is no recomputation strategy ${name}`;
  throw new TidemarkError("InvalidArgument", summary, { help: `strategies are ${GRAPH_STRATEGIES.join(", ")}` });
}

/** Plans `problem` within `budget` bytes by the strategy of that name. */
export function planRecompute(
  problem: RecomputeProblem,
  budget: number,
  strategy: StrategyName = "auto",
  options: AutoOptions = {},
): Answer {
  const { plan } = STRATEGY[strategyOf(strategy)];
  // nothing to compute again
  if (problem.ops.length === 0) return { ...answerOf(problem, budget, baseSequence(problem)), strategy };
  const answer = plan(problem, budget, options);
  return strategy === "auto" ? answer : { ...answer, strategy };
}
