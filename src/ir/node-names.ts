/**
 * @file Names of values from the nodes that make them, in a list of nodes that may be kernels: the nodes of a kernel count
 * as if nothing had been fused. label.ts has the rules.
 */
import { at } from "../base/invariant.ts";
import type { Graph, Node, Value } from "./graph.ts";
import { cotangentOrigin, labelOf, originOf, repeatedParts, type Surroundings, shownValue } from "./label.ts";
import { namer } from "./print.ts";

export interface NodeNames {
  /** Of a value that one of the nodes makes: `d_block0.attention.qkv`. */
  value(value: Value): string | undefined;
  /** Of a node, by its part and operation: `block0.scan`. */
  node(node: Node): string | undefined;
}

/** @param weight the name of a parameter, if values are to be named after it */
export function nodeNames(nodes: readonly Node[], weight: (param: Value) => string | undefined): NodeNames {
  const makers = new Map<Value, Node>();
  /** What a result of a kernel, or a parameter of its nodes, is inside or outside of it. */
  const same = new Map<Value, Value>();
  const withins = new Set<string>();
  const add = (node: Node): void => {
    for (const value of node.outputs) makers.set(value, node);
    if (node.within !== undefined) withins.add(node.within);
  };
  for (const node of nodes) {
    add(node);
    const [region] = node.op.lower.kind === "region" ? node.regions : [];
    if (!region) continue;
    region.nodes.forEach(add);
    for (const [i, param] of region.params.entries()) same.set(param, at(node.inputs, i));
    for (const [i, result] of region.results.entries()) same.set(at(node.outputs, i), result);
  }
  const source = (value: Value): Value => {
    let now = value;
    for (let next = same.get(now); next; next = same.get(now)) now = next;
    return now;
  };
  const around = {
    producer: (value: Value) => makers.get(source(value)),
    weight: (value: Value) => weight(source(value)),
  };
  const repeated = repeatedParts(withins);
  return {
    value: (value) => madeName(value, around, repeated),
    node: ({ op, within = "" }) => labelOf(cotangentOrigin(within)?.within ?? within, { op: op.name }, repeated),
  };
}

function madeName(value: Value, around: Surroundings, repeated: ReadonlySet<string>): string | undefined {
  const node = around.producer(value);
  if (!node) return undefined;
  const within = (around.producer(shownValue(value, around)) ?? node).within ?? "";
  const cotangent = cotangentOrigin(node.within) ?? cotangentOrigin(within);
  const label = labelOf(cotangent?.within ?? within, cotangent ?? originOf(value, around), repeated);
  if (label === undefined) return undefined;
  if (node.replay > 0) return `${label}_re`;
  return cotangent || node.phase === "backward" ? `d_${label}` : label;
}

/** Names of all values of a graph, for messages. */
export function messageNames(graph: Graph): (value: Value) => string {
  const names = nodeNames(graph.nodes, ({ name }) => name);
  return namer(graph, (value) => value.name ?? names.value(value));
}
