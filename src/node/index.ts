/**
 * @file `tidemark/node`: the target `native`, threads for `wasm`, a cache of plans on disk and the solver of the strategy `optimal`,
 * which importing this installs for `compile` (api/host.ts), and long runs from the host, with snapshots on disk, that survive being killed.
 *
 * ```ts
 * const { gradients } = await longRun({ step, steps: 1e6, state, loss, memory: "64MB", disk: {}, directory: "run" });
 * ```
 */

import { installPart } from "../api/host.ts";
import { nodeHost } from "./host.ts";

export { type BuildOptions, type BuiltProgram, build, type WriteOptions, writeProgram } from "./build.ts";
export { type CudaTargetOptions, cuda } from "./cuda/public.ts";
export type { Progress } from "./execution.ts";
export { type LongRunCounts, type LongRunResult, longRun } from "./long-run.ts";
export type { DiskOptions, LongRunOptions } from "./long-run-options.ts";
export type { FileCosts } from "./measure.ts";
export { type ReadModelOptions, readModel } from "./models.ts";
export { mpi, type Processes } from "./mpi/public.ts";
export { type SimulateOptions, type SimulateResult, simulate } from "./simulate.ts";
export { train } from "./train.ts";
export type {
  ParallelTrainOptions,
  ParallelTrainResult,
  TrainDevice,
  TrainOptions,
  TrainResult,
} from "./train-options.ts";
export { loadFile, type SaveFileOptions, saveFile } from "./weights.ts";

installPart("host", nodeHost);
