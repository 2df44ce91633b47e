/** @file How operations with regions are differentiated (ops/control.ts defines what their regions mean). */
import { invariant } from "../base/invariant.ts";
import type { Node } from "../ir/graph.ts";
import type { RegionRule } from "../ir/op.ts";

/** The rule of an operation with regions; null for others. */
export function regionRule(node: Node): RegionRule | null {
  const { derivative, name } = node.op;
  if (derivative.kind !== "region") return null;
  invariant(derivative.rule, () => `${name} has no rule for its regions`);
  return derivative.rule(node);
}
