/** @file Registers the Node-only parts with the portable ones, for the command and its threads. */

import { providePlanStore } from "../compiler/plan-cache.ts";
import { provideSolver } from "../compiler/solver.ts";
import { findSolver } from "../node/highs.ts";
import { nativeTarget } from "../node/native/target.ts";
import { withProcess } from "../node/plan-elsewhere.ts";
import { systemPlanStore } from "../node/plan-store.ts";
import { nodeWorkers } from "../node/workers.ts";
import { provideNative } from "../runtime/choose-target.ts";
import { provideWorkers } from "../runtime/workers.ts";

export function provideNode(): void {
  provideNative(nativeTarget);
  provideWorkers(nodeWorkers);
  providePlanStore(withProcess(systemPlanStore()));
  provideSolver(findSolver);
}
