/** @file The plans of other strategies, and of other ways than recomputation, beside the curve of `auto`, one after the other. */
import type { ProgramPlans } from "../compiler/assemble.ts";
import { STRATEGIES, storeAll } from "../plan/recompute/strategies.ts";
import type { StrategyName } from "../plan/recompute/strategy.ts";
import { type Allowed, type Answer, answersOf } from "./answers.ts";
import type { CurveStrategy, ViewCurve } from "./data.ts";

/** Strategies that are drawn unless others are asked for: those that need no solver. `auto` is the curve itself. */
export const DRAWN_STRATEGIES: readonly StrategyName[] = STRATEGIES.filter(
  ({ solver, isFree }) => solver !== "required" && !isFree,
).flatMap(({ name }) => (name === storeAll.name ? [] : [name]));

/** What is drawn beside `auto`. */
export interface Beside {
  /** Of recomputation; default: none. */
  readonly strategies?: readonly StrategyName[];
  /** Other ways than recomputation; default: none. */
  readonly allowed?: Allowed | undefined;
}

/**
 * A complete curve with more and more strategies; the last one has all of them and no progress.
 * @param count number of budgets for strategies that aim at bytes
 */
export function* strategyCurves(
  plans: ProgramPlans,
  curve: ViewCurve,
  count: number,
  { strategies = [], allowed = {} }: Beside,
): Generator<ViewCurve, undefined> {
  const others: CurveStrategy[] = [];
  const ways = [...answersOf(plans, allowed), ...strategies.map((name) => strategyOf(plans, name))];
  const sofar = (): ViewCurve => {
    const bytes = others.flatMap(({ points }) => points.map(({ arenaBytes }) => arenaBytes));
    return { ...curve, floorBytes: Math.min(curve.floorBytes, ...bytes), others: [...others] };
  };
  if (ways.length === 0) yield curve;
  for (const [i, { name, colour, mark, plans: plansOf }] of ways.entries()) {
    yield { ...sofar(), progress: { done: i, of: ways.length, doing: `strategy ${name}` } };
    const points = plansOf(count).map(({ plan: { arenaBytes, predictedMs } }) => ({ arenaBytes, predictedMs }));
    others.push({ name, colour, mark, points });
  }
  if (ways.length > 0) yield sofar();
}

function strategyOf(plans: ProgramPlans, name: StrategyName): Answer {
  const { colour = 0, mark = "cross" } = STRATEGIES.find((strategy) => strategy.name === name)?.look ?? {};
  return { name, colour, mark, plans: (count) => plans.curve(name, count) };
}
