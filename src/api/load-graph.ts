/** @file From a graph to a program that is ready to run. */
import { type AssembleOptions, assemble, type ChosenProgram } from "../compiler/assemble.ts";
import type { Graph } from "../ir/graph.ts";
import type { Target } from "../runtime/device.ts";
import { Executable, type LoadedAs } from "../runtime/executable.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";

export interface LoadGraphOptions extends AssembleOptions, LoadedAs {
  /** Default: WebAssembly. */
  readonly target?: Target | undefined;
}

export function loadGraph(graph: Graph, options: LoadGraphOptions = {}): Executable<ChosenProgram> {
  const { target = wasmTarget(), stepwise = false, arena, ...rest } = options;
  return new Executable(assemble(graph, target.description, rest), target, { stepwise, arena });
}
