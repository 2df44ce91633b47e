/**
 * @file The planner: when (order), who shares (alias), where (place), how good (bound).
 *
 *     Program ─ orderSteps ─→ Program ─ assignBuffers ─→ Assignment ─ place ─→ Plan
 *
 * Every stage is a pure function and deterministic: ties are broken by ids in program order. The budget does not change
 * the plan; a plan over budget is refused with what is live at the tightest step.
 */
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { planInfeasible } from "./infeasible.ts";
import { calmSteps, orderSteps } from "./order.ts";
import { place } from "./place.ts";
import { heightOf, type Plan } from "./problem.ts";
import { checkProgram, type Program } from "./program.ts";

export interface PlanOptions {
  /** The arena may not be larger; default: no limit. */
  readonly budgetBytes?: number | undefined;
  /** Keep the program's order of steps; default: run steps early where that saves memory. */
  readonly keepOrder?: boolean | undefined;
  /** Limits the search for an order, in steps run; default: about a third of a second. */
  readonly orderWork?: number | undefined;
}

/** Plans a program's memory, or throws `PlanInfeasible` when the arena would exceed the budget. */
export function planProgram(program: Program, options: PlanOptions = {}): Plan {
  checkProgram(program);
  const capacity = options.budgetBytes ?? Number.POSITIVE_INFINITY;
  if (options.keepOrder) return withinBudget(planInOrder(program, capacity), capacity);
  const ordered = orderSteps(program, options.orderWork);
  let plan = planInOrder(ordered, capacity);
  // An order with a lower bound is not always packed lower; program order is the other candidate.
  if (ordered !== program && plan.height > plan.bound.bytes) {
    const other = planInOrder(program, capacity);
    if (other.height < plan.height) plan = other;
  }
  return withinBudget(plan, capacity);
}

/** A plan of a program with less live on average than `lowest`, its plan, for recomputation to start from. */
export function planCalmly(program: Program, lowest: Plan): Plan {
  return planInOrder(calmSteps(program, lowest.program), Number.POSITIVE_INFINITY);
}

/** The plan under a budget; throws `PlanInfeasible` when the arena exceeds it. */
export function withinBudget(plan: Plan, budgetBytes: number): Plan {
  const { problem } = plan;
  const limited = problem.capacity === budgetBytes ? plan : { ...plan, problem: { ...problem, capacity: budgetBytes } };
  if (plan.height > budgetBytes) throw planInfeasible(limited);
  return limited;
}

/** The plan of a program whose order and places were decided before. Nothing is checked: see `validate`. */
export function planAsPlaced(program: Program, { offsets, strategy }: Pick<Plan, "offsets" | "strategy">): Plan {
  checkProgram(program);
  const assignment = assignBuffers(program);
  const { problem } = assignment;
  return { ...assignment, offsets, height: heightOf(problem, offsets), strategy, bound: boundOf(problem) };
}

/** A plan for the steps in the order that they have. */
function planInOrder(program: Program, capacity: number): Plan {
  const assignment = assignBuffers(program, capacity);
  const bound = boundOf(assignment.problem);
  return { ...assignment, ...place(assignment.problem, bound.bytes), bound };
}
