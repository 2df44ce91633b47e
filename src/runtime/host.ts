/**
 * @file What running programs needs of the system: targets that only some systems have, and what there is one of for all
 * programs. It is passed down as an argument; no module keeps such things in variables of its own.
 */
import type { HostTargetName } from "./choose-target.ts";
import type { TargetProvider } from "./device.ts";
import { EngineHeap } from "./engine-heap.ts";
import { pageTask, type TaskStarter } from "./task-worker.ts";
import { pageWorkers, WorkerPool } from "./workers.ts";

export interface RuntimeHost {
  /** Targets beside `wasm`, by name. */
  readonly targets: Readonly<Partial<Record<HostTargetName, TargetProvider>>>;
  readonly workers: WorkerPool;
  /** Workers that plan and generate code beside the thread that runs. */
  readonly startTask: TaskStarter;
  /** Kept small while programs are made. */
  readonly heap: EngineHeap;
}

/** What every engine has by itself. */
export const plainRuntime = (): RuntimeHost => ({
  targets: {},
  workers: new WorkerPool(pageWorkers),
  startTask: pageTask,
  heap: new EngineHeap(),
});
