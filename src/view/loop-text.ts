/**
 * @file Describes what the loops of a plan keep for their reverses: one line per loop, equal lines merged. Nested loops
 * are listed once, at their forward run.
 *
 *   64 iterations: rows of the last 33, 30 states for the others
 */
import { loopOf, reversalOf } from "../ir/control.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { allNodes } from "../ir/walk.ts";
import { DEFAULT_CHECKPOINTS } from "../ops/loops.ts";

const states = (n: number): string => `${n} state${n === 1 ? "" : "s"}`;

function textOf(node: Node): string | null {
  const [loop, reversal] = [loopOf(node), reversalOf(node)];
  if (reversal && !reversal.isRecorded) {
    return `while: ${states(reversal.checkpoints || DEFAULT_CHECKPOINTS)} in the reverse`;
  }
  if (!loop || loop.strip > 0) return null;
  const { length, test, recording } = loop;
  if (recording) {
    const { checkpoints, taped } = recording;
    if (test) return `while: ${states(checkpoints)}`;
    const rest = `${states(checkpoints)}${taped > 0 ? " for the others" : ""}`;
    return `${length} iterations: ${taped > 0 ? `rows of the last ${taped}, ` : ""}${rest}`;
  }
  if (node.phase !== "forward" || !loop.isBounded) return null;
  return test ? `while of ${length} at most: rows` : `${length} iterations: rows`;
}

export function loopForms(graph: Graph): readonly string[] {
  const counts = new Map<string, number>();
  for (const node of allNodes(graph)) {
    const text = textOf(node);
    if (text !== null) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, n]) => (n === 1 ? text : `${n} × ${text}`));
}
