/**
 * @file `tidemark/node`: the target `native`, threads for `wasm`, a cache of plans on disk and the solver of the strategy `optimal`,
 * which importing this makes known to `compile`, and long runs from the host, with snapshots on disk, that survive being killed.
 *
 * ```ts
 * const { gradients } = await longRun({ step, steps: 1e6, state, loss, memory: "64MB", disk: {}, directory: "run" });
 * ```
 */

import { providePlanStore } from "../compiler/plan-cache.ts";
import { provideSolver } from "../compiler/solver.ts";
import { provideNative } from "../runtime/choose-target.ts";
import { provideWorkers } from "../runtime/workers.ts";
import { findSolver } from "./highs.ts";
import { nativeTarget } from "./native/target.ts";
import { withProcess } from "./plan-elsewhere.ts";
import { systemPlanStore } from "./plan-store.ts";
import { nodeWorkers } from "./workers.ts";

export type { Progress } from "./execution.ts";
export { type LongRunCounts, type LongRunResult, longRun } from "./long-run.ts";
export type { DiskOptions, LongRunOptions } from "./long-run-options.ts";
export type { FileCosts } from "./measure.ts";
export { type SimulateOptions, type SimulateResult, simulate } from "./simulate.ts";
export { type TrainOptions, type TrainResult, train } from "./train.ts";
export { loadFile, saveFile } from "./weights.ts";

provideNative(nativeTarget);
provideWorkers(nodeWorkers);
providePlanStore(withProcess(systemPlanStore()));
provideSolver(findSolver);
