/**
 * @file From a program and its plans to what the page is given. Plans of budgets are made when they are asked for, once
 * each; a page that is written to a file gets those of a few budgets between everything stored and the smallest.
 *
 * Reasons of values come with a plan that goes into a file. Where there is somebody to ask they are worked out one value
 * at a time: an entry then names its plan, `budget`, and what is inside of its loops, `budget/STEP.BODY/…`.
 */
import { formatBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import type { Candidate } from "../plan/budget/rungs.ts";
import { explainValue } from "../plan/explain.ts";
import { planJson } from "../plan/json.ts";
import type { Plan } from "../plan/problem.ts";
import type { ProgramPlans } from "../runtime/assemble.ts";
import type { Made } from "../runtime/assembler.ts";
import type { CurvePoint, PlanReply, ViewCurve, ViewEntry } from "./data.ts";
import { pictureOfPlan } from "./from-plan.ts";

/** A plan with the budget it was made for, and all reasons. */
export function entryOf(label: string, made: Plan, predictedMs: number, budgetBytes: number | null): ViewEntry {
  const picture = pictureOfPlan(planJson(withBudget(made, budgetBytes), { stories: true }));
  return { label, budgetBytes, predictedMs, picture, asks: null };
}

/** The same without reasons: they are asked for by this name. */
export function askingEntry(
  label: string,
  made: Plan,
  predictedMs: number,
  budgetBytes: number | null,
  asks: string,
): ViewEntry {
  const picture = pictureOfPlan(planJson(withBudget(made, budgetBytes)));
  return { label, budgetBytes, predictedMs, picture, asks };
}

function withBudget(made: Plan, budgetBytes: number | null): Plan {
  return { ...made, problem: { ...made.problem, capacity: budgetBytes ?? Number.POSITIVE_INFINITY } };
}

/** What the page asks of whoever has the plans. */
export interface LivePlans {
  curve(): ViewCurve;
  within(budgetBytes: number): PlanReply;
  /** Sentences about a value of a plan that was given out; null where there is no such value. */
  story(asks: string, value: number): readonly string[] | null;
}

/**
 * Answers for the page from one program's plans.
 * @param first the plan that the page has already, under the name `first`
 */
export function livePlans(plans: ProgramPlans, points: number, first: Plan | null = null): LivePlans {
  let known: ViewCurve | null = null;
  const given = new Map<string, Plan>(first ? [[FIRST, first]] : []);
  return {
    curve() {
      known ??= curveOf(plans, points).curve;
      return known;
    },
    within(budgetBytes) {
      try {
        const { result, predictedMs } = plans.choose({ budgetBytes });
        const asks = `${budgetBytes}`;
        given.set(asks, result.plan);
        const label = `budget ${formatBytes(budgetBytes)}`;
        return { entry: askingEntry(label, result.plan, predictedMs, budgetBytes, asks) };
      } catch (error) {
        if (error instanceof TidemarkError && error.code === "PlanInfeasible") return { refusal: error.message };
        throw error;
      }
    },
    story(asks, value) {
      const [name = "", ...inside] = asks.split("/");
      const plan = planInside(given.get(name), inside);
      return plan ? storyOf(plan, value) : null;
    },
  };
}

/** The name of the plan that a page starts with. */
export const FIRST = "first";

/** Follows `STEP.BODY` after `STEP.BODY` into loops and branches. */
function planInside(plan: Plan | undefined, path: readonly string[]): Plan | undefined {
  const [head, ...rest] = path;
  if (head === undefined || !plan) return plan;
  const [step = -1, body = -1] = head.split(".").map(Number);
  return planInside(plan.program.steps[step]?.bodies?.[body], rest);
}

/** What `explainValue` says about a value by its number in the plan's JSON. */
export function storyOf(plan: Plan, value: number): readonly string[] | null {
  const found = [...plan.bufferOf.keys()][value];
  return found ? explainValue(plan, found).sentences : null;
}

/**
 * Where loops can be run in other forms, smaller plans than those of operations alone: between the smallest of either.
 * Budgets are spread by equal ratios.
 */
function belowFamily(plans: ProgramPlans, fromBytes: number, count: number) {
  const least = plans.least({});
  if (least.arenaBytes >= fromBytes) return [];
  const ratio = least.arenaBytes / fromBytes;
  const budgets = Array.from({ length: count }, (_, i) => Math.ceil(fromBytes * ratio ** ((i + 1) / count)));
  return [...budgets.slice(0, -1), least.arenaBytes].map((budgetBytes) => ({
    ...{ budgetBytes, plan: plans.choose({ budgetBytes }) },
  }));
}

/** The curve of the default strategy, with the plan of each point; equal plans are one point. */
export function curveOf(plans: ProgramPlans, count: number): { curve: ViewCurve; candidates: Candidate<Made>[] } {
  const { storeAll } = plans;
  const operations = plans.family("auto").curve(count);
  const smallest = Math.min(storeAll.arenaBytes, ...operations.map(({ plan }) => plan.arenaBytes));
  const found = [...operations, ...belowFamily(plans, smallest, count)];
  const candidates: Candidate<Made>[] = [];
  const points: CurvePoint[] = [];
  for (const { budgetBytes, plan } of [{ budgetBytes: storeAll.arenaBytes, plan: storeAll }, ...found]) {
    if (candidates.includes(plan)) continue;
    candidates.push(plan);
    const { arenaBytes, predictedMs } = plan;
    points.push({ budgetBytes: budgetBytes ?? arenaBytes, arenaBytes, predictedMs, entry: null });
  }
  const floorBytes = Math.min(plans.floorBytes(), ...points.map((point) => point.arenaBytes));
  return { curve: { points, floorBytes }, candidates };
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
