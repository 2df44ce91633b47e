/**
 * @file Lowering of many nodes: a deep network has thousands of kernels and dozens of different ones. Nodes that are equal
 * in structure (operations, attributes, types, which operand is read where) share one kernel, bound to their own values:
 *
 *   fused(a, b) { mul, add }  ─╮
 *                              ├─→ one kernel over operands 0, 1, 2      bound to a, b, c and to d, e, f
 *   fused(d, e) { mul, add }  ─╯
 */
import type { Node, Value } from "../ir/graph.ts";
import { KnownTexts, structuralKey } from "../ir/hash.ts";
import type { AnyOp } from "../ir/op.ts";
import type { Kernel } from "../kernel/loops.ts";
import type { LoweringTarget } from "../target/description.ts";
import { type Lowered, lowerNode } from "./lower.ts";

interface Shared {
  readonly kernel: Kernel;
  /** Per operand, its place among a node's inputs and outputs; -1 for workspace. */
  readonly places: readonly number[];
}

/** A function that lowers nodes for one target and remembers their kernels. */
export function sharedLowering(target: LoweringTarget): (node: Node) => Lowered {
  const known = new Map<string, Shared>();
  const texts = new KnownTexts();
  const numbers = new Map<AnyOp, number>();
  // Names are for people: two operations may have one.
  const opNumber = (op: AnyOp): number => {
    const number = numbers.get(op) ?? numbers.size;
    numbers.set(op, number);
    return number;
  };
  const keyOf = (node: Node): string => {
    const graph = { name: "", params: [...new Set(node.inputs)], nodes: [node], results: node.outputs };
    return structuralKey(graph, opNumber, texts);
  };
  const lower = (node: Node): Lowered => {
    const key = keyOf(node);
    const values: readonly Value[] = [...node.inputs, ...node.outputs];
    const found = known.get(key);
    if (found) return { kernel: found.kernel, values: found.places.map((place) => values[place] ?? null) };
    const made = lowerNode(node, target);
    known.set(key, { kernel: made.kernel, places: made.values.map((value) => (value ? values.indexOf(value) : -1)) });
    return made;
  };
  const byNode = new WeakMap<Node, Lowered>();
  return (node) => {
    const lowered = byNode.get(node) ?? lower(node);
    byNode.set(node, lowered);
    return lowered;
  };
}
