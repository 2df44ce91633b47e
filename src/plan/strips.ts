/**
 * @file The parts of a plan that run in strips of rows (loops/strips), for reports: which value is never whole, and what that
 * saves.
 */
import { formatBytes } from "../base/bytes.ts";
import { loopOf } from "../ir/control.ts";
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { nameValues } from "./names.ts";
import type { Plan } from "./problem.ts";
import type { PlanStep } from "./program.ts";

/** A loop over strips. */
export interface StripReport {
  /** The largest value inside of it. */
  readonly value: string;
  readonly strips: number;
  readonly rows: number;
  /** Of that value: a strip of it, and all strips. */
  readonly stripBytes: number;
  readonly wholeBytes: number;
  /** Of sums over rows, which the loop carries from strip to strip. */
  readonly carriedBytes: number;
  readonly where: string | null;
}

/** Values that are stored in the workspace of a body, and so once for all strips. */
function ownValues({ program, problem, bufferOf }: Plan): readonly Value[] {
  return program.steps
    .flatMap(({ writes }) => writes)
    .filter((value) => problem.buffers[bufferOf.get(value) ?? -1]?.kind !== "persistent");
}

/** What a step does in strips; null for one that does not. */
export function stripReport({ node, bodies = [] }: PlanStep): StripReport | null {
  const [loop, [body]] = [loopOf(node), bodies];
  const stored = body ? ownValues(body) : [];
  if (!loop || loop.strip === 0 || !body || stored.length === 0) return null;
  const largest = stored.reduce((a, b) => (byteLength(b.type) > byteLength(a.type) ? b : a));
  const stripBytes = byteLength(largest.type);
  return {
    value: nameValues(body.program)(largest),
    strips: loop.length,
    rows: loop.strip,
    stripBytes,
    wholeBytes: stripBytes * loop.length,
    carriedBytes: loop.last.reduce((sum, { type }) => sum + byteLength(type), 0),
    where: node.where ?? null,
  };
}

/** Loops over strips in order, those inside of other loops included. */
export function stripReports(plan: Plan): readonly StripReport[] {
  return plan.program.steps.flatMap((step) => {
    const own = stripReport(step);
    return [...(own ? [own] : []), ...(step.bodies ?? []).flatMap(stripReports)];
  });
}

/** `tok in 16 strips of 512 rows: 98.2 MiB at a time instead of 1.53 GiB, sums of 147 MiB carried`. */
export function stripText({ value, strips, rows, stripBytes, wholeBytes, carriedBytes }: StripReport): string {
  const carried = carriedBytes === 0 ? "" : `, sums of ${formatBytes(carriedBytes)} carried`;
  const bytes = `${formatBytes(stripBytes)} at a time instead of ${formatBytes(wholeBytes)}`;
  return `${value} in ${strips} strips of ${rows} rows: ${bytes}${carried}`;
}
