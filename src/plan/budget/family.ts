/**
 * @file All plans of one program: a ladder of budgets from storing everything down to the least that any operation needs,
 * climbed only as far as a question asks.
 *
 * ```
 *   bytes  S ┤●                       S: everything is stored
 *            ┤ ○                      rungs at fixed ratios; a rung's plan does not depend on the question
 *          B ┼╌╌●╌╌╌╌╌╌╌╌             a budget B is answered by the fastest plan of the staircase below it
 *            ┤     ●
 *            ┤         ●     ●        rungs that the bisection does not come to are not climbed
 *          L ┤                        L: operands of the largest operation
 *            └──────────────── ms
 * ```
 *
 * Monotone by construction (stairs.ts): every answer is the fastest fitting plan of one fixed set, in which a smaller plan
 * is a slower one. Rules have a staircase each, and the fastest of monotone answers is monotone too; of equally fast ones
 * the smaller is taken. Very large programs, whose every plan takes seconds, take the first that fits instead: there a
 * larger budget may be slower by a little.
 */
import type { Candidate, Rungs } from "./rungs.ts";
import { Stairs } from "./stairs.ts";

/** Real plans differ from what was expected, to either side: so many rungs are looked at. */
const AROUND = 3;

export class PlanFamily<R> {
  /** Nothing is computed again. */
  readonly base: Candidate<R>;
  readonly #rungs: Rungs<R>;
  readonly #stairs: Stairs<R>;
  readonly #rules: readonly PlanFamily<R>[];

  /** `rules`: families of the same program whose plans are this one's too. */
  constructor(base: Candidate<R>, rungs: Rungs<R>, rules: readonly PlanFamily<R>[] = []) {
    this.base = base;
    this.#rungs = rungs;
    this.#stairs = new Stairs(base, rungs);
    this.#rules = rules;
  }

  /** The fastest plan within a budget; null where none was found. */
  within(budgetBytes: number): Candidate<R> | null {
    if (this.base.arenaBytes <= budgetBytes) return this.base;
    const found = [this.#within(budgetBytes), ...this.#rules.map((family) => family.within(budgetBytes))];
    return found.reduce((a, b) => (b && isFaster(b, a) ? b : a));
  }

  #within(budgetBytes: number): Candidate<R> | null {
    return this.#rungs.costly ? this.#firstWithin(budgetBytes) : this.#stairs.within(budgetBytes);
  }

  /** The plan of the first rung that has one. */
  #firstWithin(budgetBytes: number): Candidate<R> | null {
    const { count } = this.#rungs;
    let rung = 1;
    while (rung <= count && this.#rungs.targetOf(rung) > budgetBytes) rung++;
    for (; rung <= count; rung++) {
      const found = this.#rungs.climb(rung);
      // Where nothing was found, there is nothing below.
      if (found.length === 0) break;
      const fitting = found.filter(({ arenaBytes }) => arenaBytes <= budgetBytes);
      if (fitting.length > 0) return fitting.reduce((a, b) => (isFaster(b, a) ? b : a));
    }
    // The smallest plan may be one that was made for a larger target.
    const least = this.#least();
    return least.arenaBytes <= budgetBytes ? least : null;
  }

  /** The smallest plan whose predicted time is at most `slowdown` times that of storing everything. */
  slowedBy(slowdown: number): Candidate<R> {
    const found = [this.#slowedBy(slowdown), ...this.#rules.map((family) => family.slowedBy(slowdown))];
    return found.reduce((a, b) => (isSmaller(b, a) ? b : a));
  }

  #slowedBy(slowdown: number): Candidate<R> {
    const limit = this.base.predictedMs * slowdown;
    const last = this.#lowest((rung) => this.#rungs.expectedMs(rung) <= limit);
    // Where real plans take longer than expected, further up.
    for (let from = this.#rungs.costly ? last : last + 1; from >= 1; from -= AROUND) {
      const found = this.#smallest(from, (candidate) => candidate.predictedMs <= limit);
      if (found !== this.base) return found;
    }
    return this.base;
  }

  /** The smallest plan found. */
  least(): Candidate<R> {
    const found = [this.#least(), ...this.#rules.map((family) => family.least())];
    return found.reduce((a, b) => (isSmaller(b, a) ? b : a));
  }

  #least(): Candidate<R> {
    if (!this.#rungs.costly) return this.#stairs.least();
    const last = this.#lowest((rung) => this.#rungs.expectedMs(rung) < Number.POSITIVE_INFINITY);
    return this.#smallest(last, () => true);
  }

  /** The smallest plan; for large programs the smallest of those that were made so far. */
  leastKnown(): Candidate<R> {
    const { large, count } = this.#rungs;
    if (!large) return this.least();
    const made = Array.from({ length: count }, (_, i) => this.#rungs.climbed(i + 1)).flat();
    return made.reduce((a, b) => (isSmaller(b, a) ? b : a), this.base);
  }

  /** Plans from everything stored to the smallest, as the strategy has them: by budget, or all of a rule's. */
  curve(points: number): readonly { readonly budgetBytes: number | null; readonly plan: Candidate<R> }[] {
    const { count, aims } = this.#rungs;
    if (!aims) {
      const all = Array.from({ length: count }, (_, i) => this.#rungs.climb(i + 1)).flat();
      return all.map((plan) => ({ budgetBytes: null, plan }));
    }
    const [most, least] = [this.base.arenaBytes, this.least().arenaBytes];
    const budgets = Array.from({ length: points }, (_, i) => Math.ceil(most * (least / most) ** (i / (points - 1))));
    return [...new Set(budgets)].flatMap((budgetBytes) => {
      const plan = this.within(budgetBytes);
      return plan ? [{ budgetBytes, plan }] : [];
    });
  }

  /** Of the plans of a rung and those above it. */
  #smallest(from: number, allowed: (candidate: Candidate<R>) => boolean): Candidate<R> {
    let best = this.base;
    const { costly } = this.#rungs;
    for (
      let rung = Math.min(from, this.#rungs.count), tried = 0;
      rung >= 1 && tried < AROUND && !(costly && best !== this.base);
      rung--
    ) {
      if (this.#rungs.expectedMs(rung) === Number.POSITIVE_INFINITY) continue;
      for (const candidate of this.#rungs.climb(rung)) {
        if (allowed(candidate) && isSmaller(candidate, best)) best = candidate;
      }
      tried += 1;
    }
    return best;
  }

  /** The lowest rung that a property holds for, by bisection: properties here hold for all rungs above one. */
  #lowest(holds: (rung: number) => boolean): number {
    let [yes, no] = [0, this.#rungs.count + 1];
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
