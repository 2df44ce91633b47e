/**
 * @file All plans of one program: a series of budgets from storing everything down to the least that any operation needs,
 * planned for only as far as a request needs it.
 *
 * ```
 *   bytes  S ┤●                       S: everything is stored
 *            ┤ ○                      levels at fixed ratios; their plans do not depend on the request
 *          B ┼╌╌●╌╌╌╌╌╌╌╌             a budget B is answered by the fastest plan of the front below it
 *            ┤     ●
 *            ┤         ●     ●        levels that the bisection does not reach are not planned for
 *          L ┤                        L: operands of the largest operation
 *            └──────────────── ms
 * ```
 *
 * Monotone by construction (pareto-front.ts): every answer is the fastest fitting plan of one fixed set, in which a smaller
 * plan is a slower one. Each rule has a front, and the fastest of monotone answers is monotone too; of equally fast ones
 * the smaller is taken. Very large programs, of which each plan takes seconds, take the first that fits instead: there a
 * larger budget may be slower by a little.
 */
import type { BudgetLevels, Candidate } from "./budget-levels.ts";
import { ParetoFront } from "./pareto-front.ts";

/** Levels that are planned for, as plans are larger or smaller than expected. */
const AROUND = 3;
/** Levels that are planned for before a quick answer is given up. */
const QUICK_LEVELS = 2;

export class PlanFamily<R> {
  /** Everything is stored. */
  readonly base: Candidate<R>;
  readonly #levels: BudgetLevels<R>;
  readonly #front: ParetoFront<R>;
  readonly #rules: readonly PlanFamily<R>[];

  /** `rules`: families of the same program whose plans are this one's too. */
  constructor(base: Candidate<R>, levels: BudgetLevels<R>, rules: readonly PlanFamily<R>[] = []) {
    this.base = base;
    this.#levels = levels;
    this.#front = new ParetoFront(base, levels);
    this.#rules = rules;
  }

  /** The fastest plan within a budget; null where none was found. */
  within(budgetBytes: number): Candidate<R> | null {
    if (this.base.arenaBytes <= budgetBytes) return this.base;
    const plans = [this.#within(budgetBytes), ...this.#rules.map((family) => family.within(budgetBytes))];
    return plans.reduce((a, b) => (b && isFaster(b, a) ? b : a));
  }

  #within(budgetBytes: number): Candidate<R> | null {
    return this.#levels.costly ? this.#firstWithin(budgetBytes) : this.#front.within(budgetBytes);
  }

  #firstWithin(budgetBytes: number): Candidate<R> | null {
    const first = this.#ofFirstLevels(budgetBytes, this.#levels.count);
    if (first) return first;
    // The smallest plan may be one for a larger target.
    const least = this.#least();
    return least.arenaBytes <= budgetBytes ? least : null;
  }

  /** The plan of the first level within a budget that has one, of at most so many levels. */
  #ofFirstLevels(budgetBytes: number, most: number): Candidate<R> | null {
    const { count } = this.#levels;
    let level = 1;
    while (level <= count && this.#levels.targetOf(level) > budgetBytes) level++;
    for (const end = Math.min(count, level + most - 1); level <= end; level++) {
      const plans = this.#levels.plansAt(level);
      // A level without plans has none below it.
      if (plans.length === 0) break;
      const fitting = plans.filter(({ arenaBytes }) => arenaBytes <= budgetBytes);
      if (fitting.length > 0) return fitting.reduce((a, b) => (isFaster(b, a) ? b : a));
    }
    return null;
  }

  /**
   * A plan within a budget, for a fraction of the work of `within`: that of the level next below it. It is seldom slower, but
   * plans for different budgets are not in order. Null where that level and the next have none.
   */
  quickWithin(budgetBytes: number): Candidate<R> | null {
    if (this.base.arenaBytes <= budgetBytes) return this.base;
    return this.#ofFirstLevels(budgetBytes, QUICK_LEVELS);
  }

  /** The smallest plan whose predicted time is at most `slowdown` times that of storing everything. */
  slowedBy(slowdown: number): Candidate<R> {
    const plans = [this.#slowedBy(slowdown), ...this.#rules.map((family) => family.slowedBy(slowdown))];
    return plans.reduce((a, b) => (isSmaller(b, a) ? b : a));
  }

  #slowedBy(slowdown: number): Candidate<R> {
    const limit = this.base.predictedMs * slowdown;
    const last = this.#lowest((level) => this.#levels.expectedMs(level) <= limit);
    // If plans take longer than expected, larger targets follow.
    for (let from = this.#levels.costly ? last : last + 1; from >= 1; from -= AROUND) {
      const smallest = this.#smallest(from, (candidate) => candidate.predictedMs <= limit);
      if (smallest !== this.base) return smallest;
    }
    return this.base;
  }

  /** The smallest plan found. */
  least(): Candidate<R> {
    const plans = [this.#least(), ...this.#rules.map((family) => family.least())];
    return plans.reduce((a, b) => (isSmaller(b, a) ? b : a));
  }

  #least(): Candidate<R> {
    if (!this.#levels.costly) return this.#front.least();
    const last = this.#lowest((level) => this.#levels.expectedMs(level) < Number.POSITIVE_INFINITY);
    return this.#smallest(last, () => true);
  }

  /** Plans from everything stored to the smallest, as the strategy has them: by budget, or all of a rule's. */
  curve(points: number): readonly { readonly budgetBytes: number | null; readonly plan: Candidate<R> }[] {
    const { count, aims } = this.#levels;
    if (!aims) {
      const all = Array.from({ length: count }, (_, i) => this.#levels.plansAt(i + 1)).flat();
      return all.map((plan) => ({ budgetBytes: null, plan }));
    }
    const [most, least] = [this.base.arenaBytes, this.least().arenaBytes];
    const budgets = Array.from({ length: points }, (_, i) => Math.ceil(most * (least / most) ** (i / (points - 1))));
    return [...new Set(budgets)].flatMap((budgetBytes) => {
      const plan = this.within(budgetBytes);
      return plan ? [{ budgetBytes, plan }] : [];
    });
  }

  /** The smallest allowed plan of a level and of those above it. */
  #smallest(from: number, allowed: (candidate: Candidate<R>) => boolean): Candidate<R> {
    let best = this.base;
    const { costly } = this.#levels;
    for (
      let level = Math.min(from, this.#levels.count), tried = 0;
      level >= 1 && tried < AROUND && !(costly && best !== this.base);
      level--
    ) {
      if (this.#levels.expectedMs(level) === Number.POSITIVE_INFINITY) continue;
      for (const candidate of this.#levels.plansAt(level)) {
        if (allowed(candidate) && isSmaller(candidate, best)) best = candidate;
      }
      tried += 1;
    }
    return best;
  }

  /** The lowest level with a property that all levels above it have too, by bisection. */
  #lowest(holds: (level: number) => boolean): number {
    let [yes, no] = [0, this.#levels.count + 1];
    while (no - yes > 1) {
      const middle = (yes + no) >> 1;
      if (holds(middle)) yes = middle;
      else no = middle;
    }
    return yes;
  }
}

export function isFaster<R>(a: Candidate<R>, b: Candidate<R> | null): boolean {
  if (b === null || a.predictedMs < b.predictedMs) return true;
  return a.predictedMs === b.predictedMs && a.arenaBytes < b.arenaBytes;
}

export function isSmaller<R>(a: Candidate<R>, b: Candidate<R>): boolean {
  if (a.arenaBytes < b.arenaBytes) return true;
  return a.arenaBytes === b.arenaBytes && a.predictedMs < b.predictedMs;
}
