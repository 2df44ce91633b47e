/**
 * @file Plans whose collectives go on while other steps run (plan/overlap.ts), within the budget that the plan was made for: those of
 * bodies of loops and branches within an iteration, then those outside. The placement of the reordered program decides: where it is above
 * the budget, less is put off, and where nothing is gained by prediction, collectives stay what they were, done when their step is.
 */
import type { Node } from "../ir/graph.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { planMs, stepMs } from "../plan/cost/model.ts";
import { hasBlockingExchanges } from "../plan/exchange-step.ts";
import { type OverlapOptions, type OverlapTimes, overlapExchanges } from "../plan/overlap.ts";
import { planUnlimited } from "../plan/plan.ts";
import type { Plan } from "../plan/problem.ts";
import type { Program } from "../plan/program.ts";
import { networkMs } from "../target/work.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import { boundTo } from "./offload.ts";

/** How often a program is put in another order because it did not fit, or kept an operand for longer. */
const ATTEMPTS = 6;

export type OverlappedPlan = (
  candidate: Candidate<PlannedProgram>,
  budgetBytes: number,
  tools: PlanTools,
) => Candidate<PlannedProgram>;

/** The plan with its collectives in flight, or as it is where that is not faster. */
export const overlappedPlan: OverlappedPlan = (candidate, budgetBytes, tools) => {
  const { result, strategy, proof } = candidate;
  const { plan } = result;
  if (!tools.assembler.target.overlapsCollectives || plan.program.spaceOf) return candidate;
  for (const bodies of bodiesFor(result, budgetBytes, tools)) {
    const steps = plan.program.steps.map((step) => bodies.get(step.node)?.step ?? step);
    const flying = overlapped({ ...plan.program, steps }, plan, budgetBytes, tools);
    if (!flying) continue;
    const controls = new Map([...result.controls, ...bodies]);
    const made = candidateOf(boundTo({ ...result, controls }, flying, tools), strategy, tools);
    if (made.predictedMs < candidate.predictedMs) return { ...made, ...(proof ? { proof } : {}) };
  }
  return candidate;
};

/** Loops and branches with collectives in flight in them: with all the room that is left, with none, and none of them. */
function* bodiesFor({ plan }: PlannedProgram, budgetBytes: number, tools: PlanTools) {
  if (plan.program.steps.some(({ bodies }) => bodies?.some(hasBlockingExchanges))) {
    for (const room of [budgetBytes - plan.height, 0]) {
      yield tools.assembler.overlapped(plan, (program, blocking) => {
        const flying = overlapped(program, blocking, blocking.height + room, tools);
        return flying && planMs(flying, tools.costs) < planMs(blocking, tools.costs) ? flying : null;
      });
    }
  }
  yield new Map();
}

/** A program in an order with collectives in flight within so many bytes; null where there are none in it, or nothing fits. */
function overlapped(program: Program, blocking: Plan, most: number, { costs }: PlanTools): Plan | null {
  const times: OverlapTimes = {
    stepMs: (step) => stepMs(blocking, step, costs),
    networkMs: ({ node }) => networkMs(costs.workOf(node), costs.rates),
  };
  const inOrder = (early: boolean): Plan | null => within(program, blocking, most, { times, early });
  return inOrder(true) ?? inOrder(false);
}

function within(
  program: Program,
  blocking: Plan,
  most: number,
  options: Pick<OverlapOptions, "times" | "early">,
): Plan | null {
  const apart = new Set<Node>();
  let limitBytes = most;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const next = overlapExchanges(program, { ...options, limitBytes, apart });
    const flying = next ?? (isChanged(program, blocking) ? program : null);
    if (!flying) return null;
    const plan = planUnlimited(flying, { keepOrder: true });
    const kept = keptApart(plan);
    for (const node of kept) apart.add(node);
    if (kept.length > 0) continue;
    if (plan.height <= most) return plan;
    if (!next) return null;
    limitBytes = Math.min(limitBytes, blocking.height) - (plan.height - most);
  }
  return null;
}

/** Whether a step has another body than it had. */
const isChanged = ({ steps }: Program, { program }: Plan): boolean =>
  steps.some((step, i) => step.bodies?.some((body, n) => body !== program.steps[i]?.bodies?.[n]));

/** Collectives that were to be written over what they read, and got storage of their own: what they read must then stay. */
function keptApart({ program, inPlace }: Plan): readonly Node[] {
  return program.steps.flatMap(({ node, exchange, reads, writes, ...step }) => {
    if (exchange?.kind !== "start" || step.inPlace.length === 0) return [];
    const over = new Set(writes.map((value) => inPlace.get(value)));
    return reads.every((value) => over.has(value)) ? [] : [node];
  });
}
