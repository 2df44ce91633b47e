/** @file The figures of a placed program. They are data: a worker that plans sends them (compile-worker.ts). */
import { TidemarkError } from "../base/errors.ts";
import { isTransfer } from "../codegen/placed.ts";
import type { ChosenProgram } from "../compiler/assemble.ts";
import type { PlanRequest } from "../compiler/request.ts";
import { graphCost } from "../ops/control.ts";
import type { Plan } from "../plan/problem.ts";
import { validate } from "../plan/validate.ts";
import type { PlanInfo } from "./plan.ts";

/** What a placed program says of itself, in numbers and words alone. @internal */
export type PlacedFigures = Omit<PlanInfo, "graph" | "plan" | "target" | "targetNote" | "paths" | "traceMs">;

/** Throws when `validate` finds the plan broken. @internal */
export function placedFigures(placed: ChosenProgram, request: Pick<PlanRequest, "validate">): PlacedFigures {
  const { plan, graph } = placed;
  if (request.validate) requireValidPlan(plan);
  return {
    arenaBytes: plan.height,
    storeAllArenaBytes: placed.storeAll.arenaBytes,
    strategy: placed.strategy,
    predictedMs: placed.predictedMs,
    slowdown: placed.predictedMs / placed.storeAll.predictedMs,
    gap: placed.proof?.gap ?? null,
    proven: placed.proof?.proven ?? false,
    lowerBoundBytes: plan.bound.bytes,
    persistentBytes: plan.problem.buffers.reduce((sum, b) => sum + (b.kind === "persistent" ? b.bytes : 0), 0),
    flops: graphCost(graph).flops,
    kernelCalls: placed.kernels.filter((step) => !isTransfer(step)).length,
    planMs: placed.planMs,
    planCached: placed.planCached,
  };
}

function requireValidPlan(plan: Plan): void {
  const broken = validate(plan.program, plan);
  if (broken.length === 0) return;
  throw new TidemarkError("InvalidPlan", broken.map((b) => `${b.rule}: ${b.message}`).join("\n  "), {
    help: "this is an internal error of the planner: report it with the text of the traced graph",
  });
}
