/** @file Helpers of both modes: names for the results of rules, and replay numbers. */

import type { Build } from "../ir/build.ts";
import type { Graph, Value } from "../ir/graph.ts";
import { newValue, nodeLike } from "../ir/graph.ts";

/**
 * Names the result of a rule, if the node appended last computes it and it has no name: rules do not know what their
 * results mean. No node can have used the value yet, so the node is replaced by a named one. Nodes before number `since`
 * are not the rule's.
 */
export function nameLast(b: Build, value: Value, name: string | undefined, since: number): Value {
  const last = b.nodes[b.nodes.length - 1];
  if (b.nodes.length <= since || !name || value.name || last?.outputs.length !== 1 || last.outputs[0] !== value)
    return value;
  const named = newValue(value.type, name);
  b.nodes.pop();
  b.append(nodeLike(last, { outputs: [named] }));
  return named;
}

/** The greatest replay number in a graph and its regions; 0 when nothing is a replay. */
export function maxReplay(graph: Graph): number {
  let most = 0;
  for (const node of graph.nodes) {
    most = Math.max(most, node.replay, ...node.regions.map(maxReplay));
  }
  return most;
}
