/** @file How operations with regions are differentiated (ops/control.ts says what their regions mean). */
import { at, invariant } from "../base/invariant.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { switchOp } from "../ops/branch.ts";
import { type CallAttrs, type CustomVjpAttrs, call, customJvp, customVjp, gated } from "../ops/control.ts";
import { scan, whileLoop } from "../ops/loops.ts";
import { rewind } from "../ops/rewind.ts";

export type RegionRule =
  /** A plain call: its nodes take its place. */
  | { readonly kind: "inline"; readonly body: Graph }
  /** A checkpointed call: its nodes run again before their backward. */
  | { readonly kind: "replay"; readonly body: Graph }
  /** A call whose first result says whether anything flows back through the others. */
  | { readonly kind: "gated"; readonly body: Graph }
  /** x… → y… ++ saved…, and saved… ++ ct of y… → ct of x…; the first `results` are y…. */
  | {
      readonly kind: "custom_vjp";
      readonly maker: string;
      readonly results: number;
      readonly forward: Graph;
      readonly backward: Graph;
    }
  /** x… ++ t of x… → t of y…, linear in the tangents. */
  | { readonly kind: "custom_jvp"; readonly tangent: Graph }
  /** Loops and branches: the derivative is another one (jvp-control.ts, vjp-loops.ts, vjp-switch.ts). */
  | { readonly kind: "scan" | "while" | "rewind" | "switch" };

export function regionRule({ op, attrs, regions }: Node): RegionRule {
  if (op === scan) return { kind: "scan" };
  if (op === whileLoop) return { kind: "while" };
  if (op === rewind) return { kind: "rewind" };
  if (op === switchOp) return { kind: "switch" };
  const body = at(regions, 0);
  if (op === call) return { kind: (attrs as CallAttrs).checkpoint ? "replay" : "inline", body };
  if (op === gated) return { kind: "gated", body };
  if (op === customVjp) {
    const { results, maker = "customVjp" } = attrs as CustomVjpAttrs;
    return { kind: "custom_vjp", maker, results, forward: body, backward: at(regions, 1) };
  }
  invariant(op === customJvp, () => `${op.name} has no rule for its regions`);
  return { kind: "custom_jvp", tangent: at(regions, 1) };
}
