/** @file Plans with their numbers, and what they are made with. */
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { planMs } from "../plan/cost/model.ts";
import type { Assembler, PlannedProgram } from "./assembler.ts";
import type { PlannerHost } from "./host.ts";
import type { LoopSupport } from "./loops.ts";
import type { TargetCosts } from "./node-costs.ts";
import type { PlanRequest } from "./request.ts";

/** What makes plans, for all forms of a program. */
export interface PlanTools {
  readonly assembler: Assembler;
  readonly costs: TargetCosts;
  readonly request: PlanRequest;
  readonly host: PlannerHost;
  /** Null where the program has no loops and no branches. */
  readonly loops: LoopSupport | null;
}

/** A real plan with its numbers. */
export function candidateOf(
  result: PlannedProgram,
  strategy: string,
  { costs, request }: PlanTools,
): Candidate<PlannedProgram> {
  const predictedMs = planMs(result.plan, costs);
  request.progress?.({ strategy, arenaBytes: result.plan.height, predictedMs });
  return { strategy, arenaBytes: result.plan.height, predictedMs, result };
}
