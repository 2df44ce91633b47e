/**
 * @file Common subexpressions: of nodes that compute the same thing the first one stays. The same thing means the same
 * operation, attributes, inputs and regions, and the same replay number: recomputation asked for by a checkpoint looks
 * like a common subexpression and must survive. The first one keeps its phase, so a backward node that equals a forward
 * one becomes a use of the forward value.
 */
import { at } from "../base/invariant.ts";
import { attrsHash, sameAttrs } from "../ir/attrs.ts";
import type { Node } from "../ir/graph.ts";
import { sameGraph } from "../ir/hash.ts";
import type { AnyOp } from "../ir/op.ts";
import { rewriteGraph, type Visit } from "../ir/walk.ts";
import type { Pass } from "./pass.ts";

/** Numbers things as they come; equal things have one number. */
function numbering<T>(): (thing: T) => number {
  const numbers = new Map<T, number>();
  return (thing) => {
    const number = numbers.get(thing) ?? numbers.size;
    numbers.set(thing, number);
    return number;
  };
}

/** A node that stays, and the one before it with the same hash. */
interface Seen {
  readonly node: Node;
  readonly next: Seen | undefined;
}

function merge(): Visit {
  const opNumber = numbering<AnyOp>();
  const seen = new Map<number, Seen>();
  return (_, node) => {
    let hash = Math.imul(opNumber(node.op) + 1, 0x85ebca6b) ^ node.replay ^ attrsHash(node.op, node.attrs);
    for (const input of node.inputs) {
      hash = Math.imul(hash ^ input.id, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    const latest = seen.get(hash);
    for (let other = latest; other; other = other.next) if (isSame(other.node, node)) return other.node.outputs;
    seen.set(hash, { node, next: latest });
    return null;
  };
}

/** Operations count by identity, for two may have one name. */
function isSame(a: Node, b: Node): boolean {
  if (a.op !== b.op || a.replay !== b.replay || a.inputs.length !== b.inputs.length) return false;
  if (!a.inputs.every((input, i) => input === b.inputs[i]) || !sameAttrs(a.op, a.attrs, b.attrs)) return false;
  return a.regions.length === b.regions.length && a.regions.every((region, i) => sameGraph(region, at(b.regions, i)));
}

/** Merges nodes with equal operation, attributes, inputs and replay. */
export const cse: Pass = {
  name: "cse",
  after: ["inline", "canonicalize", "fold"],
  run: (graph) => rewriteGraph(graph, merge),
};
