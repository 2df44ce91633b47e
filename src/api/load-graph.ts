/** @file From a graph to a program that is ready to run, for measurements and tests. */
import { assemble } from "../compiler/assemble.ts";
import { NO_HOST, type PlannerHost } from "../compiler/host.ts";
import type { PlanRequest, SourceProgram } from "../compiler/request.ts";
import type { ChosenProgram } from "../compiler/stored.ts";
import type { Graph } from "../ir/graph.ts";
import type { DeviceMemory, Target } from "../runtime/device.ts";
import { Executable } from "../runtime/executable.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";

export interface LoadGraphOptions extends Omit<SourceProgram, "graph">, Partial<PlanRequest> {
  /** Default: WebAssembly. */
  readonly target?: Target;
  /** Steps can be run one by one. */
  readonly stepwise?: boolean;
  /** What its arena is in; default: a memory of its own. */
  readonly arena?: DeviceMemory;
  /** Default: one that has nothing. */
  readonly host?: PlannerHost;
}

export function loadGraph(graph: Graph, options: LoadGraphOptions = {}): Executable<ChosenProgram> {
  const { target = wasmTarget(), stepwise = false, arena, host = NO_HOST, ...request } = options;
  return new Executable(assemble({ graph, ...options }, target.description, request, host), target, {
    stepwise,
    memory: arena,
  });
}
