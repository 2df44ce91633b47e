/**
 * @file When values of a program's forward pass are given back. In Python a value lives until the statement that reads it last is done, which
 * may be several operations later: in `h = norm(h + x)` the old h is there until the norm has run. Recorded stacks say which operations
 * belong to one statement; without them each operation is one.
 */
import type { Pt2Node, Pt2Program } from "../../formats/pt2-program.ts";
import { outputNames } from "./call.ts";

/** Names of values in an argument of any kind. */
export function namesIn(json: unknown): readonly string[] {
  if (Array.isArray(json)) return json.flatMap(namesIn);
  if (typeof json !== "object" || json === null) return [];
  return Object.entries(json).flatMap(([key, value]) =>
    key === "name" && typeof value === "string" ? [value] : namesIn(value),
  );
}

const stackOf = ({ metadata }: Pt2Node): string => (metadata?.stack_trace ?? "").trim();

/** The last operation of the statement that each operation belongs to. */
function statementEnds(nodes: readonly Pt2Node[]): readonly number[] {
  const stacks = nodes.map(stackOf);
  return stacks.map((stack, i) => {
    if (stack === "") return i;
    let end = i;
    while (end + 1 < stacks.length && stacks[end + 1]?.startsWith(`${stack}\n`)) end++;
    return end;
  });
}

/** For each operation, what nothing reads after it. */
export function lastReads({ nodes, outputs }: Pt2Program): readonly (readonly string[])[] {
  const last = new Map<string, number>();
  const ends = statementEnds(nodes);
  nodes.forEach((node, i) => {
    for (const name of outputNames(node.outputs)) if (name !== null) last.set(name, i);
    for (const { arg } of node.inputs) for (const name of namesIn(arg)) last.set(name, ends[i] ?? i);
  });
  for (const { argument } of outputs) for (const name of namesIn(argument)) last.set(name, nodes.length);
  const dropped: string[][] = nodes.map(() => []);
  for (const [name, at] of last) dropped[at]?.push(name);
  return dropped;
}
