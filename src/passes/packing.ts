/** @file Nodes that pack truth values into bits and unpack them, for passes that keep bits between two parts of a program. */
import { at } from "../base/invariant.ts";
import type { Node, Value } from "../ir/graph.ts";
import { newValue } from "../ir/graph.ts";
import type { AnyOp, Attrs } from "../ir/op.ts";
import type { Shape } from "../ir/type.ts";
import { packBits, unpackBits } from "../ops/bits.ts";

/** Where a node belongs. */
export type Place = Pick<Node, "phase" | "replay" | "where" | "scope" | "within">;

export const placeOf = ({ phase, replay, where, scope, within }: Node): Place => ({
  ...{ phase, replay, where, scope, within },
});

function newNode(op: AnyOp, input: Value, attrs: Attrs, place: Place): Node {
  const outputs = op.infer([input.type], attrs, []).map((type) => newValue(type));
  return { ...place, op, inputs: [input], attrs, outputs, regions: [] };
}

/** The nodes that compute a truth value, at another place and from other values, and the node that packs it, last. */
export function packing(
  nodes: readonly Node[],
  predicate: Value,
  place: Place,
  from: ReadonlyMap<Value, Value> = new Map(),
): readonly Node[] {
  const now = new Map(from);
  const copies = nodes.map((node): Node => {
    const outputs = node.outputs.map(({ type }) => newValue(type));
    const inputs = node.inputs.map((input) => now.get(input) ?? input);
    for (const [i, value] of node.outputs.entries()) now.set(value, at(outputs, i));
    return { ...node, ...place, inputs, outputs };
  });
  return [...copies, newNode(packBits, now.get(predicate) ?? predicate, {}, place)];
}

/** The unpacked truth values. */
export const unpacking = (words: Value, shape: Shape, place: Place): Node =>
  newNode(unpackBits, words, { shape }, place);
