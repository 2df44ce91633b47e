/**
 * @file Segments at the level that the user names. The parts of a program form a tree (`RecomputeOp.scope`); a unit is a
 * run of forward operations that belong to the same part at that level:
 *
 * ```
 *   scope      stem │ stage/block │ stage/block#2 │ stage#2/block │ head
 *   operation  · ·  │ ·  ·  ·     │ ·  ·  ·       │ ·  ·  ·       │ ·      every operation
 *   layer      ───  │ ─────────── │ ───────────── │ ───────────── │ ──     innermost parts
 *   module     ───  │ ─────────────────────────── │ ───────────── │ ──     outermost parts
 *   region          parts that a checkpoint made; everything between two of them is one unit
 *   loop            an iteration of a loop, which is one operation here: loops are cut, and nothing else (loops/strategies.ts)
 * ```
 */
import { at } from "../../base/invariant.ts";
import { REGION } from "../../ir/graph.ts";
import type { RecomputeProblem } from "./problem.ts";

export const LEVELS = ["operation", "layer", "module", "region", "loop"] as const;
export type Level = (typeof LEVELS)[number];

function partOf(scope: string, level: Level): string {
  const parts = scope.split("/");
  if (level === "layer") return scope;
  if (level === "module") return parts[0] ?? "";
  const last = parts.findLastIndex((part) => part.startsWith(REGION));
  return parts.slice(0, last + 1).join("/");
}

/** Per forward operation its unit, counted from 0. */
export function unitsOf(problem: RecomputeProblem, forward: number, level: Level): readonly number[] {
  if (level === "loop") return Array.from({ length: forward }, () => 0);
  if (level === "operation") return Array.from({ length: forward }, (_, op) => op);
  const units: number[] = [];
  let [unit, before] = [-1, ""];
  for (let op = 0; op < forward; op++) {
    const part = partOf(at(problem.ops, op).scope ?? "", level);
    if (op === 0 || part !== before) unit += 1;
    before = part;
    units.push(unit);
  }
  return units;
}
