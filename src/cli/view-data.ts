/**
 * @file From a program and its plans to what the page is given. Plans of budgets are made when they are asked for, once
 * each; a page that is written to a file gets those of a few budgets between everything stored and the smallest.
 */
import { formatBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import type { Candidate } from "../plan/budget/rungs.ts";
import { type PlanJson, planJson } from "../plan/json.ts";
import type { Plan } from "../plan/problem.ts";
import type { ProgramPlans } from "../runtime/assemble.ts";
import type { Made } from "../runtime/assembler.ts";
import type { CurvePoint, PlanReply, ViewCurve, ViewEntry } from "../view/data.ts";
import { pictureOfPlan } from "../view/from-plan.ts";

/** Reasons take time that grows with the square of the program: seconds here, minutes at six times as many values. */
const MOST_STORIES = 4000;

/** A plan as data, with the reasons of its values unless there are too many. */
export function planData(plan: Plan): PlanJson {
  return planJson(plan, { stories: plan.bufferOf.size <= MOST_STORIES });
}

/** A plan with the budget it was made for. */
export function entryOf(label: string, made: Plan, predictedMs: number, budgetBytes: number | null): ViewEntry {
  const capacity = budgetBytes ?? Number.POSITIVE_INFINITY;
  const plan = { ...made, problem: { ...made.problem, capacity } };
  return { label, budgetBytes, predictedMs, picture: pictureOfPlan(planData(plan)) };
}

export interface LivePlans {
  curve(): ViewCurve;
  within(budgetBytes: number): PlanReply;
}

/** Answers for the page from one program's plans. */
export function livePlans(plans: ProgramPlans, points: number): LivePlans {
  let known: ViewCurve | null = null;
  return {
    curve() {
      known ??= curveOf(plans, points).curve;
      return known;
    },
    within(budgetBytes) {
      try {
        const { result, predictedMs } = plans.choose({ budgetBytes });
        return { entry: entryOf(`budget ${formatBytes(budgetBytes)}`, result.plan, predictedMs, budgetBytes) };
      } catch (error) {
        if (error instanceof TidemarkError && error.code === "PlanInfeasible") return { refusal: error.message };
        throw error;
      }
    },
  };
}

/** The curve of the default strategy, with the plan of each point; equal plans are one point. */
export function curveOf(plans: ProgramPlans, count: number): { curve: ViewCurve; candidates: Candidate<Made>[] } {
  const { storeAll } = plans;
  const found = plans.family("auto").curve(count);
  const candidates: Candidate<Made>[] = [];
  const points: CurvePoint[] = [];
  for (const { budgetBytes, plan } of [{ budgetBytes: storeAll.arenaBytes, plan: storeAll }, ...found]) {
    if (candidates.includes(plan)) continue;
    candidates.push(plan);
    const { arenaBytes, predictedMs } = plan;
    points.push({ budgetBytes: budgetBytes ?? arenaBytes, arenaBytes, predictedMs, entry: null });
  }
  return { curve: { points, floorBytes: plans.floorBytes() }, candidates };
}

/** The same with every plan at hand, for a page without a server; entries are numbered from `first` on. */
export function curveWithEntries(
  plans: ProgramPlans,
  count: number,
  first: number,
): { readonly curve: ViewCurve; readonly entries: readonly ViewEntry[] } {
  const { curve, candidates } = curveOf(plans, count);
  const entries = candidates.map((candidate, i) => {
    const { budgetBytes = candidate.arenaBytes } = curve.points[i] ?? {};
    const label = i === 0 ? "everything stored" : `budget ${formatBytes(budgetBytes)}`;
    return entryOf(label, candidate.result.plan, candidate.predictedMs, i === 0 ? null : budgetBytes);
  });
  const points = curve.points.map((point, i) => ({ ...point, entry: first + i }));
  return { curve: { ...curve, points }, entries };
}
