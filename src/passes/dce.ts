/**
 * @file Dead code: nodes that no result depends on, and unused operands and results of loops and branches (narrow.ts).
 * One walk from the end: when a node is reached, it is known which of its results are needed.
 */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { narrow } from "./narrow.ts";
import type { Pass } from "./pass.ts";

function live(graph: Graph, settled: Set<Graph>): Graph {
  if (settled.has(graph)) return graph;
  const wanted = new Set<Value>(graph.results);
  const isWanted = (value: Value): boolean => wanted.has(value);
  const nodes: Node[] = [];
  for (let i = graph.nodes.length - 1; i >= 0; i--) {
    const old = graph.nodes[i] as Node;
    if (!old.outputs.some(isWanted)) continue;
    const node = narrow(old, isWanted, (region) => live(region, settled));
    for (const input of node.inputs) wanted.add(input);
    nodes.push(node);
  }
  nodes.reverse();
  const same = nodes.length === graph.nodes.length && nodes.every((node, i) => node === graph.nodes[i]);
  const made = same ? graph : { ...graph, nodes };
  settled.add(made);
  return made;
}

/**
 * Regions are cleaned before and after their node is narrowed: without the set of clean ones, every level of nesting would
 * double the work.
 */
const withoutDead = (graph: Graph): Graph => live(graph, new Set());

/** Removes nodes that no result depends on, in regions too. */
export const dce: Pass = { name: "dce", after: ["inline", "canonicalize", "fold", "cse"], run: withoutDead };
