/** @file The independent validator's verdict as an error. A file of its own: programs without a budget load no validator. */
import { TidemarkError } from "../base/errors.ts";
import type { Plan } from "../plan/problem.ts";
import { validate } from "../plan/validate.ts";

/** Throws when independent code finds a plan broken. */
export function requireValidPlan(plan: Plan): void {
  const broken = validate(plan.program, plan);
  if (broken.length === 0) return;
  throw new TidemarkError("InvalidPlan", broken.map((b) => `${b.rule}: ${b.message}`).join("\n  "), {
    help: "this is an internal error of the planner: report it with the text of the traced graph",
  });
}
