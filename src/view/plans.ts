/**
 * @file Makes the page's data from a program and its plans. Plans of budgets are made on request, once each; a page
 * written to a file contains the plans of a few budgets between everything stored and the smallest.
 */
import { formatBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import type { ProgramPlans } from "../compiler/assemble.ts";
import type { PlannedProgram } from "../compiler/assembler.ts";
import type { Graph } from "../ir/graph.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { planJson } from "../plan/json.ts";
import { type Plan, withCapacity } from "../plan/problem.ts";
import { stripReports, stripText } from "../plan/strips.ts";
import type { CurvePoint, CurveProgress, PlanReply, ViewCurve, ViewEntry } from "./data.ts";
import { pictureOfPlan } from "./from-plan.ts";
import { loopForms } from "./loop-text.ts";
import { type NamedPlans, storyOf } from "./stories.ts";
import { type Beside, strategyCurves } from "./strategy-curves.ts";

/** A plan with the budget it was made for. */
export function entryOf(plan: Plan, entry: Omit<ViewEntry, "picture">): ViewEntry {
  return { ...entry, picture: pictureOfPlan(planJson(withBudget(plan, entry.budgetBytes))) };
}

/**
 * What the sentence of an entry needs: what its loops keep and what runs in strips, if there is any of either, and the figures
 * with everything stored.
 */
export function storedAnd(
  plans: ProgramPlans,
  { graph, plan }: { readonly graph: Graph; readonly plan: Plan },
): Pick<ViewEntry, "loops" | "stored"> {
  const loops = [...loopForms(graph), ...stripReports(plan).map(stripText)];
  return { stored: plans.storeAllFigures, ...(loops.length === 0 ? {} : { loops }) };
}

function withBudget(plan: Plan, budgetBytes: number | null): Plan {
  return withCapacity(plan, budgetBytes ?? Number.POSITIVE_INFINITY);
}

/** The page's requests about plans. */
export interface LivePlans {
  /**
   * Every call adds one more point until the curve is complete, so that other requests need not wait for all of them.
   */
  curve(): ViewCurve;
  within(budgetBytes: number): PlanReply;
  /** Sentences about a value of a plan sent to the page; null if there is no such value. */
  story(asks: string, value: number): readonly string[] | null;
}

/**
 * Answers for the page from one program's plans.
 * @param known plans that the page already has
 * @param beside what is drawn beside `auto`, and what plans of a budget may do beside recomputing
 */
export function livePlans(plans: ProgramPlans, points: number, known: NamedPlans, beside: Beside = {}): LivePlans {
  const curves = growingCurves(plans, points, beside);
  let curve: ViewCurve = { floorBytes: 0, points: [], whole: false };
  const sent = new Map(known);
  return {
    curve() {
      curve = curves.next().value ?? curve;
      return curve;
    },
    within(budgetBytes) {
      try {
        const { result, predictedMs } = plans.choose({ ...beside.allowed, budgetBytes });
        const asks = `budget-${budgetBytes}`;
        sent.set(asks, result.plan);
        const label = `budget ${formatBytes(budgetBytes)}`;
        return {
          entry: entryOf(result.plan, { label, predictedMs, budgetBytes, asks, ...storedAnd(plans, result) }),
        };
      } catch (error) {
        if (error instanceof TidemarkError && error.code === "PlanInfeasible") return { refusal: error.message };
        throw error;
      }
    },
    story: (asks, value) => storyOf(sent, asks, value),
  };
}

/** A curve, and the plan of each of its points. */
export interface PlannedCurve {
  readonly curve: ViewCurve;
  readonly candidates: readonly Candidate<PlannedProgram>[];
}

/**
 * The growing curve: plans for budgets from everything stored to the smallest, at equal ratios. Equal plans are one
 * point. The last curve is complete.
 */
export function* curvesOf(plans: ProgramPlans, count: number): Generator<PlannedCurve, PlannedCurve> {
  const candidates = [plans.storeAll];
  const points = [pointOf(plans.storeAll, plans.storeAll.arenaBytes)];
  const most = plans.storeAll.arenaBytes;
  const sofar = (complete: boolean): PlannedCurve => {
    const floorBytes = Math.min(plans.floorBytes(), ...points.map((point) => point.arenaBytes));
    const progress = { done: points.length, of: count, doing: "the next budget" };
    const curve = { floorBytes, points: [...points], whole: complete, ...(complete ? {} : { progress }) };
    return { candidates: [...candidates], curve };
  };
  const smallest = plans.least({}).arenaBytes;
  for (let i = 1; i < count && smallest < most; i++) {
    const budgetBytes = i === count - 1 ? smallest : Math.ceil(most * (smallest / most) ** (i / (count - 1)));
    const plan = plans.choose({ budgetBytes });
    if (candidates.includes(plan)) continue;
    candidates.push(plan);
    points.push(pointOf(plan, budgetBytes));
    yield sofar(false);
  }
  return sofar(true);
}

/** The first budgets to plan, as fractions of everything stored: an initial curve. */
const FIRST_SHARES = [0.8, 0.65, 0.5] as const;

/**
 * Curves for interactive use: first the cheap points, then all, then other strategies. Other work can run between two of
 * them. The last one has no progress.
 */
export function* growingCurves(
  plans: ProgramPlans,
  count: number,
  beside: Beside = {},
): Generator<ViewCurve, undefined> {
  const { storeAll } = plans;
  const floorBytes = plans.floorBytes();
  const points: CurvePoint[] = [pointOf(storeAll, storeAll.arenaBytes)];
  const sofar = (doing: string): ViewCurve => {
    const progress: CurveProgress = { done: points.length, of: count, doing };
    return { floorBytes, points: [...points], whole: false, progress };
  };
  yield sofar("the next budget");
  for (const [i, share] of FIRST_SHARES.entries()) {
    const budgetBytes = Math.round(storeAll.arenaBytes * share);
    const candidate = budgetBytes < floorBytes ? null : plans.family("auto").within(budgetBytes);
    if (!candidate) continue;
    points.push(pointOf(candidate, budgetBytes));
    yield sofar(i < FIRST_SHARES.length - 1 ? "the next budget" : "the smallest plan");
  }
  // A curve with no more points than the shown one is not an improvement.
  const curves = curvesOf(plans, count);
  for (let step = curves.next(); ; step = curves.next()) {
    const { curve } = step.value;
    if (step.done) {
      yield* strategyCurves(plans, curve, count, beside);
      return;
    }
    if (curve.points.length > points.length) yield curve;
  }
}

function pointOf({ arenaBytes, predictedMs }: Candidate<PlannedProgram>, budgetBytes: number): CurvePoint {
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

/** The name of the plan of an entry of a page. */
export const entryName = (entry: number): string => `plan-${entry}`;

/** The curve with all its plans as entries, for a page without a server; entries are numbered from `first` on. */
export function curveWithEntries(
  plans: ProgramPlans,
  count: number,
  first: number,
  beside: Beside = {},
): { readonly curve: ViewCurve; readonly entries: readonly ViewEntry[]; readonly named: NamedPlans } {
  const { curve, candidates } = curveOf(plans, count);
  const entries = candidates.map(({ arenaBytes, predictedMs, result }, i) => {
    const { budgetBytes = arenaBytes } = curve.points[i] ?? {};
    const label = i === 0 ? "everything stored" : `budget ${formatBytes(budgetBytes)}`;
    const asked = i === 0 ? null : budgetBytes;
    const about = {
      label,
      predictedMs,
      budgetBytes: asked,
      asks: entryName(first + i),
      ...storedAnd(plans, result),
    };
    return entryOf(result.plan, about);
  });
  const points = curve.points.map((point, i) => ({ ...point, entry: first + i }));
  const named = new Map(candidates.map(({ result }, i) => [entryName(first + i), result.plan]));
  const whole = [...strategyCurves(plans, { ...curve, points }, count, beside)].at(-1);
  return { curve: whole ?? { ...curve, points }, entries, named };
}
