/** @file What plans of one program are to each other: fewer bytes never take a larger arena, and are never faster. */
import { expect } from "vitest";
import { at } from "../../src/base/invariant.ts";
import type { ProgramPlans } from "../../src/compiler/assemble.ts";
import type { PlannedProgram } from "../../src/compiler/assembler.ts";
import type { Candidate } from "../../src/plan/budget/budget-levels.ts";

/** Asks for budgets from everything stored to the smallest, and around the bytes of every plan that was given. */
export function expectOrder(plans: ProgramPlans, count: number): readonly Candidate<PlannedProgram>[] {
  const [most, least] = [plans.storeAll.arenaBytes, plans.least({}).arenaBytes];
  const spread = Array.from({ length: count }, (_, i) => Math.ceil(most * (least / most) ** (i / (count - 1))));
  const given = spread.map((budgetBytes) => plans.choose({ budgetBytes }).arenaBytes);
  const close = given.flatMap((bytes) => [bytes, bytes - 1]).filter((bytes) => bytes >= least);
  const budgets = [...new Set([most * 2, most, ...spread, ...close])].sort((a, b) => b - a);
  const answers = budgets.map((budgetBytes) => plans.choose({ budgetBytes }));
  for (const [i, { arenaBytes, predictedMs }] of answers.entries()) {
    expect(arenaBytes).toBeLessThanOrEqual(at(budgets, i));
    if (i === 0) continue;
    expect(arenaBytes).toBeLessThanOrEqual(at(answers, i - 1).arenaBytes);
    expect(predictedMs).toBeGreaterThanOrEqual(at(answers, i - 1).predictedMs);
  }
  expect(at(answers, answers.length - 1).arenaBytes).toBe(least);
  return answers;
}
