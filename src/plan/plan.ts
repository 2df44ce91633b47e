/**
 * @file The planner: when (order), who shares (alias), where (place), how good (bound).
 *
 *     Program ─ orderSteps ─→ Program ─ assignBuffers ─→ Assignment ─ place ─→ Plan
 *
 * Every phase is a pure function and deterministic: ties are broken by ids in program order. The budget does not change
 * the plan; a plan over budget is an error that lists what is live at the tightest step. Each memory space is placed
 * separately.
 */
import { at } from "../base/invariant.ts";
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { bufferTooLarge, planInfeasible } from "./infeasible.ts";
import { lowAreaOrder, orderSteps } from "./order.ts";
import { place } from "./place.ts";
import {
  heightOf,
  type Layout,
  layoutIn,
  type Plan,
  type ProgramProblem,
  partOf,
  problemIn,
  withCapacity,
} from "./problem.ts";
import { checkProgram, type Program } from "./program.ts";
import type { SpaceId } from "./space.ts";

export interface PlanOptions {
  /** The arena may not be larger; default: no limit. */
  readonly budgetBytes?: number | undefined;
  /** Keep the program's order of steps; default: run steps early where that saves memory. */
  readonly keepOrder?: boolean | undefined;
  /** Work limit of the search for an order, in steps executed; default: about a third of a second. */
  readonly orderWork?: number | undefined;
}

/** Plans a program's memory, or throws `PlanInfeasible` when the arena would exceed the budget. */
export function planProgram(program: Program, options: PlanOptions = {}): Plan {
  return withinBudget(planUnlimited(program, options), options.budgetBytes ?? Number.POSITIVE_INFINITY);
}

/** Plans a program without checking capacities. */
export function planUnlimited(program: Program, options: PlanOptions = {}): Plan {
  checkProgram(program);
  const capacity = options.budgetBytes ?? Number.POSITIVE_INFINITY;
  if (options.keepOrder) return planInOrder(program, capacity);
  const ordered = orderSteps(program, options.orderWork);
  let plan = planInOrder(ordered, capacity);
  // An order with a lower bound is not always packed lower; program order is the other candidate.
  if (ordered !== program && plan.height > plan.bound.bytes) {
    const other = planInOrder(program, capacity);
    if (other.height < plan.height) plan = other;
  }
  return plan;
}

/** A plan of a program with less live on average than `lowest`, its plan, for recomputation to start from. */
export function planLowArea(program: Program, lowest: Plan): Plan {
  return planInOrder(lowAreaOrder(program, lowest.program), Number.POSITIVE_INFINITY);
}

/** The plan under a budget; throws `PlanInfeasible` when the arena exceeds it, or a space or a buffer its limit. */
export function withinBudget(plan: Plan, budgetBytes: number): Plan {
  const limited = withCapacity(plan, budgetBytes);
  const { spaces, buffers } = limited.problem;
  if (spaces.some(({ capacity }, space) => layoutIn(limited, space).height > capacity)) throw planInfeasible(limited);
  for (const { bytes, space, id } of buffers)
    if (bytes > at(spaces, space).largestAllocation) throw bufferTooLarge(limited, id);
  return limited;
}

/** The plan of a program with a known order and known offsets. Nothing is checked: see `validate`. */
export function planAsPlaced(program: Program, { offsets, strategy }: Pick<Plan, "offsets" | "strategy">): Plan {
  checkProgram(program);
  const assignment = assignBuffers(program);
  const layout = (space: SpaceId): Layout => {
    const part = problemIn(assignment.problem, space);
    return { height: heightOf(part, offsets), strategy, bound: boundOf(part) };
  };
  const others = program.spaces.slice(1).map((_, i) => layout(i + 1));
  return { ...assignment, offsets, ...layout(0), others };
}

/** A plan for the steps in their current order. */
function planInOrder(program: Program, capacity: number): Plan {
  const assignment = assignBuffers(program, capacity);
  const problem = problemIn(assignment.problem);
  const bound = boundOf(problem);
  if (program.spaces.length === 1) return { ...assignment, ...place(problem, bound.bytes), bound, others: [] };
  return { ...assignment, ...placeSpaces(assignment.problem) };
}

/** Every space is a separate problem, with its buffers renumbered. */
function placeSpaces({ buffers, spaces }: ProgramProblem): Pick<Plan, "offsets" | "others" | keyof Layout> {
  const offsets = new Array<number>(buffers.length).fill(0);
  const layoutOf = (space: SpaceId): Layout => {
    const { capacity, alignment } = at(spaces, space);
    const ids = buffers.filter((b) => b.space === space).map((b) => b.id);
    const part = partOf({ buffers, capacity, alignment }, ids);
    const bound = boundOf(part);
    const { height, strategy, offsets: partOffsets } = place(part, bound.bytes);
    ids.forEach((id, index) => {
      offsets[id] = at(partOffsets, index);
    });
    return { height, strategy, bound: { ...bound, live: bound.live.map((index) => at(ids, index)) } };
  };
  const first = layoutOf(0);
  return { offsets, ...first, others: spaces.slice(1).map((_, i) => layoutOf(i + 1)) };
}
