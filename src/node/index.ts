/**
 * @file `tidemark/node`: long runs from the host, with snapshots on disk, that survive being killed.
 *
 * ```ts
 * const { gradients } = await longRun({ step, steps: 1e6, state, loss, memory: "64MB", disk: {}, directory: "run" });
 * ```
 */
export type { Progress } from "./execution.ts";
export { type LongRunCounts, type LongRunResult, longRun } from "./long-run.ts";
export type { DiskOptions, LongRunOptions } from "./long-run-options.ts";
export type { FileCosts } from "./measure.ts";
export { type TrainOptions, type TrainResult, train } from "./train.ts";
