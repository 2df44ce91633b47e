/**
 * @file What a real plan tells the planner of recomputation: where its arena is above the target, in the terms of the
 * problem that the plan was made from. A step of the plan belongs to the stage of the first computation that it does, or
 * that comes next; a buffer to the value that it holds first, whichever computation of it that is.
 */
import { at } from "../../base/invariant.ts";
import type { Value } from "../../ir/graph.ts";
import type { Plan } from "../problem.ts";
import type { Conflict } from "../recompute/arena.ts";
import { conflictsOf } from "../recompute/conflicts.ts";
import type { Replayed } from "./replay.ts";
import { liveBytes, type SlicedProgram } from "./slices.ts";

/** Per step of the plan, and for the return, the operation whose first computation is next. */
function stagesOf(plan: Plan, stageOfValue: ReadonlyMap<Value, number>, ops: number): readonly number[] {
  const { steps } = plan.program;
  const stages = new Array<number>(steps.length + 1).fill(ops);
  for (let i = steps.length - 1; i >= 0; i--) {
    const own = at(steps, i).writes.flatMap((value) => stageOfValue.get(value) ?? []);
    stages[i] = own.length > 0 ? Math.max(...own) : at(stages, i + 1);
  }
  return stages;
}

/** Where `plan` is above `target`; empty if it is not. */
export function planConflicts(
  plan: Plan,
  target: number,
  { slices, numberOf }: SlicedProgram,
  { origin }: Pick<Replayed, "origin">,
): readonly Conflict[] {
  if (plan.height <= target) return [];
  const stageOfValue = new Map<Value, number>();
  const numberNow = new Map<Value, number>();
  for (const [node, { of, op, again }] of origin) {
    node.outputs.forEach((value, i) => {
      if (!again) stageOfValue.set(value, op);
      const number = numberOf.get(at(of.outputs, i));
      if (number !== undefined) numberNow.set(value, number);
    });
  }
  const stageOf = stagesOf(plan, stageOfValue, slices.length);
  const tooMany = crowded(plan, target, stageOf);
  if (tooMany.length > 0) return tooMany;
  const { buffers } = plan.problem;
  const numbers = buffers.map(
    ({ values }) => values.map((value) => numberNow.get(value) ?? -1).find((n) => n >= 0) ?? -1,
  );
  return conflictsOf({ buffers, valueIn: numbers, stageOf }, plan.offsets, target);
}

/** Stages in which more is live than the target, whatever the addresses. */
function crowded(plan: Plan, target: number, stageOf: readonly number[]): readonly Conflict[] {
  const excess = new Map<number, number>();
  liveBytes(plan).forEach((bytes, step) => {
    const stage = stageOf[step];
    if (stage !== undefined && bytes > target) excess.set(stage, Math.max(excess.get(stage) ?? 0, bytes - target));
  });
  return [...excess].map(([stage, bytes]) => ({ fromOp: stage, toOp: stage, bytes, values: [] }));
}
