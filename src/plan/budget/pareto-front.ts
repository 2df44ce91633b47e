/**
 * @file A Pareto front of plans: each next one is smaller and slower than the one before. All requests are answered from it,
 * so a larger budget is never slower and a smaller one never takes a larger arena, without exception.
 *
 * The plans of levels are not in order: a plan for fewer bytes is now and then the faster one. Planning for all levels would
 * settle that, and take ten times as long as a request may. Instead levels are planned for by bisection, and a plan is taken
 * only if it lies between those that were taken before it, in bytes *and* in time:
 *
 * ```
 *   bytes ┤● above                           a gap: two neighbours and the levels between them
 *         ┤┌─────────────────┐
 *       T ┤│· · · ●· · · · · │               the plan of the middle level lies inside: two gaps
 *         ┤│ ×               │               × is faster than the answer to larger budgets: not taken
 *         ┤└─────────────────┘
 *         ┤                   ● below
 *         └──────────────────────── ms
 * ```
 *
 * A plan that is taken in a gap lies between its ends, so any two plans of the front are in order, and the gaps depend on the
 * program alone, not on earlier requests. A request descends the tree of gaps and plans for as many levels as the logarithm of
 * their number. The price: plans that are better than those of neighbouring levels are not taken.
 */
import { at } from "../../base/invariant.ts";
import type { BudgetLevels, Candidate } from "./budget-levels.ts";

/** A plan that fits and takes so much longer than one that nearly fits is poor: the next level is planned for too. */
const POOR = 1.02;
/** Gaps whose ends are so near in time are left as they are. */
const NEAR = 1.0005;
/** Levels around the lowest that are planned for in the end: some of them may be smaller than those of the bisection. */
const AROUND = 3;

/** The part of levels that a front uses. */
export type FrontLevels<R> = Pick<BudgetLevels<R>, "count" | "aims" | "targetOf" | "plansAt">;

/** Two neighbours of the front so far, and the levels whose plans may lie between them. */
interface Gap<R> {
  readonly above: Candidate<R>;
  /** Null below the smallest plan. */
  readonly below: Candidate<R> | null;
  readonly levels: readonly number[];
  /** The level of `above`. */
  readonly last: number;
  /** Plans that were not taken so far, of which some may lie here in the end; null once that is decided. */
  readonly spare: readonly Candidate<R>[] | null;
}

export class ParetoFront<R> {
  readonly #levels: FrontLevels<R>;
  readonly #whole: Gap<R>;
  readonly #parts = new Map<Gap<R>, readonly Gap<R>[]>();

  /** `top` is the largest plan and the fastest. */
  constructor(top: Candidate<R>, levels: FrontLevels<R>) {
    const all = Array.from({ length: levels.count }, (_, i) => i + 1);
    this.#levels = levels;
    this.#whole = { above: top, below: null, levels: all, last: 0, spare: [] };
  }

  /** The fastest plan within a number of bytes that is too small for `top`; null if there is none. */
  within(budgetBytes: number): Candidate<R> | null {
    return this.#gapOf((plan) => plan.arenaBytes <= budgetBytes).below;
  }

  /** The smallest plan. */
  least(): Candidate<R> {
    return this.#gapOf(() => false).above;
  }

  /** The gap, closed, between the plans for which a property does not hold and those for which it does. */
  #gapOf(holds: (plan: Candidate<R>) => boolean): Gap<R> {
    let gap = this.#whole;
    for (let parts = this.#partsOf(gap); parts.length > 0; parts = this.#partsOf(gap)) {
      gap = parts.find(({ below }) => below === null || holds(below)) ?? at(parts, parts.length - 1);
    }
    return gap;
  }

  #partsOf(gap: Gap<R>): readonly Gap<R>[] {
    const parts = this.#parts.get(gap) ?? this.#split(gap);
    this.#parts.set(gap, parts);
    return parts;
  }

  #split(gap: Gap<R>): readonly Gap<R>[] {
    const { above, below, levels, last, spare } = gap;
    if (spare === null || (below && below.predictedMs <= above.predictedMs * NEAR)) return [];
    if (levels.length === 0) return this.#close(gap, spare);
    const middle = levels.length >> 1;
    const target = this.#levels.targetOf(at(levels, middle));
    const { plans, count } = this.#plansFrom(levels, middle, target);
    const fitting = plans.filter(({ arenaBytes }) => arenaBytes <= target);
    const taken = plansBetween(fitting, above, below);
    const [left, right] = [levels.slice(0, middle), levels.slice(middle + count)];
    const rest = [...spare, ...plans];
    const smallest = taken.at(-1);
    if (!smallest) {
      // Where plans are faster than the answer to larger budgets, smaller targets may have slower ones; otherwise larger may.
      const isFast = fitting.some(({ predictedMs }) => predictedMs <= above.predictedMs);
      return [{ ...gap, levels: isFast ? right : left, spare: rest }];
    }
    // Levels that aim at more bytes than were reached have nothing new.
    const isLower = (level: number): boolean => this.#levels.targetOf(level) < smallest.arenaBytes;
    const lower = this.#levels.aims ? right.filter(isLower) : right;
    const better = below ? null : this.#betterBelow(smallest, lower);
    if (better !== null) {
      return [{ ...gap, levels: [...left, ...lower.filter((level) => level >= better)], spare: rest }];
    }
    const reached = at(levels, middle + count - 1);
    return between(above, taken, below, (start) => {
      if (start === above) return { levels: left, last, spare: rest };
      return { levels: start === smallest ? lower : [], last: reached, spare: rest };
    });
  }

  /** Plans of the middle level, and of the next where they are poor, with the number of these levels. */
  #plansFrom(levels: readonly number[], middle: number, target: number) {
    const plans = this.#levels.plansAt(at(levels, middle));
    const fastest = Math.min(...plans.map(({ predictedMs }) => predictedMs));
    const isGood = (plan: Candidate<R>): boolean => plan.arenaBytes <= target && plan.predictedMs <= fastest * POOR;
    const next = levels[middle + 1];
    if (next === undefined || plans.length === 0 || plans.some(isGood)) return { plans, count: 1 };
    return { plans: [...plans, ...this.#levels.plansAt(next)], count: 2 };
  }

  /**
   * A level whose plan is smaller than the given one and no slower. With nothing below it yet, a poor plan would exclude all
   * smaller ones that are faster, so it is taken only if the next plan below it is slower.
   */
  #betterBelow({ arenaBytes, predictedMs }: Candidate<R>, levels: readonly number[]): number | null {
    for (let rest = levels; rest.length > 0; ) {
      const level = at(rest, rest.length >> 1);
      const smaller = this.#levels.plansAt(level).filter((plan) => plan.arenaBytes < arenaBytes);
      if (smaller.length > 0) return smaller.some((plan) => plan.predictedMs <= predictedMs) ? level : null;
      rest = rest.slice(0, rest.length >> 1);
    }
    return null;
  }

  /** No level is left: plans of other levels that lie here are taken; below the smallest plan, also of levels around it. */
  #close({ above, below, last }: Gap<R>, spare: readonly Candidate<R>[]): readonly Gap<R>[] {
    const plans = below ? spare : [...spare, ...this.#around(last)];
    return between(above, plansBetween(plans, above, below), below, () => ({ levels: [], last, spare: null }));
  }

  #around(last: number): readonly Candidate<R>[] {
    const around: Candidate<R>[] = [];
    for (const step of [1, -1]) {
      for (
        let level = last + step;
        Math.abs(level - last) <= AROUND && level >= 1 && level <= this.#levels.count;
        level += step
      ) {
        const plans = this.#levels.plansAt(level);
        // A level without plans has none below it.
        if (plans.length === 0 && step > 0) break;
        around.push(...plans);
      }
    }
    return around;
  }
}

/** The gaps between two plans when some between them are taken. */
function between<R>(
  above: Candidate<R>,
  taken: readonly Candidate<R>[],
  below: Candidate<R> | null,
  rest: (start: Candidate<R>) => Omit<Gap<R>, "above" | "below">,
): readonly Gap<R>[] {
  return [above, ...taken].map((start, i) => ({ above: start, below: taken[i] ?? below, ...rest(start) }));
}

/** Of some plans those that lie between two others in bytes and in time and are not beaten, from large to small. */
function plansBetween<R>(
  plans: readonly Candidate<R>[],
  above: Candidate<R>,
  below: Candidate<R> | null,
): readonly Candidate<R>[] {
  const [leastBytes, mostMs] = below ? [below.arenaBytes, below.predictedMs] : [-1, Number.POSITIVE_INFINITY];
  const inside = plans.filter(
    ({ arenaBytes, predictedMs }) =>
      arenaBytes < above.arenaBytes &&
      arenaBytes > leastBytes &&
      predictedMs > above.predictedMs &&
      predictedMs < mostMs,
  );
  const steps: Candidate<R>[] = [];
  for (const plan of inside.sort((a, b) => a.predictedMs - b.predictedMs || a.arenaBytes - b.arenaBytes)) {
    if (plan.arenaBytes < (steps.at(-1)?.arenaBytes ?? Number.POSITIVE_INFINITY)) steps.push(plan);
  }
  return steps;
}
