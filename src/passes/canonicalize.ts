/**
 * @file Simpler forms: every operation knows its own identities (`simplify`), this pass applies them until none applies.
 * Nodes left without a use are for `dce` to remove.
 */
import { invariant } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import type { Graph, Node, Value } from "../ir/graph.ts";
import { rewriteGraph } from "../ir/walk.ts";
import type { Pass } from "./pass.ts";

/** Far more than any chain of rewrites needs; identities that undo each other are a defect. */
const LIMIT = 100;

function simplifyNode(b: Build, node: Node): readonly Value[] | null {
  const simpler = node.op.simplify(b, node, node.attrs);
  return simpler && [simpler];
}

function fixpoint(graph: Graph): Graph {
  let before = graph;
  for (let round = 0; round < LIMIT; round++) {
    const after = rewriteGraph(before, () => simplifyNode);
    if (after === before) return after;
    before = after;
  }
  invariant(false, () => `canonicalize: ${graph.name} still changes after ${LIMIT} rounds`);
}

/** Applies the operations' own simplifications to a fixpoint. */
export const canonicalize: Pass = { name: "canonicalize", after: ["inline"], run: fixpoint };
