/** @file Running a traced program on concrete tensors: compiled once for each key, kept as long as the key is. */
import { PLAIN_REQUEST } from "../compiler/request.ts";
import type { Graph } from "../ir/graph.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { TracedGraph } from "../trace/trace.ts";
import { persistentParams } from "./donation.ts";
import { currentHost } from "./host.ts";
import { type LoadedProgram, loadProgram } from "./program.ts";

/** Compiled programs by their keys. */
const programs = new WeakMap<object, LoadedProgram>();

const NOT_CHECKED = { ...PLAIN_REQUEST, checkNaN: false };

/** Parameters from `firstCapture` on are constants. */
function load(graph: Graph, firstCapture: number): LoadedProgram {
  const donated = new Map<number, number>();
  const source = { graph, donated, persistent: persistentParams(graph, donated, firstCapture), firstCapture };
  const host = currentHost();
  return host.heap.keptSmall(() => loadProgram(source, NOT_CHECKED, { target: wasmTarget(), host }).program);
}

/**
 * Runs a program. `args` are its first parameters, in order; captures are read from `program` at every call.
 * @param key programs with one key have structurally equal graphs: what is compiled for one serves all
 */
export function runConcrete(key: object, program: TracedGraph, args: readonly Tensor[]): readonly Tensor[] {
  const { graph } = program;
  let loaded = programs.get(key);
  if (!loaded) {
    loaded = load(graph, args.length);
    programs.set(key, loaded);
  }
  return loaded.run([...args, ...program.captures.map((capture) => capture.tensor)]);
}
