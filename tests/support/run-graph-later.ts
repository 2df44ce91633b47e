/** @file One run of a graph on a device that has to be waited for, in memory of which every byte that does not persist was overwritten. */
import { loadGraph } from "../../src/api/load-graph.ts";
import { at } from "../../src/base/invariant.ts";
import type { Graph } from "../../src/ir/graph.ts";
import { byteLength, type TensorType } from "../../src/ir/type.ts";
import type { DeviceMemory, Target } from "../../src/runtime/device.ts";
import { type Elements, elementsAt } from "../../src/runtime/executable.ts";
import { randomInputs } from "./random-graph.ts";

export async function readLater(memory: DeviceMemory, type: TensorType, address: number): Promise<Elements> {
  const bytes = await memory.read(address, byteLength(type));
  return elementsAt(bytes.slice().buffer, type, 0);
}

/** Results of the graph with the random arguments of a seed. */
export async function runGraphLater(target: Target, graph: Graph, seed: number): Promise<readonly Elements[]> {
  const executable = loadGraph(graph, { target });
  const { memory, placed } = executable;
  memory.fill(0, placed.plan.height, 0xff);
  randomInputs(graph, seed).forEach((data, i) => {
    executable.write(at(graph.params, i).type, at(placed.params, i), data);
  });
  executable.run();
  return Promise.all(graph.results.map(({ type }, i) => readLater(memory, type, at(placed.results, i))));
}
