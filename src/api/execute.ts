/**
 * @file Running a traced program on concrete tensors, by the reference evaluator with every f32 result rounded to f32.
 */
import { at } from "../base/invariant.ts";
import { evaluate } from "../ir/evaluate.ts";
import type { Value } from "../ir/graph.ts";
import { ArrayStorage, newArray } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";
import type { TracedGraph } from "../trace/trace.ts";

function tensorFrom(value: Value, data: Float64Array): Tensor {
  const { dtype, shape } = value.type;
  const out = newArray(dtype, data.length);
  out.set(data);
  return new Tensor(new ArrayStorage(dtype, shape, out));
}

/**
 * Runs a program. `args` are its first parameters, in order; captures are read from `program` at every call.
 * @param _key programs with one key have structurally equal graphs: what is compiled for one serves all
 */
export function runConcrete(_key: object, program: TracedGraph, args: readonly Tensor[]): readonly Tensor[] {
  const inputs = [...args, ...program.captures.map((capture) => capture.tensor)];
  const data = inputs.map((tensor) => Float64Array.from(storageOf(tensor).read()));
  return evaluate(program.graph, data, { round: true }).map((result, i) =>
    tensorFrom(at(program.graph.results, i), result),
  );
}
