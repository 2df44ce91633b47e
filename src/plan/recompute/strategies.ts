/** @file Every way to plan recomputation, by name. Rules with a free number try a ladder of them and take the cheapest that fits. */
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

type Rule = (problem: RecomputeProblem, budget: number, options: AutoOptions) => Sequence | null;

const RULES: Readonly<Record<string, Rule>> = {
  "store-all": baseSequence,
  "recompute-all": recomputeAll,
  "every-k": (problem, budget, { level }) => cheapest(problem, budget, segmentPlans(problem, level)),
  sqrt: (problem, _, { level }) => squareRoot(problem, level),
  selective: (problem, budget) => cheapest(problem, budget, selectivePlans(problem)),
  "min-cut": (problem, budget) => cheapest(problem, budget, minCutPlans(problem)),
  calls,
  chain: chainPlan,
  "look-ahead": (problem, budget, { seconds = 10, effort }) => {
    const graph = flatGraph(problem);
    const deadline = effort === undefined ? performance.now() + seconds * 1000 : Number.POSITIVE_INFINITY;
    const meter = { left: allowanceOf(graph.ops, effort) };
    const [best] = portfolio(graph, budget, deadline, undefined, meter);
    if (!best) return null;
    const rounds = effort === undefined ? 3000 : 100 * effort;
    return perturb(graph, budget, best, { seed: 0, rounds, deadline, meter }).sequence;
  },
};

/** All names that `planRecompute` takes. */
export const STRATEGIES: readonly string[] = [...Object.keys(RULES), "optimal", "auto"];

function answerOf(problem: RecomputeProblem, budget: number, sequence: Sequence | null, strategy: string): Answer {
  const tried = sequence ?? baseSequence(problem);
  const { cost, peakBytes } = simulate(problem, tried);
  const feasible = peakBytes <= budget;
  const boundCost = feasible && sequence === null ? cost : dropBound(flatGraph(problem), Math.floor(budget));
  const impossible = boundCost === Number.POSITIVE_INFINITY || leastBytes(problem) > budget;
  const proven = feasible ? cost <= boundCost * (1 + 1e-12) : impossible;
  return { feasible, sequence: tried, peakBytes, cost, baseCost: baseCost(problem), boundCost, proven, strategy };
}

function optimal(problem: RecomputeProblem, budget: number, options: AutoOptions): Answer {
  if (!options.solver) {
    throw new TidemarkError("InvalidArgument", "strategy optimal: there is no solver of integer programs", {
      help: "install the optional package highs, or take the strategy auto",
    });
  }
  const base = answerOf(problem, budget, baseSequence(problem), "optimal");
  if (base.proven) return base;
  const deadline = performance.now() + (options.seconds ?? 10) * 1000;
  const known = Number.POSITIVE_INFINITY;
  const found = solveOptimal(flatGraph(problem), Math.floor(budget), options.solver, { deadline, gap: 1e-6, known });
  const answer = answerOf(problem, budget, found.sequence, "optimal");
  return { ...answer, boundCost: Math.max(answer.boundCost, found.bound), proven: found.proven };
}

/** Plans `problem` within `budget` bytes by the strategy of that name. */
export function planRecompute(
  problem: RecomputeProblem,
  budget: number,
  strategy = "auto",
  options: AutoOptions = {},
): Answer {
  if (strategy === "auto") return auto(problem, budget, options);
  if (strategy === "optimal") return optimal(problem, budget, options);
  const rule = RULES[strategy];
  if (!rule) {
    throw new TidemarkError("InvalidArgument", `there is no recomputation strategy ${strategy}`, {
      help: `strategies are ${STRATEGIES.join(", ")}`,
    });
  }
  return answerOf(problem, budget, rule(problem, budget, options), strategy);
}
