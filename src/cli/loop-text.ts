/**
 * @file What the loops of a plan hold for their reverses, in words: one line a loop, equal ones together. Loops inside of
 * others are said once, where they run forward.
 *
 *   64 turns: rows of the last 33, 30 states for the others
 */
import type { Graph, Node } from "../ir/graph.ts";
import { allNodes } from "../ir/walk.ts";
import { DEFAULT_SLOTS, type ScanAttrs, scan, whileLoop } from "../ops/loops.ts";
import { type RecordWhileAttrs, recordWhile } from "../ops/record-while.ts";
import { type RecordAttrs, record } from "../ops/rewind.ts";
import { type UnwindAttrs, unwind } from "../ops/unwind.ts";

const states = (n: number): string => `${n} state${n === 1 ? "" : "s"}`;

function textOf({ op, attrs, phase }: Node): string | null {
  if (op === record) {
    const { length, slots, taped } = attrs as RecordAttrs;
    const held = `${states(slots)}${taped > 0 ? " for the others" : ""}`;
    return `${length} turns: ${taped > 0 ? `rows of the last ${taped}, ` : ""}${held}`;
  }
  if (op === recordWhile) return `while: ${states((attrs as RecordWhileAttrs).slots)}`;
  if (op === unwind) {
    return `while: ${states((attrs as UnwindAttrs).slots || DEFAULT_SLOTS)} beside the reverse`;
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
