/**
 * @file Constants: an elementwise operation on constants is a constant. Only where the reference has the very bits that
 * a target would compute, which an operation states itself (`exactInDouble`): integers, bools, and the functions that
 * IEEE 754 rounds correctly. For f32 those are computed in doubles and rounded once more; double rounding does no harm
 * there because 53 ≥ 2·24 + 2 (S. A. Figueroa, "When is double rounding innocuous?", 1995). Results that are NaN are
 * left to the target, whose NaN may have other bits.
 *
 *   full(2) ── mul ── full(6)        one element is computed, the shape is that of the node
 *   full(3) ──╯
 */

import { invariant } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import { rewriteGraph } from "../ir/walk.ts";
import { isFloat, storedNumber, typeOf } from "../kernel/dtype.ts";
import { full, splatOf } from "../ops/create.ts";
import type { Pass } from "./pass.ts";

const scalar = (value: Value): TensorType => tensorType(value.type.dtype, []);

/** The one element of an elementwise node whose inputs are `elements` throughout. */
export function evaluateElement(node: Node, elements: readonly number[]): number {
  const [result] = node.op.evaluate({
    inputs: elements.map((element) => Float64Array.of(element)),
    inTypes: node.inputs.map(scalar),
    outTypes: node.outputs.map(scalar),
    attrs: node.attrs,
    regions: [],
    run: () => invariant(false, () => `${node.op.name} has a region`) as never,
  });
  invariant(result?.length === 1, () => `${node.op.name} is not elementwise`);
  return result[0] as number;
}

function foldNode(b: Build, node: Node): readonly Value[] | null {
  const [output] = node.outputs;
  if (!node.op.exactInDouble || !output || node.inputs.length === 0) return null;
  const elements: number[] = [];
  for (const input of node.inputs) {
    const element = splatOf(b, input);
    if (element === null) return null;
    elements.push(element);
  }
  const exact = evaluateElement(node, elements);
  const { dtype, shape } = output.type;
  const value = storedNumber(dtype, exact);
  // of 64 bits, only numbers that doubles hold
  const isHeld = isFloat(dtype) ? !Number.isNaN(value) : typeOf(dtype).accepts(exact);
  return !isHeld ? null : [b.call(full, [], { dtype, shape, value })];
}

/** Computes elementwise operations on constants, where that keeps every bit. */
export const fold: Pass = { name: "fold", after: ["inline"], run: (graph) => rewriteGraph(graph, () => foldNode) };
