/**
 * @file Plans whose collectives go on while other steps run (plan/overlap.ts), within the budget that the plan was made for. The
 * placement of the reordered program decides: where it is above the budget, less is put off, and where nothing is gained by
 * prediction, collectives stay what they were, done when their step is.
 */
import type { Node } from "../ir/graph.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { stepMs } from "../plan/cost/model.ts";
import { type OverlapTimes, overlapExchanges } from "../plan/overlap.ts";
import { planUnlimited } from "../plan/plan.ts";
import type { Plan } from "../plan/problem.ts";
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
  const { assembler, costs } = tools;
  const { result, strategy, proof } = candidate;
  if (!assembler.target.overlapsCollectives) return candidate;
  const { plan } = result;
  const times: OverlapTimes = {
    stepMs: (step) => stepMs(plan, step, costs),
    networkMs: ({ node }) => networkMs(costs.workOf(node), costs.rates),
  };
  const apart = new Set<Node>();
  let limitBytes = budgetBytes;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const program = overlapExchanges(plan.program, { times, limitBytes, apart });
    if (!program) return candidate;
    const flying = planUnlimited(program, { keepOrder: true });
    const kept = keptApart(flying);
    for (const node of kept) apart.add(node);
    if (kept.length > 0) continue;
    if (flying.height > budgetBytes) {
      limitBytes = Math.min(limitBytes, plan.height) - (flying.height - budgetBytes);
      continue;
    }
    const overlapped = candidateOf(boundTo(result, flying, tools), strategy, tools);
    return overlapped.predictedMs < candidate.predictedMs ? { ...overlapped, ...(proof ? { proof } : {}) } : candidate;
  }
  return candidate;
};

/** Collectives that were to be written over what they read, and got storage of their own: what they read must then stay. */
function keptApart({ program, inPlace }: Plan): readonly Node[] {
  return program.steps.flatMap(({ node, exchange, reads, writes, ...step }) => {
    if (exchange?.kind !== "start" || step.inPlace.length === 0) return [];
    const over = new Set(writes.map((value) => inPlace.get(value)));
    return reads.every((value) => over.has(value)) ? [] : [node];
  });
}
