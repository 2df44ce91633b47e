/**
 * @file The graph: typed SSA with regions. Nodes are in execution order; a value is defined once, by a parameter or by a
 * node; a node's `op` is the OpDef itself, so there is no registry. Regions are closed: a region's nodes see only its
 * own parameters, which are bound to the node's inputs.
 */
import { invariant } from "../base/invariant.ts";
import type { AnyOp, Attrs } from "./op.ts";
import type { TensorType } from "./type.ts";

/** Which part of a training step a node belongs to; the planner and the printer show it. */
export type Phase = "forward" | "backward" | "update";

/** Before the name of a part (`Node.scope`) that a checkpoint makes. */
export const REGION = "@";

/** The result of a node, or a parameter: defined once, never changed. */
export interface Value {
  /** Unique within the process; orders and breaks ties. */
  readonly id: number;
  readonly type: TensorType;
  /** A hint for the printer, from the user's names. */
  readonly name: string | undefined;
}

/** One application of an operation to values. */
export interface Node {
  readonly op: AnyOp;
  readonly inputs: readonly Value[];
  readonly attrs: Attrs;
  readonly outputs: readonly Value[];
  readonly regions: readonly Graph[];
  readonly phase: Phase;
  /** The user's source line, `model.ts:21:14`. */
  readonly where: string | undefined;
  /** Nodes of one replay of a checkpointed call share a number: equal nodes of different replays are not merged. */
  readonly replay: number;
  /** The part of the program it belongs to, outermost first, as users name parts: `encoder/block3`. */
  readonly scope?: string | undefined;
  /** The same with the library's functions, for names that people read (label.ts); nothing else depends on it. */
  readonly within?: string | undefined;
}

/** A function as typed SSA: parameters, nodes in order, results. */
export interface Graph {
  readonly name: string;
  readonly params: readonly Value[];
  readonly nodes: readonly Node[];
  readonly results: readonly Value[];
}

let nextId = 0;

/**
 * A value that no node has defined yet.
 *
 * @example
 * import { newValue, tensorType } from "tidemark/ir";
 *
 * console.log(newValue(tensorType("f32", [2]), "h").name); // → h
 */
export function newValue(type: TensorType, name?: string): Value {
  return { id: nextId++, type, name };
}

/**
 * A node with some parts changed. Passes make most nodes from others, and engines give every place that copies by `{ ...node }` a
 * layout of its own, so that nothing that reads nodes would know where their parts are.
 */
export function nodeLike(
  node: Node,
  {
    op = node.op,
    inputs = node.inputs,
    attrs = node.attrs,
    outputs = node.outputs,
    regions = node.regions,
    phase = node.phase,
    where = node.where,
    replay = node.replay,
    scope = node.scope,
    within = node.within,
  }: Partial<Node>,
): Node {
  return { op, inputs, attrs, outputs, regions, phase, where, replay, scope, within };
}

/**
 * The only result of a node that has one.
 *
 * @example
 * import { allOps } from "tidemark";
 * import { parse, resultOf } from "tidemark/ir";
 *
 * const text = "func f(x: f32[2]) { y: f32[2] = tanh(x) return y }";
 * for (const { nodes } of parse(text, allOps)) console.log(nodes.map((node) => resultOf(node).name)); // → [y]
 */
export function resultOf(node: Node): Value {
  const [value] = node.outputs;
  invariant(value && node.outputs.length === 1, () => `${node.op.name} has ${node.outputs.length} results`);
  return value;
}
