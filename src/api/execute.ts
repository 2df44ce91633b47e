/** @file Running a traced program on concrete tensors: compiled once for each key, kept as long as the key is. */
import type { Tensor } from "../trace/tensor.ts";
import type { TracedGraph } from "../trace/trace.ts";
import { LoadedProgram } from "./program.ts";

const programs = new WeakMap<object, LoadedProgram>();

/**
 * Runs a program. `args` are its first parameters, in order; captures are read from `program` at every call.
 * @param key programs with one key have structurally equal graphs: what is compiled for one serves all
 */
export function runConcrete(key: object, program: TracedGraph, args: readonly Tensor[]): readonly Tensor[] {
  let loaded = programs.get(key);
  if (!loaded) {
    loaded = new LoadedProgram(program.graph, { name: program.graph.name, firstCapture: args.length });
    programs.set(key, loaded);
  }
  return loaded.run([...args, ...program.captures.map((capture) => capture.tensor)]);
}
