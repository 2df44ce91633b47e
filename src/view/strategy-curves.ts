/** @file The plans of other strategies beside the curve of `auto`, one strategy after the other. */
import type { ProgramPlans } from "../compiler/assemble.ts";
import { STRATEGIES, storeAll } from "../plan/recompute/strategies.ts";
import type { StrategyName } from "../plan/recompute/strategy.ts";
import type { CurveStrategy, ViewCurve } from "./data.ts";

/** Strategies that are drawn unless others are asked for: those that need no solver. `auto` is the curve itself. */
export const DRAWN_STRATEGIES: readonly StrategyName[] = STRATEGIES.filter(
  ({ solver, isFree }) => solver !== "required" && !isFree,
).flatMap(({ name }) => (name === storeAll.name ? [] : [name]));

/**
 * A complete curve with more and more strategies; the last one has all of them and no progress.
 * @param count number of budgets for strategies that aim at bytes
 */
export function* strategyCurves(
  plans: ProgramPlans,
  curve: ViewCurve,
  names: readonly StrategyName[],
  count: number,
): Generator<ViewCurve, undefined> {
  const others: CurveStrategy[] = [];
  if (names.length === 0) yield curve;
  for (const [i, name] of names.entries()) {
    yield { ...curve, others: [...others], progress: { done: i, of: names.length, doing: `strategy ${name}` } };
    others.push(strategyOf(plans, name, count));
  }
  if (names.length > 0) yield { ...curve, others };
}

function strategyOf(plans: ProgramPlans, name: StrategyName, count: number): CurveStrategy {
  const { colour = 0, mark = "cross" } = STRATEGIES.find((strategy) => strategy.name === name)?.look ?? {};
  const points = plans.curve(name, count).map(({ plan: { arenaBytes, predictedMs } }) => ({ arenaBytes, predictedMs }));
  return { name, colour, mark, points };
}
