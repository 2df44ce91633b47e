/**
 * @file Simpler forms: every operation knows its own identities (`simplify`), this pass applies them until none applies.
 * Nodes left without a use are for `dce` to remove.
 */

import { invariant } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import { nodeLike, resultOf } from "../ir/graph.ts";
import { rewriteGraph } from "../ir/walk.ts";
import type { Pass } from "./pass.ts";

/** Far more than any chain of rewrites needs; identities that undo each other are a defect. */
const LIMIT = 100;

/** Whether a node is left as it is. */
type Stays = (node: Node) => boolean;

/**
 * An identity looks at its node and the producers of its inputs, which are final when the node is reached. Nodes that it
 * creates are simplified before the next node, so one walk over the graph suffices.
 */
function settle(b: Build, node: Node, stays: Stays, depth = 0): Value | null {
  invariant(depth < LIMIT, () => `canonicalize: ${node.op.name} still changes after ${LIMIT} rewrites`);
  if (stays(node)) return null;
  const before = b.nodes.length;
  const simpler = node.op.simplify(b, node, node.attrs);
  if (!simpler || b.nodes.length === before) return simpler;
  const now = new Map<Value, Value>();
  const current = (value: Value): Value => now.get(value) ?? value;
  for (const made of b.nodes.splice(before)) {
    const fresh = made.inputs.some((input) => now.has(input))
      ? nodeLike(made, { inputs: made.inputs.map(current) })
      : made;
    const settled = settle(b, fresh, stays, depth + 1);
    if (settled) now.set(resultOf(made), settled);
    else b.append(fresh);
  }
  return current(simpler);
}

/** The pass, but for nodes that stay. */
export function canonicalizing(stays: Stays): Pass {
  const simplifyNode = (b: Build, node: Node): readonly Value[] | null => {
    const simpler = settle(b, node, stays);
    return simpler && [simpler];
  };
  return { name: "canonicalize", after: ["inline"], run: (graph) => rewriteGraph(graph, () => simplifyNode) };
}

/** Applies the operations' own simplifications until none applies. */
export const canonicalize: Pass = canonicalizing(() => false);
