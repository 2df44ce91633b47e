/**
 * @file What traced tensors will be when the program runs for the first time: the arguments of that call are at hand while it
 * is traced, and the nodes recorded so far say the rest. For checks that need numbers; the program itself does not change.
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { nodesFor } from "../ir/walk.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import { outsideOfTraces, type Trace } from "../trace/trace.ts";
import { applyGraph } from "./apply.ts";

/** The tensors with their elements; null where something they depend on is not known. @internal */
export function concreteOf(tensors: readonly Tensor[]): readonly Tensor[] | null {
  const traces = new Set(tensors.flatMap(({ traced }) => traced?.trace ?? []));
  const known = new Map<Tensor, Tensor>();
  for (const trace of traces) {
    const own = tensors.filter(({ traced }) => traced?.trace === trace);
    const made = valuesIn(trace, own);
    if (!made) return null;
    own.forEach((tensor, i) => {
      known.set(tensor, at(made, i));
    });
  }
  const all = tensors.map((tensor) => known.get(tensor) ?? tensor);
  return all.some(({ storage }) => !storage || storage.abstract) ? null : all;
}

/** The same for tensors of one trace: what they depend on, run on samples of its parameters. */
function valuesIn(trace: Trace, tensors: readonly Tensor[]): readonly Tensor[] | null {
  if (trace.hasValues) return tensors.map((x) => new Tensor(new ArrayStorage(x.dtype, x.shape, x.data())));
  const results = tensors.map((tensor) => trace.lift(tensor));
  const { name, params, nodes } = trace.build;
  const live = nodesFor({ name, params, nodes, results }, results);
  const read = new Set<Value>([...results, ...[...live].flatMap(({ inputs }) => inputs)]);
  const needed = params.filter((param) => read.has(param));
  const samples = needed.map((param) => trace.sampleOf(param));
  const inputs = samples.every((sample) => sample !== null) ? concreteOf(samples as readonly Tensor[]) : null;
  if (!inputs) return null;
  const graph = { name, params: needed, nodes: nodes.filter((node) => live.has(node)), results };
  return outsideOfTraces(() => applyGraph(graph, inputs));
}
