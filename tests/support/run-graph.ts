/** @file A graph run on a target, over memory that was full of NaN before. */
import { loadGraph } from "../../src/api/load-graph.ts";
import { at } from "../../src/base/invariant.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import type { Target } from "../../src/runtime/device.ts";
import type { Elements } from "../../src/runtime/executable.ts";

/** The results; `input` gives the elements of a parameter, in order. */
export function runGraph(
  target: Target,
  graph: Graph,
  input: (param: Value, i: number) => ArrayLike<number>,
): readonly Elements[] {
  const executable = loadGraph(graph, { target });
  executable.poison();
  graph.params.forEach((param, i) => {
    executable.write(param.type, at(executable.placed.params, i), input(param, i));
  });
  executable.run();
  return graph.results.map((value, i) => executable.read(value.type, at(executable.placed.results, i)));
}
