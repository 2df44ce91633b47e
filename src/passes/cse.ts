/**
 * @file Common subexpressions: of nodes that compute the same thing the first one stays. The same thing means the same
 * operation, attributes, inputs and regions, and the same replay number: recomputation asked for by a checkpoint looks
 * like a common subexpression and must survive. The first one keeps its phase, so a backward node that equals a forward
 * one becomes a use of the forward value.
 */
import { attrsKey } from "../ir/attrs.ts";
import type { Node, Value } from "../ir/graph.ts";
import { structuralKey } from "../ir/hash.ts";
import type { AnyOp } from "../ir/op.ts";
import { rewriteGraph, type Visit } from "../ir/walk.ts";
import type { Pass } from "./pass.ts";

/** Numbers operations as they come: by identity, for two of them may have one name. */
function numberOps(): (op: AnyOp) => number {
  const numbers = new Map<AnyOp, number>();
  return (op) => {
    const number = numbers.get(op) ?? numbers.size;
    numbers.set(op, number);
    return number;
  };
}

function merge(): Visit {
  const opNumber = numberOps();
  const seen = new Map<string, readonly Value[]>();
  const keyOf = (node: Node): string => {
    let key = `${opNumber(node.op)}~${node.replay}{${attrsKey(node.op, node.attrs)}}`;
    for (const input of node.inputs) key += `,${input.id}`;
    for (const region of node.regions) key += `[${structuralKey(region)}]`;
    return key;
  };
  return (_, node) => {
    const key = keyOf(node);
    const earlier = seen.get(key);
    if (!earlier) seen.set(key, node.outputs);
    return earlier ?? null;
  };
}

/** Merges nodes with equal operation, attributes, inputs and replay. */
export const cse: Pass = {
  name: "cse",
  after: ["inline", "canonicalize", "fold"],
  run: (graph) => rewriteGraph(graph, merge),
};
