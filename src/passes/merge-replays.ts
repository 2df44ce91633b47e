/**
 * @file Undoes the recomputation that checkpoints asked for: a replayed node becomes a use of the first computation. With a
 * budget the planner starts from this form, and chooses itself what to recompute.
 */

import type { Graph } from "../ir/graph.ts";
import { nodeLike } from "../ir/graph.ts";
import { cse } from "./cse.ts";
import { dce } from "./dce.ts";
import type { Pass } from "./pass.ts";

function withoutReplays(graph: Graph): Graph {
  if (graph.nodes.every((node) => node.replay === 0)) return graph;
  const nodes = graph.nodes.map((node) => (node.replay === 0 ? node : nodeLike(node, { replay: 0 })));
  return dce.run(cse.run({ ...graph, nodes }));
}

/** Merges replayed nodes with the originals. */
export const mergeReplays: Pass = {
  name: "merge-replays",
  after: ["inline", "canonicalize", "cse"],
  run: withoutReplays,
};
