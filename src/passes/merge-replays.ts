/**
 * @file Takes back what checkpoints asked for: a node that is computed again becomes a use of the first computation. The
 * planner starts from this form when it has a budget, and decides anew what is computed again.
 */
import type { Graph } from "../ir/graph.ts";
import { cse } from "./cse.ts";
import { dce } from "./dce.ts";
import type { Pass } from "./pass.ts";

function withoutReplays(graph: Graph): Graph {
  if (graph.nodes.every((node) => node.replay === 0)) return graph;
  const nodes = graph.nodes.map((node) => (node.replay === 0 ? node : { ...node, replay: 0 }));
  return dce.run(cse.run({ ...graph, nodes }));
}

/** Merges replays with what they replay. */
export const mergeReplays: Pass = {
  name: "merge-replays",
  after: ["inline", "canonicalize", "cse"],
  run: withoutReplays,
};
