/**
 * @file What running programs needs of the system: targets that only some systems have, and what there is one of for all
 * programs. It is passed down as an argument; no module keeps such things in variables of its own.
 */
import type { HostTargetName } from "./choose-target.ts";
import type { TargetProvider } from "./device.ts";
import { Devices } from "./devices.ts";
import { EngineHeap } from "./engine-heap.ts";
import { pageThreads } from "./page-threads.ts";
import { pageTask, type TaskStarter } from "./task-worker.ts";
import { pageGpu, WebgpuTargets } from "./webgpu/targets.ts";
import { pageWorkers, WorkerPool } from "./workers.ts";

export interface RuntimeHost {
  /** Targets beside `wasm`, by name. */
  readonly targets: Readonly<Partial<Record<HostTargetName, TargetProvider>>>;
  /** Gets the target `webgpu`, which has to be waited for. */
  readonly webgpu: WebgpuTargets;
  readonly workers: WorkerPool;
  /** The others that run a program with this thread, if it is one of several devices. */
  readonly devices: Devices;
  /** Workers that plan and generate code beside the thread that runs. */
  readonly startTask: TaskStarter;
  /** Kept small while programs are made. */
  readonly heap: EngineHeap;
}

/** What every engine has by itself. */
export const plainRuntime = (): RuntimeHost => ({
  ...awaitedTargets(new WebgpuTargets(pageGpu)),
  workers: new WorkerPool(pageWorkers),
  devices: new Devices(pageThreads),
  startTask: pageTask,
  heap: new EngineHeap(),
});

/** The target that has to be waited for, by name once it has been. */
export const awaitedTargets = (webgpu: WebgpuTargets): Pick<RuntimeHost, "targets" | "webgpu"> => ({
  targets: { webgpu: (request) => webgpu.now(request) },
  webgpu,
});
