/**
 * @file A plan for a graph alone, with all searches. Where no plan is found with the given order of first executions and the
 * order is free, another one is taken:
 *
 * ```
 *   given order ──no plan──▶ relief in stages ──still above──▶ replays of many values ──▶ made cheaper in the new order
 * ```
 */
import { at, invariant } from "../base/invariant.ts";
import { type Answer, auto } from "../plan/recompute/auto.ts";
import { Allowance, type Limits, type Meter, meterOf } from "../plan/recompute/meter.ts";
import type { RecomputeProblem, Sequence } from "../plan/recompute/problem.ts";
import { isImpossible } from "../plan/recompute/search.ts";
import { simulate } from "../plan/recompute/simulate.ts";
import type { IntegerSolver } from "../plan/recompute/solver.ts";
import { graphPortfolio } from "./portfolio.ts";
import { hasFreeOrder, type Numbered } from "./reorder.ts";
import { lowerByReplays } from "./replays.ts";
import { relieveInStages } from "./stages.ts";
import { MOST_BITS } from "./state-bounds.ts";

export interface GraphOptions extends Limits {
  readonly solver?: IntegerSolver | undefined;
  /** A sequence to start from, within the budget or not. */
  readonly start?: Sequence | undefined;
  /** Where no plan is found with the given order of first executions, whether another may do; default: "given". */
  readonly order?: "given" | "any" | undefined;
}

/** More work for an effort of 1 where states can be searched: how hard such a graph is has little to do with its size. */
const STATE_WORK = 2e8;
/** Of the work that is left without a plan: for relief in stages, on graphs of more operations, and for both searches. */
const [STAGES, LARGE_STAGES, LARGE, LOWERED] = [0.15, 0.6, 1000, 0.9];

function graphMeter(ops: number, limits: Limits): Meter {
  const meter = meterOf(ops, limits);
  if (ops <= MOST_BITS) meter.left += (limits.effort ?? 0) * STATE_WORK;
  return meter;
}

/** Relief in stages has the cheaper plan where it has one, replays get lower. */
function lowest(problem: RecomputeProblem, budget: number, allowance: Allowance): Numbered {
  const share = LOWERED * (problem.ops.length > LARGE ? LARGE_STAGES : STAGES);
  const order = "any";
  const staged = allowance.spend(share, (meter) => relieveInStages(problem, budget, { meter, order }));
  if (simulate(staged.problem, staged.sequence).peakBytes <= budget) return staged;
  return allowance.spend(LOWERED - share, (meter) => lowerByReplays(problem, budget, { meter, order }));
}

/** A plan with another order of first executions, made cheaper like any other with the work that is left; null if none. */
function inAnotherOrder(problem: RecomputeProblem, budget: number, options: GraphOptions, meter: Meter): Answer | null {
  const allowance = new Allowance(meter);
  const { problem: reordered, sequence: start, given } = lowest(problem, budget, allowance);
  const { peakBytes, cost } = simulate(reordered, start);
  if (peakBytes > budget) return null;
  const portfolio = graphPortfolio(options);
  const { effort } = options;
  const answer = allowance.spend(1, (part) => auto(reordered, budget, { effort, start, portfolio, meter: part }));
  invariant(answer.cost <= cost, () => `a plan of cost ${cost} became one of ${answer.cost}`);
  return { ...answer, sequence: answer.sequence.map((op) => at(given, op)) };
}

/**
 * Plans a graph of operations within a budget, with every strategy, for as long as it is allowed to.
 *
 * @example
 * import { readGraph } from "tidemark/plan";
 * import { planGraph } from "tidemark/remat";
 *
 * const nodes = [0, 1].map((id) => ({ id, cost_cpu: 1, cost_ram: 1 }));
 * const problem = readGraph(JSON.stringify({ graph: {}, nodes, links: [{ source: 0, target: 1 }] }));
 * const { feasible, sequence } = planGraph(problem, 2);
 * console.log(feasible, sequence); // → true [0, 1]
 */
export function planGraph(problem: RecomputeProblem, budget: number, options: GraphOptions = {}): Answer {
  const { solver, order, effort, start } = options;
  const meter = graphMeter(problem.ops.length, options);
  const endsEarly = order === "any" && hasFreeOrder(problem) && !isImpossible(problem, budget);
  const portfolio = graphPortfolio({ solver, endsEarly });
  const answer = auto(problem, budget, { effort, start, portfolio, meter });
  if (answer.feasible || !endsEarly) return answer;
  // what was proven about the given order does not hold for another
  const unproven = { ...answer, boundCost: answer.baseCost, proven: false };
  return inAnotherOrder(problem, budget, options, meter) ?? unproven;
}
