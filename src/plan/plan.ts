/**
 * @file The planner: when (order), who shares (alias), where (place), how good (bound).
 *
 *     Program ─ orderSteps ─→ Program ─ assignBuffers ─→ Assignment ─ place ─→ Plan
 *
 * Every phase is a pure function and deterministic: ties are broken by ids in program order. The budget of `planProgram` does
 * not change the plan; a plan over budget is an error that lists what is live at the tightest step. `planVariant` alone has a
 * limit that it stops at: an order that is good enough is not improved. Each memory space is placed separately.
 */
import { at } from "../base/invariant.ts";
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { Draft } from "./draft.ts";
import { bufferTooLarge, planInfeasible } from "./infeasible.ts";
import { bestOrder, lowAreaOrder } from "./order.ts";
import { heightOf, type Layout, layoutIn, type Plan, problemIn, withCapacity } from "./problem.ts";
import { checkProgram, type Program } from "./program.ts";
import type { SpaceId } from "./space.ts";

/** Options of {@link planProgram}. */
export interface PlanOptions {
  /** The arena may not be larger; default: no limit. */
  readonly budgetBytes?: number | undefined;
  /** Keep the program's order of steps; default: run steps early where that saves memory. */
  readonly keepOrder?: boolean | undefined;
  /** Work limit of the search for an order, in steps executed; default: about a third of a second. */
  readonly orderWork?: number | undefined;
}

/**
 * Plans a program's memory, or throws `PlanInfeasible` when the arena would exceed the budget.
 *
 * @throws PlanInfeasible where the arena would exceed the budget; an internal error for a program that is not well
 * formed
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { planProgram, validate } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * const again = planProgram(plan.program);
 * console.log(validate(plan.program, again)); // → []
 */
export function planProgram(program: Program, options: PlanOptions = {}): Plan {
  return withinBudget(planUnlimited(program, options), options.budgetBytes ?? Number.POSITIVE_INFINITY);
}

/** Plans a program without checking capacities. */
export function planUnlimited(program: Program, options: PlanOptions = {}): Plan {
  checkProgram(program);
  const given = new Draft(program);
  const plan = options.keepOrder ? given.plan : planOrdered(given, options.orderWork);
  return withCapacity(plan, options.budgetBytes ?? Number.POSITIVE_INFINITY);
}

/** Plans one of many variants of a program: in its own order of steps where the arena then takes at most `enoughBytes`. */
export function planVariant(program: Program, enoughBytes: number, orderWork?: number): Plan {
  checkProgram(program);
  const given = new Draft(program);
  // no placement is below the bound
  const isEnough = given.bound.bytes <= enoughBytes && given.plan.height <= enoughBytes;
  return isEnough ? given.plan : planOrdered(given, orderWork);
}

function planOrdered(given: Draft, orderWork: number | undefined): Plan {
  const ordered = bestOrder(given, orderWork);
  const { plan } = ordered;
  // An order with a lower bound is not always packed lower; program order is the other candidate.
  const isLowest = ordered === given || plan.height <= plan.bound.bytes;
  return isLowest || given.plan.height >= plan.height ? plan : given.plan;
}

/** A plan of a program with less live on average than `lowest`, its plan, for recomputation to start from. */
export function planLowArea(program: Program, lowest: Plan): Plan {
  return new Draft(lowAreaOrder(program, lowest.program)).plan;
}

/**
 * The plan under a budget; throws `PlanInfeasible` when the arena exceeds it, or a space or a buffer its limit.
 *
 * @throws PlanInfeasible where the arena exceeds the budget, or a space or a buffer its limit
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { withinBudget } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(withinBudget(plan, plan.height).height === plan.height); // → true
 */
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
