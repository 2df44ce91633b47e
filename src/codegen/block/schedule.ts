/**
 * @file A kernel as launches of blocks: pure functions of its nests and of a device class. What is here decides how fast a
 * kernel is and never what it computes.
 */
import { InternalError } from "../../base/invariant.ts";
import type { Kernel, Nest, Operand } from "../../kernel/loops.ts";
import type { UnplacedNest } from "../../target/description.ts";
import type { BlockProgram, DeviceClass, Launch } from "./program.ts";
import { attendWorkspace, scheduleAttend } from "./schedule-attend.ts";
import { contractWorkspace, scheduleContract } from "./schedule-contract.ts";
import { scheduleMap, scheduleScan } from "./schedule-map.ts";
import { scheduleSort, sortWorkspace } from "./schedule-order.ts";
import { reduceWorkspace, scheduleReduce } from "./schedule-reduce.ts";
import { routineWorkspace, scheduleRoutine } from "./schedule-routine.ts";
import { scatterWorkspace, scheduleScatter } from "./schedule-scatter.ts";
import { scheduleShuffle } from "./schedule-shuffle.ts";

/** Elements of workspace, of the nest's own type, that its launches need. */
export function blockWorkspace(nest: UnplacedNest, device: DeviceClass): number {
  switch (nest.kind) {
    case "reduce":
      return reduceWorkspace(nest, device);
    case "contract":
      return contractWorkspace(nest, device);
    case "scatter":
      return scatterWorkspace(nest, device);
    case "sort":
      return sortWorkspace(nest);
    case "attend":
      return attendWorkspace(nest, device);
    case "routine":
      return routineWorkspace(nest);
    case "map":
    case "scan":
    case "shuffle":
    case "staged":
    case "collective":
      return 0;
  }
}

function schedule(nest: Nest, operands: readonly Operand[], device: DeviceClass): readonly Launch[] {
  switch (nest.kind) {
    case "map":
      return scheduleMap(nest, operands, device);
    case "reduce":
      return scheduleReduce(nest, operands, device);
    case "scan":
      return scheduleScan(nest, operands, device);
    case "contract":
      return scheduleContract(nest, operands, device);
    case "scatter":
      return scheduleScatter(nest, operands, device);
    case "shuffle":
      return scheduleShuffle(nest, operands, device);
    case "sort":
      return scheduleSort(nest, operands, device);
    case "collective":
      throw new InternalError(`${nest.what} without a communicator`);
    case "staged":
      throw new InternalError("devices that run blocks of threads are given maps in place of stages");
    case "attend":
      return scheduleAttend(nest, operands, device);
    case "routine":
      return scheduleRoutine(nest, operands, device);
  }
}

export function blockProgram({ operands, nests }: Kernel, device: DeviceClass): BlockProgram {
  return { operands, launches: nests.flatMap((nest) => schedule(nest, operands, device)) };
}
