/**
 * @file Values that are gathered again for the backward pass: the forward pass lets go of what it gathered, and the backward pass gathers
 * it once more where it reads it first. As replays of a checkpoint they are nodes of their own; within a budget the planner may
 * decide that one of the two is enough.
 *
 *   forward    g = all_gather(shard)   y = matmul(x, g)
 *   backward   g~1 = all_gather(shard) dx = matmul(dy, g~1)
 */

import { at } from "../../base/invariant.ts";
import { type Graph, type Node, newValue, nodeLike, type Value } from "../../ir/graph.ts";

/** A node of the forward pass that gathers, or shows what was gathered in another form. */
function isRepeated({ op, attrs, phase, inputs }: Node, repeated: ReadonlyMap<Value, Node>): boolean {
  const { again } = attrs;
  if (phase !== "forward") return false;
  if (op.facts?.collective) return again === true;
  return op.view !== undefined && inputs.length === 1 && repeated.has(at(inputs, 0));
}

/** The graph in which backward nodes read what was gathered for them. */
export function gatheredAgain(graph: Graph): Graph {
  if (!graph.nodes.some(({ attrs: { again } }) => again === true)) return graph;
  const repeated = new Map<Value, Node>();
  const replay = 1 + Math.max(...graph.nodes.map((node) => node.replay));
  const nodes: Node[] = [];
  const copies = new Map<Value, Value>();
  const copyOf = (value: Value): Value => {
    const node = repeated.get(value);
    if (!node) return value;
    const known = copies.get(value);
    if (known) return known;
    const inputs = node.inputs.map(copyOf);
    const made = newValue(value.type, value.name && `${value.name}_again`);
    nodes.push(nodeLike(node, { inputs, outputs: [made], phase: "backward", replay }));
    copies.set(value, made);
    return made;
  };
  for (const node of graph.nodes) {
    const only = node.outputs[0];
    if (only && isRepeated(node, repeated)) repeated.set(only, node);
    nodes.push(node.phase === "forward" ? node : nodeLike(node, { inputs: node.inputs.map(copyOf) }));
  }
  return { ...graph, nodes };
}
