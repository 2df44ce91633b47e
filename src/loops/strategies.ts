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

import type { Candidate, Rungs } from "../plan/budget/rungs.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { StrategyName } from "../plan/recompute/strategies.ts";
import { type LoopGroup, MOST_OPEN } from "./groups.ts";
import { fewest } from "./options.ts";
import { binomialSchedule, type LoopSchedule, periodicSchedule } from "./schedules.ts";

/** The schedule of a loop of `length` iterations; a share of 0 keeps the most states of the rule, 1 the fewest. */
type LoopRule = (length: number, share: number) => LoopSchedule;

/** The number of parameter values tried for a rule, at equal ratios. */
const RUNGS = 16;

/** From `first` to `last` by equal ratios. */
const between = (first: number, last: number, share: number): number =>
  Math.max(1, Math.round(first * (last / first) ** share));

const binomial: LoopRule = (length, share) =>
  binomialSchedule(length, between(Math.max(1, length - 1), fewest({ length }).checkpoints, share));

const periodic: LoopRule = (length, share) =>
  periodicSchedule(length, between(Math.min(2, length), Math.ceil(Math.sqrt(length)), share));

/** The rule of a strategy for loops and its number of plans; null for strategies about operations. */
function ruleOf(strategy: StrategyName, segments: Level): { readonly rule: LoopRule; readonly count: number } | null {
  if (strategy === "binomial") return { rule: binomial, count: RUNGS };
  if (segments !== "loop") return null;
  if (strategy === "every-k") return { rule: periodic, count: RUNGS };
  return strategy === "sqrt" ? { rule: (length) => periodic(length, 1), count: 1 } : null;
}

/** The schedule of a loop of any length. */
export type ScheduleOf = (length: number) => LoopSchedule;

/** The plans of a loop rule, one rung for each parameter value. */
export class LoopRungs<R> implements Rungs<R> {
  readonly aims = false;
  readonly large = false;
  readonly costly = false;
  readonly count: number;
  readonly #groups: readonly LoopGroup[];
  readonly #base: Candidate<R>;
  readonly #rule: LoopRule;
  readonly #realise: (scheduleOf: ScheduleOf) => Candidate<R>;
  readonly #climbed = new Map<number, readonly Candidate<R>[]>();

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
    [strategy, segments]: readonly [StrategyName, Level],
    groups: () => readonly LoopGroup[],
    base: () => Candidate<R>,
    realise: (scheduleOf: ScheduleOf) => Candidate<R>,
  ): LoopRungs<R> | null {
    const found = ruleOf(strategy, segments);
    return found && new LoopRungs(groups(), base(), found, realise);
  }

  #scheduleOf(rung: number): ScheduleOf {
    return (length) => this.#rule(length, this.count === 1 ? 1 : (rung - 1) / (this.count - 1));
  }

  targetOf(): number {
    return Number.POSITIVE_INFINITY;
  }

  expectedMs(rung: number): number {
    const scheduleOf = this.#scheduleOf(rung);
    return this.#groups.reduce((ms, { isOpen, length, stepMs }) => {
      return ms + (isOpen ? 0 : stepMs * scheduleOf(length).advances);
    }, this.#base.predictedMs);
  }

  climbed(rung: number): readonly Candidate<R>[] {
    return this.#climbed.get(rung) ?? [];
  }

  climb(rung: number): readonly Candidate<R>[] {
    const known = this.#climbed.get(rung) ?? [this.#realise(this.#scheduleOf(rung))];
    this.#climbed.set(rung, known);
    return known;
  }
}

/** The number of states of a loop without a bound under a rule. */
export const openCheckpoints = (scheduleOf: ScheduleOf): number => scheduleOf(MOST_OPEN + 1).checkpoints;
