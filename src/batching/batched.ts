/** @file Types that the parts of batching share: a graph over a batch, and a node over one. */
import { at } from "../base/invariant.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { repeated } from "../ops/batch.ts";

/** Values of which those marked have a first axis, along the batch. */
export interface Batched {
  readonly values: readonly Value[];
  readonly batched: readonly boolean[];
}

/** A graph over a batch, and which of its results have the axis. */
export interface BatchedGraph {
  readonly graph: Graph;
  readonly batched: readonly boolean[];
}

/** Which parameters of a graph have the axis, and which results must. */
export interface BatchRequest {
  readonly params: readonly boolean[];
  readonly results?: readonly boolean[];
}

/** A node that is applied to a batch. */
export interface NodeSite {
  readonly b: Build;
  /** Its inputs are values of the new graph. */
  readonly node: Node;
  /** Which inputs have the axis; at least one does. */
  readonly batched: readonly boolean[];
  readonly size: number;
  batch(graph: Graph, request: BatchRequest): BatchedGraph;
}

export const all = (values: readonly unknown[]): readonly boolean[] => values.map(() => true);

/** Values with the axis where `wanted` says so: those that do not vary are repeated. */
export function withAxes(
  b: Build,
  { values, batched }: Batched,
  wanted: readonly boolean[],
  size: number,
): readonly Value[] {
  return values.map((value, i) => (wanted[i] && !batched[i] ? repeated(b, at(values, i), size) : value));
}

/** A graph with nodes after its own, from its results to others. */
export function extended(graph: Graph, finish: (b: Build, results: readonly Value[]) => readonly Value[]): Graph {
  const b = new Build(graph.name);
  b.params.push(...graph.params);
  b.nodes.push(...graph.nodes);
  return b.finish(finish(b, graph.results));
}
