/**
 * @file What else can be done with values that do not fit, beside recomputing them: moved to a file, kept in few bits, or all of it,
 * whichever is faster for each. As curves of plans on the axes of the strategies of recomputation.
 */
import { TidemarkError } from "../base/errors.ts";
import type { ProgramPlans } from "../compiler/assemble.ts";
import type { PlannedProgram } from "../compiler/assembler.ts";
import type { LossyRequest, MemoryRequest, SpillRequest } from "../compiler/request.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import type { CurveStrategy } from "./data.ts";

/** What is allowed beside recomputation. */
export interface Allowed {
  readonly spill?: SpillRequest | undefined;
  readonly lossy?: LossyRequest | undefined;
}

/** A plan of a curve. */
export interface AnswerPlan {
  /** Null for plans that aim at no number of bytes. */
  readonly budgetBytes: number | null;
  readonly plan: Candidate<PlannedProgram>;
}

export interface Answer extends Pick<CurveStrategy, "name" | "colour" | "mark"> {
  /** Plans from everything stored to the smallest. */
  plans(count: number): readonly AnswerPlan[];
}

/** One for each way that is allowed, and for all of them together. */
export function answersOf(plans: ProgramPlans, { spill, lossy }: Allowed): readonly Answer[] {
  const moved = (asked: MemoryRequest) => (count: number) => movedPlans(plans, asked, count);
  const answers: Answer[] = [];
  if (spill) {
    const { bytesPerSecond, isHost } = spill;
    const alone = { spill: { bytesPerSecond, isHost, movesOnly: true } };
    answers.push({ name: "move", colour: 3, mark: "triangle", plans: moved(alone) });
    answers.push({
      name: "move and recompute",
      colour: 3,
      mark: "circle",
      plans: moved({ spill: { bytesPerSecond, isHost } }),
    });
  }
  if (lossy) {
    const rounded = (count: number) => plans.lossyForms(lossy).curve(count);
    answers.push({ name: "rounded", colour: 2, mark: "circle", plans: rounded });
  }
  if (spill && lossy) {
    const all = { spill: { bytesPerSecond: spill.bytesPerSecond, isHost: spill.isHost }, lossy };
    answers.push({ name: "move, recompute and round", colour: 5, mark: "circle", plans: moved(all) });
  }
  return answers;
}

/** Plans for budgets at equal ratios, down to the smallest; state in the file allows fewer bytes than recomputation does. */
function movedPlans(plans: ProgramPlans, asked: MemoryRequest, count: number): readonly AnswerPlan[] {
  const most = plans.storeAllFigures.arenaBytes;
  const least = plans.minimumBudgetBytes(asked, "all programs") ?? most;
  const made: AnswerPlan[] = [];
  for (let i = 0; i < count; i++) {
    const budgetBytes = Math.ceil(most * (least / most) ** (i / (count - 1)));
    const plan = planWithin(plans, { ...asked, budgetBytes });
    if (plan && !made.some((other) => other.plan === plan)) made.push({ budgetBytes, plan });
  }
  return made;
}

function planWithin(plans: ProgramPlans, asked: MemoryRequest): Candidate<PlannedProgram> | null {
  try {
    return plans.choose(asked);
  } catch (error) {
    if (error instanceof TidemarkError && error.code === "PlanInfeasible") return null;
    throw error;
  }
}
