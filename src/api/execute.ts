/** @file Running a traced program on concrete tensors: compiled once for each key, kept as long as the key is. */
import { inSmallHeap } from "../runtime/engine-heap.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { TracedGraph } from "../trace/trace.ts";
import { type LoadedProgram, loadProgram } from "./program.ts";

const programs = new WeakMap<object, LoadedProgram>();

/**
 * Runs a program. `args` are its first parameters, in order; captures are read from `program` at every call.
 * @param key programs with one key have structurally equal graphs: what is compiled for one serves all
 */
export function runConcrete(key: object, program: TracedGraph, args: readonly Tensor[]): readonly Tensor[] {
  const { graph } = program;
  let loaded = programs.get(key);
  if (!loaded) {
    loaded = inSmallHeap(() => loadProgram(graph, { name: graph.name, firstCapture: args.length }).program);
    programs.set(key, loaded);
  }
  return loaded.run([...args, ...program.captures.map((capture) => capture.tensor)]);
}
