/**
 * @file Inlining of calls: a node whose meaning is one of its regions (`inlines`) becomes the nodes of that region. Regions
 * are flattened before the nodes that hold them, so one walk over the graph inlines at every depth.
 *
 * Replay numbers distinguish recomputed nodes from the first computation. A region is a template that may be inlined many
 * times, so numbers inside it are renamed at each place, while nodes without one take the number of the call:
 *
 *   call ~2 { p = tanh(x)          →      p = tanh(x) ~2
 *             q = tanh(x) ~1 }            q = tanh(x) ~5        5 was not in use
 */

import { at, invariant } from "../base/invariant.ts";
import type { Build } from "../ir/build.ts";
import { type Graph, type Node, newValue, nodeLike, type Phase, type Value } from "../ir/graph.ts";
import { allNodes, rewriteGraph, type Visit } from "../ir/walk.ts";
import type { Pass } from "./pass.ts";

const ORDER: Record<Phase, number> = { forward: 0, backward: 1, update: 2 };

function laterPhase(a: Phase, b: Phase): Phase {
  return ORDER[a] < ORDER[b] ? b : a;
}

/** Appends the region's nodes with its parameters bound to the call's inputs. */
function inlineRegion(b: Build, call: Node, region: Graph, replayOf: (inner: number) => number): readonly Value[] {
  const now = new Map<Value, Value>();
  for (const [i, param] of region.params.entries()) now.set(param, at(call.inputs, i));
  const resolve = (value: Value): Value => {
    const found = now.get(value);
    invariant(found, () => `region ${region.name} reads a value that it does not define`);
    return found;
  };
  // A result without a name of its own takes the call's.
  const names = new Map<Value, string | undefined>();
  for (const [i, result] of region.results.entries()) names.set(result, at(call.outputs, i).name);
  for (const node of region.nodes) {
    const outputs = node.outputs.map((value) => newValue(value.type, value.name ?? names.get(value)));
    b.append(
      nodeLike(node, {
        inputs: node.inputs.map(resolve),
        outputs,
        phase: laterPhase(call.phase, node.phase),
        where: node.where ?? call.where,
        replay: replayOf(node.replay),
        scope: node.scope ?? call.scope,
        within: node.within ?? call.within,
      }),
    );
    for (const [i, value] of node.outputs.entries()) now.set(value, at(outputs, i));
  }
  return region.results.map(resolve);
}

function inlineCalls(graph: Graph): Graph {
  let unused = 1;
  for (const node of allNodes(graph)) unused = Math.max(unused, node.replay + 1);
  const visit: Visit = (b, node) => {
    if (node.op.inlines === undefined) return null;
    const renamed = new Map<number, number>([[0, node.replay]]);
    const replayOf = (inner: number): number => {
      const outer = renamed.get(inner) ?? unused++;
      renamed.set(inner, outer);
      return outer;
    };
    return inlineRegion(b, node, at(node.regions, node.op.inlines), replayOf);
  };
  return rewriteGraph(graph, () => visit);
}

/** Replaces calls by the nodes of their regions. */
export const inline: Pass = { name: "inline", run: inlineCalls };
