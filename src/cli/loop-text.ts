/**
 * @file What the loops of a plan hold for their reverses, in words: one line a loop, equal ones together. Loops inside of
 * others are said once, where they run forward.
 *
 *   64 turns: rows of the last 33, 30 states for the others
 */
import type { Graph, Node } from "../ir/graph.ts";
import { allNodes } from "../ir/walk.ts";
import { DEFAULT_CHECKPOINTS, type ScanAttrs, scan, whileLoop } from "../ops/loops.ts";
import { type RecordAttrs, record } from "../ops/record.ts";
import { type RewindAttrs, rewind } from "../ops/rewind.ts";

const states = (n: number): string => `${n} state${n === 1 ? "" : "s"}`;

function textOf({ op, attrs, phase }: Node): string | null {
  if (op === record) {
    const { length, checkpoints, taped, split } = attrs as RecordAttrs;
    if (split === "online") return `while: ${states(checkpoints)}`;
    const kept = `${states(checkpoints)}${taped > 0 ? " for the others" : ""}`;
    return `${length} turns: ${taped > 0 ? `rows of the last ${taped}, ` : ""}${kept}`;
  }
  if (op === rewind && !attrs.recorded) {
    return `while: ${states((attrs as RewindAttrs).checkpoints || DEFAULT_CHECKPOINTS)} beside the reverse`;
  }
  if (phase !== "forward") return null;
  if (op === scan) return `${(attrs as ScanAttrs).length} turns: rows`;
  return op === whileLoop && Number(attrs.length) > 0 ? `while of ${Number(attrs.length)} at most: rows` : null;
}

export function loopForms(graph: Graph): readonly string[] {
  const counts = new Map<string, number>();
  for (const node of allNodes(graph)) {
    const text = textOf(node);
    if (text !== null) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, n]) => (n === 1 ? text : `${n} × ${text}`));
}
