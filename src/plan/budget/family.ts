/**
 * @file All plans of one program: a ladder of budgets from storing everything down to the least that any operation needs,
 * climbed only as far as a question asks.
 *
 * ```
 *   bytes  S ┤●                       S: everything is stored
 *            ┤ ○                      rungs at fixed ratios; a rung's plan does not depend on the question
 *          B ┼╌╌●╌╌╌╌╌╌╌╌             a budget B is answered by the fastest plan of the rungs below it
 *            ┤     ●
 *            ┤         ●     ●        rungs that are expected to be slower than the best found are not climbed
 *          L ┤                        L: operands of the largest operation
 *            └──────────────── ms
 * ```
 *
 * Monotone by construction: a larger budget has all plans of a smaller one to choose from, so it is never slower; and of
 * plans that fit, equally fast ones are told apart by their bytes, so a smaller budget never takes a larger arena.
 */
import type { Candidate, Rungs } from "./rungs.ts";

/** A rung that is expected to take this much longer than the best plan is not climbed. */
const HOPELESS = 1.01;
/** How many hopeless rungs end the search. */
const PATIENCE = 2;
/** So many rungs are climbed whatever they are expected to take. */
const SURE = 3;
/** Real plans differ from what was expected, to either side: so many rungs are looked at. */
const AROUND = 3;
/** The same where bytes are scarce and real plans miss their targets most. */
const AROUND_LEAST = 5;

export class PlanFamily<R> {
  /** Nothing is computed again. */
  readonly base: Candidate<R>;
  readonly #rungs: Rungs<R>;
  readonly #rules: readonly PlanFamily<R>[];

  /** `rules`: families of the same program whose plans are this one's too. */
  constructor(base: Candidate<R>, rungs: Rungs<R>, rules: readonly PlanFamily<R>[] = []) {
    this.base = base;
    this.#rungs = rungs;
    this.#rules = rules;
  }

  /** The fastest plan within a budget; null where none was found. */
  within(budgetBytes: number): Candidate<R> | null {
    if (this.base.arenaBytes <= budgetBytes) return this.base;
    const found = [this.#within(budgetBytes), ...this.#rules.map((family) => family.within(budgetBytes))];
    return found.reduce((a, b) => (b && isFaster(b, a) ? b : a));
  }

  #within(budgetBytes: number): Candidate<R> | null {
    const rungs = this.#rungs;
    let best: Candidate<R> | null = null;
    let hopeless = 0;
    const first = rungs.firstFor(budgetBytes);
    const enough = (rung: number): boolean => best !== null && rungs.costly && rung > first;
    for (let rung = first; rung <= rungs.count && hopeless < PATIENCE && !enough(rung); rung++) {
      if (best && rung >= first + SURE && rungs.expectedMs(rung) > best.predictedMs * HOPELESS) {
        hopeless += 1;
        continue;
      }
      const found = rungs.climb(rung);
      // Where nothing was found, there is nothing below.
      if (found.length === 0) break;
      for (const candidate of found) {
        if (candidate.arenaBytes <= budgetBytes && isFaster(candidate, best)) best = candidate;
      }
    }
    // The smallest plan may be one that was made for a larger target.
    const least = best ?? this.#least();
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
    return this.#smallest(
      this.#lowest((rung) => this.#rungs.expectedMs(rung) < Number.POSITIVE_INFINITY),
      () => true,
      AROUND_LEAST,
    );
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
  #smallest(from: number, allowed: (candidate: Candidate<R>) => boolean, around = AROUND): Candidate<R> {
    let best = this.base;
    const { costly } = this.#rungs;
    for (
      let rung = Math.min(from, this.#rungs.count), tried = 0;
      rung >= 1 && tried < around && !(costly && best !== this.base);
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
