/** @file The figures of a placed program. They are data: a worker that plans sends them (compile-worker.ts). */
import { isTransfer } from "../codegen/placed.ts";
import type { ChosenProgram } from "../compiler/stored.ts";
import { graphCost } from "../ops/control.ts";
import type { Plan } from "../plan/problem.ts";
import { roundedReports } from "../plan/rounded.ts";
import type { PlanInfo } from "./plan-info.ts";

/** What a placed program says of itself, in numbers and words alone. @internal */
export type PlacedFigures = Omit<PlanInfo, "graph" | "plan" | "target" | "targetNote" | "paths" | "traceMs">;

/** Bytes that stay between runs, in the arena or beside it. */
const persistentBytes = ({ problem }: Plan, inArena: boolean): number =>
  problem.buffers.reduce(
    (sum, { kind, space, bytes }) => sum + (kind === "persistent" && (space === 0) === inArena ? bytes : 0),
    0,
  );

/** @internal */
export function placedFigures(placed: ChosenProgram): PlacedFigures {
  const { plan, graph } = placed;
  return {
    arenaBytes: plan.height,
    storeAllArenaBytes: placed.storeAll.arenaBytes,
    spillBytes: plan.others[0]?.height ?? 0,
    strategy: placed.strategy,
    predictedMs: placed.predictedMs,
    slowdown: placed.predictedMs / placed.storeAll.predictedMs,
    gap: placed.proof?.gap ?? null,
    proven: placed.proof?.proven ?? false,
    lowerBoundBytes: plan.bound.bytes,
    persistentBytes: persistentBytes(plan, true),
    spillPersistentBytes: persistentBytes(plan, false),
    lossy: roundedReports(graph),
    flops: graphCost(graph).flops,
    kernelCalls: placed.kernels.filter((step) => !isTransfer(step)).length,
    planMs: placed.planMs,
    planCached: placed.planCached,
  };
}
