/**
 * @file What Node has for programs (api/host.ts): native code, GPUs, worker threads, plans on disk, the package `highs`. Each is
 * looked for when it is first needed.
 */
import { type Host, plainHost } from "../api/host.ts";
import { shapeFamilies } from "../api/shape-family.ts";
import { budgetPlanner } from "../compiler/assemble.ts";
import { loopSupport } from "../compiler/loops.ts";
import { overlappedPlan } from "../compiler/overlap.ts";
import { spilledPlans } from "../compiler/spill.ts";
import { Devices } from "../runtime/devices.ts";
import { awaitedTargets } from "../runtime/host.ts";
import { WebgpuTargets } from "../runtime/webgpu/targets.ts";
import { WorkerPool } from "../runtime/workers.ts";
import { cudaNamed } from "./cuda/public.ts";
import { findSolver } from "./highs.ts";
import { nodeThreads } from "./module-threads.ts";
import { communicator } from "./mpi/communicator.ts";
import { wasmProcesses } from "./mpi/exchange.ts";
import { launched } from "./mpi/launched.ts";
import { nativeTarget } from "./native/target.ts";
import { withProcess } from "./plan-in-process.ts";
import { systemPlanStore } from "./plan-store.ts";
import { spilled } from "./spilled.ts";
import { nodeGpu } from "./webgpu.ts";
import { nodeTask, nodeWorkers } from "./workers.ts";

const workers = new WorkerPool(() => nodeWorkers);
const devices = new Devices(
  () => nodeThreads,
  (asked) => (launched() ? wasmProcesses(communicator(asked)) : null),
);
const awaited = awaitedTargets(new WebgpuTargets(nodeGpu));

/** The one of this process. */
export const nodeHost: Host = {
  ...plainHost(),
  ...awaited,
  targets: { ...awaited.targets, native: nativeTarget, cuda: cudaNamed },
  workers,
  devices,
  startTask: nodeTask,
  settleSpill: (request) => spilled(request, { workers, devices }),
  spilledPlans,
  overlappedPlan,
  planStore: withProcess(systemPlanStore()),
  findSolver,
  planner: budgetPlanner,
  loops: loopSupport,
  families: shapeFamilies,
};
