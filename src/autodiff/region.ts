/** @file How operations with regions are differentiated (ops/control.ts says what their regions mean). */
import { at, invariant } from "../base/invariant.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { type CallAttrs, type CustomVjpAttrs, call, customJvp, customVjp } from "../ops/control.ts";

export type RegionRule =
  /** A plain call: its nodes take its place. */
  | { readonly kind: "inline"; readonly body: Graph }
  /** A checkpointed call: its nodes run again before their backward. */
  | { readonly kind: "replay"; readonly body: Graph }
  /** x… → y… ++ saved…, and saved… ++ ct of y… → ct of x…; the first `results` are y…. */
  | { readonly kind: "custom_vjp"; readonly results: number; readonly forward: Graph; readonly backward: Graph }
  /** x… ++ t of x… → t of y…, linear in the tangents. */
  | { readonly kind: "custom_jvp"; readonly tangent: Graph };

export function regionRule({ op, attrs, regions }: Node): RegionRule {
  const body = at(regions, 0);
  if (op === call) return { kind: (attrs as CallAttrs).checkpoint ? "replay" : "inline", body };
  if (op === customVjp) {
    return { kind: "custom_vjp", results: (attrs as CustomVjpAttrs).results, forward: body, backward: at(regions, 1) };
  }
  invariant(op === customJvp, () => `${op.name} has no rule for its regions`);
  return { kind: "custom_jvp", tangent: at(regions, 1) };
}
