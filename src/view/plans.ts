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

/** A curve, and the plan of each of its points. */
export interface PlannedCurve {
  readonly curve: ViewCurve;
  readonly candidates: readonly Candidate<Made>[];
}

/**
 * The curve as it becomes known: what is chosen for budgets from everything stored to the smallest, spread by equal ratios.
 * Equal plans are one point. The last one is the whole.
 */
export function* curvesOf(plans: ProgramPlans, count: number): Generator<PlannedCurve, PlannedCurve> {
  const candidates = [plans.storeAll];
  const points = [pointOf(plans.storeAll, plans.storeAll.arenaBytes)];
  const most = plans.storeAll.arenaBytes;
  const sofar = (): PlannedCurve => {
    const floorBytes = Math.min(plans.floorBytes(), ...points.map((point) => point.arenaBytes));
    return { candidates: [...candidates], curve: { floorBytes, points: [...points] } };
  };
  const least = plans.least({}).arenaBytes;
  for (let i = 1; i < count && least < most; i++) {
    const budgetBytes = i === count - 1 ? least : Math.ceil(most * (least / most) ** (i / (count - 1)));
    const plan = plans.choose({ budgetBytes });
    if (candidates.includes(plan)) continue;
    candidates.push(plan);
    points.push(pointOf(plan, budgetBytes));
    yield sofar();
  }
  return sofar();
}

export function pointOf({ arenaBytes, predictedMs }: Candidate<Made>, budgetBytes: number): CurvePoint {
  return { budgetBytes, arenaBytes, predictedMs, entry: null };
}

/** The whole curve. */
export function curveOf(plans: ProgramPlans, count: number): PlannedCurve {
  const curves = curvesOf(plans, count);
  for (;;) {
    const { done, value } = curves.next();
    if (done) return value;
  }
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
