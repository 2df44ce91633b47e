/** @file Dead code: nodes that no result depends on. */
import type { Graph, Node } from "../ir/graph.ts";
import { nodesFor } from "../ir/walk.ts";
import type { Pass } from "./pass.ts";

function live(graph: Graph): Graph {
  const needed = nodesFor(graph);
  const nodes = graph.nodes.filter((node) => needed.has(node)).map(withLiveRegions);
  const same = nodes.length === graph.nodes.length && nodes.every((node, i) => node === graph.nodes[i]);
  return same ? graph : { ...graph, nodes };
}

/** Parameters and results of a region are its node's business and stay. */
function withLiveRegions(node: Node): Node {
  const regions = node.regions.map(live);
  return regions.every((region, i) => region === node.regions[i]) ? node : { ...node, regions };
}

/** Removes nodes that no result depends on, in regions too. */
export const dce: Pass = { name: "dce", after: ["inline", "canonicalize", "fold", "cse"], run: live };
