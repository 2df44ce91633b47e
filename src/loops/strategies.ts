/**
 * @file Strategies that are about loops alone, everything else stored: which states a loop holds follows from a rule and one
 * number. With segments that are bodies of loops, a unit is an iteration:
 *
 *   binomial                     so many states, where the fewest iterations are made again for them
 *   every-k, segments: "loop"    every k-th state, and those of one piece of k iterations
 *   sqrt, segments: "loop"       the same with k = √n
 *
 * Loops whose reversal users named are left as they are. Loops without a bound hold states as they go, whatever the rule.
 */

import type { Candidate, Rungs } from "../plan/budget/rungs.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { StrategyName } from "../plan/recompute/strategies.ts";
import { type LoopGroup, MOST_OPEN } from "./groups.ts";
import { fewest } from "./options.ts";
import { binomialSchedule, periodicSchedule, type Schedule } from "./schedules.ts";

/** The schedule of a loop of so many iterations; a share of 0 holds the most states of the rule, 1 the fewest. */
type LoopRule = (length: number, share: number) => Schedule;

/** Numbers of a rule that are tried, at equal ratios. */
const RUNGS = 16;

/** From `first` to `last` by equal ratios. */
const between = (first: number, last: number, share: number): number =>
  Math.max(1, Math.round(first * (last / first) ** share));

const binomial: LoopRule = (length, share) =>
  binomialSchedule(length, between(Math.max(1, length - 1), fewest({ length }).checkpoints, share));

const periodic: LoopRule = (length, share) =>
  periodicSchedule(length, between(Math.min(2, length), Math.ceil(Math.sqrt(length)), share));

/** The rule of a strategy about loops, and how many plans it has; null for strategies that are about operations. */
function ruleOf(strategy: StrategyName, segments: Level): { readonly rule: LoopRule; readonly count: number } | null {
  if (strategy === "binomial") return { rule: binomial, count: RUNGS };
  if (segments !== "loop") return null;
  if (strategy === "every-k") return { rule: periodic, count: RUNGS };
  return strategy === "sqrt" ? { rule: (length) => periodic(length, 1), count: 1 } : null;
}

/** What loops of any length hold. */
export type ScheduleOf = (length: number) => Schedule;

/** The plans of a rule about loops, a rung for each of its numbers. */
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

/** States that a loop without a bound holds by a rule. */
export const openCheckpoints = (scheduleOf: ScheduleOf): number => scheduleOf(MOST_OPEN + 1).checkpoints;
