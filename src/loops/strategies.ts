/**
 * @file Strategies for loops only, with everything else stored: a rule with one parameter decides which states a loop
 * keeps. If segments are loop bodies, the unit is an iteration:
 *
 *   binomial                     a number of states, placed to recompute the fewest iterations
 *   every-k, segments: "loop"    every k-th state, and those of one piece of k iterations
 *   sqrt, segments: "loop"       the same with k = √n
 *
 * Loops whose reversal the user named stay unchanged. Loops without a bound select states online under every rule.
 */

import type { BudgetLevels, Candidate } from "../plan/budget/budget-levels.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { Strategy } from "../plan/recompute/strategy.ts";
import { type LoopGroup, MOST_OPEN } from "./groups.ts";
import { fewest } from "./options.ts";
import { binomialSchedule, type LoopSchedule, periodicSchedule } from "./schedules.ts";

/** The schedule of a loop of `length` iterations; a share of 0 keeps the most states of the rule, 1 the fewest. */
type LoopRule = (length: number, share: number) => LoopSchedule;

/** The number of parameter values tried for a rule, at equal ratios. */
const COUNT = 16;

/** From `first` to `last` by equal ratios. */
const between = (first: number, last: number, share: number): number =>
  Math.max(1, Math.round(first * (last / first) ** share));

const binomial: LoopRule = (length, share) =>
  binomialSchedule(length, between(Math.max(1, length - 1), fewest({ length }).checkpoints, share));

const periodic: LoopRule = (length, share) =>
  periodicSchedule(length, between(Math.min(2, length), Math.ceil(Math.sqrt(length)), share));

/** The rule of a strategy for loops and its number of plans; null for strategies about operations. */
function ruleOf({ loops }: Strategy, segments: Level): { readonly rule: LoopRule; readonly count: number } | null {
  if (!loops || !(loops.isAlways || segments === "loop")) return null;
  const rule = { binomial, periodic }[loops.schedule];
  return loops.isSingle ? { rule: (length) => rule(length, 1), count: 1 } : { rule, count: COUNT };
}

/** The schedule of a loop of any length. */
export type ScheduleOf = (length: number) => LoopSchedule;

/** The plans of a loop rule, one level for each parameter value. */
export class LoopLevels<R> implements BudgetLevels<R> {
  readonly aims = false;
  readonly costly = false;
  readonly count: number;
  readonly #groups: readonly LoopGroup[];
  readonly #base: Candidate<R>;
  readonly #rule: LoopRule;
  readonly #realise: (scheduleOf: ScheduleOf) => Candidate<R>;
  readonly #plans = new Map<number, readonly Candidate<R>[]>();

  private constructor(
    groups: readonly LoopGroup[],
    base: Candidate<R>,
    { rule, count }: { readonly rule: LoopRule; readonly count: number },
    realise: (scheduleOf: ScheduleOf) => Candidate<R>,
  ) {
    this.count = groups.length === 0 ? 0 : count;
    this.#groups = groups;
    this.#base = base;
    this.#rule = rule;
    this.#realise = realise;
  }

  /** Null for strategies that are about operations. */
  static of<R>(
    [strategy, segments]: readonly [Strategy, Level],
    groups: () => readonly LoopGroup[],
    base: () => Candidate<R>,
    realise: (scheduleOf: ScheduleOf) => Candidate<R>,
  ): LoopLevels<R> | null {
    const found = ruleOf(strategy, segments);
    return found && new LoopLevels(groups(), base(), found, realise);
  }

  #scheduleOf(level: number): ScheduleOf {
    return (length) => this.#rule(length, this.count === 1 ? 1 : (level - 1) / (this.count - 1));
  }

  targetOf(): number {
    return Number.POSITIVE_INFINITY;
  }

  expectedMs(level: number): number {
    const scheduleOf = this.#scheduleOf(level);
    return this.#groups.reduce((ms, { isOpen, length, stepMs }) => {
      return ms + (isOpen ? 0 : stepMs * scheduleOf(length).advances);
    }, this.#base.predictedMs);
  }

  plansAt(level: number): readonly Candidate<R>[] {
    const known = this.#plans.get(level) ?? [this.#realise(this.#scheduleOf(level))];
    this.#plans.set(level, known);
    return known;
  }
}

/** The number of states of a loop without a bound under a rule. */
export const openCheckpoints = (scheduleOf: ScheduleOf): number => scheduleOf(MOST_OPEN + 1).checkpoints;
