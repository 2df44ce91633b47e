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
import { at } from "../../base/invariant.ts";
import { fitArena, type Realised } from "../recompute/arena.ts";
import { leastBytes } from "../recompute/auto.ts";
import type { Level } from "../recompute/levels.ts";
import type { IntegerSolver } from "../recompute/optimal.ts";
import { baseCost, type RecomputeProblem, type Sequence } from "../recompute/problem.ts";
import { planRecompute } from "../recompute/strategies.ts";

/** What a plan of the family needs and takes. */
export interface Candidate<R> {
  /** Who decided what is computed again. */
  readonly strategy: string;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  readonly result: R;
}

/** Makes a real plan of a sequence and says where it is above the target. */
export type Realise<R> = (sequence: Sequence, targetBytes: number) => Realised<Candidate<R>>;

export interface FamilyOptions {
  /** One of `STRATEGIES`. */
  readonly strategy: string;
  /** Work of one plan, as `planRecompute` counts it. */
  readonly effort: number;
  readonly solver?: IntegerSolver | undefined;
  /** What segments are made of. */
  readonly level?: Level | undefined;
}

/** Plans in steps from fast to small, made when they are asked for. */
interface Rungs<R> {
  /** Rungs are numbered from 1. */
  readonly count: number;
  /** Whether plans are made for a number of bytes. */
  readonly aims: boolean;
  /** The first rung that is meant for budgets of this size. */
  firstFor(budgetBytes: number): number;
  /** What a plan of this rung is expected to take; infinite where there is none. */
  expectedMs(rung: number): number;
  /** The plans that were made for it; not all of them reach its target. */
  climb(rung: number): readonly Candidate<R>[];
}

/** Rungs between storing everything and `floorBytes` for planners that aim at a number of bytes. */
const RUNGS = 40;
/** A rung that is expected to take this much longer than the best plan is not climbed. */
const HOPELESS = 1.01;
/** How many hopeless rungs end the search. */
const PATIENCE = 2;
/** So many rungs are climbed whatever they are expected to take. */
const SURE = 3;
/** Real plans differ from what was expected, to either side: so many rungs are looked at. */
const AROUND = 3;

export class PlanFamily<R> {
  /** Nothing is computed again. */
  readonly base: Candidate<R>;
  readonly #rungs: Rungs<R>;

  constructor(base: Candidate<R>, rungs: Rungs<R>) {
    this.base = base;
    this.#rungs = rungs;
  }

  /** The fastest plan within a budget; null where none was found. */
  within(budgetBytes: number): Candidate<R> | null {
    if (this.base.arenaBytes <= budgetBytes) return this.base;
    const rungs = this.#rungs;
    let best: Candidate<R> | null = null;
    let hopeless = 0;
    const first = rungs.firstFor(budgetBytes);
    for (let rung = first; rung <= rungs.count && hopeless < PATIENCE; rung++) {
      const expected = rungs.expectedMs(rung);
      const sure = rung < first + SURE && expected < Number.POSITIVE_INFINITY;
      if (best && !sure && expected > best.predictedMs * HOPELESS) {
        hopeless += 1;
        continue;
      }
      for (const candidate of rungs.climb(rung)) {
        if (candidate.arenaBytes <= budgetBytes && isFaster(candidate, best)) best = candidate;
      }
    }
    // The smallest plan may be one that was made for a larger target.
    const least = best ?? this.least();
    return least.arenaBytes <= budgetBytes ? least : null;
  }

  /** The smallest plan whose predicted time is at most `slowdown` times that of storing everything. */
  slowedBy(slowdown: number): Candidate<R> {
    const limit = this.base.predictedMs * slowdown;
    const last = this.#lowest((rung) => this.#rungs.expectedMs(rung) <= limit);
    return this.#smallest(last + 1, (candidate) => candidate.predictedMs <= limit);
  }

  /** The smallest plan found. */
  least(): Candidate<R> {
    return this.#smallest(
      this.#lowest((rung) => this.#rungs.expectedMs(rung) < Number.POSITIVE_INFINITY),
      () => true,
    );
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
    for (let rung = Math.min(from, this.#rungs.count), tried = 0; rung >= 1 && tried < AROUND; rung--) {
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

const ATTEMPTS = 4;

/** Rungs at fixed ratios for planners that aim at a number of bytes. */
export class Ladder<R> implements Rungs<R> {
  readonly count = RUNGS;
  readonly aims = true;
  readonly #problem: RecomputeProblem;
  readonly #base: Candidate<R>;
  readonly #floorBytes: number;
  readonly #realise: Realise<R>;
  readonly #options: FamilyOptions;
  readonly #climbed = new Map<number, readonly Candidate<R>[]>();
  readonly #expected = new Map<number, number>();

  constructor(problem: RecomputeProblem, base: Candidate<R>, realise: Realise<R>, options: FamilyOptions) {
    this.#problem = problem;
    this.#base = base;
    this.#floorBytes = Math.min(leastBytes(problem), base.arenaBytes);
    this.#realise = realise;
    this.#options = options;
  }

  targetOf(rung: number): number {
    const [most, least] = [this.#base.arenaBytes, this.#floorBytes];
    return rung === RUNGS ? least : Math.floor(most * (least / most) ** (rung / RUNGS));
  }

  firstFor(budgetBytes: number): number {
    let rung = 1;
    while (rung <= RUNGS && this.targetOf(rung) > budgetBytes) rung++;
    return rung;
  }

  expectedMs(rung: number): number {
    const known = this.#expected.get(rung);
    if (known !== undefined) return known;
    const { strategy, effort, solver } = this.#options;
    const options = strategy === "auto" ? { effort: 0 } : { effort, solver };
    // What look-ahead finds without a search is near enough to what is found with one.
    const planner = strategy === "auto" ? "look-ahead" : strategy;
    const { feasible, cost } = planRecompute(this.#problem, this.targetOf(rung), planner, options);
    const expected = feasible ? this.#base.predictedMs + cost - baseCost(this.#problem) : Number.POSITIVE_INFINITY;
    this.#expected.set(rung, expected);
    return expected;
  }

  climb(rung: number): readonly Candidate<R>[] {
    const known = this.#climbed.get(rung);
    if (known) return known;
    const target = this.targetOf(rung);
    const candidates: Candidate<R>[] = [];
    const realise = (sequence: Sequence): Realised<Candidate<R>> => {
      const made = this.#realise(sequence, target);
      candidates.push(made.result);
      return made;
    };
    fitArena(this.#problem, target, realise, { ...this.#options, attempts: ATTEMPTS });
    this.#climbed.set(rung, candidates);
    return candidates;
  }
}

/** The plans of a rule with a number that can be chosen (the length of segments, say): each that is not beaten by another. */
export class Front<R> implements Rungs<R> {
  readonly aims = false;
  readonly #points: readonly { readonly sequence: Sequence; readonly expectedMs: number }[];
  readonly #realise: Realise<R>;
  readonly #climbed = new Map<number, readonly Candidate<R>[]>();

  constructor(
    problem: RecomputeProblem,
    base: Candidate<R>,
    realise: Realise<R>,
    { strategy, ...options }: FamilyOptions,
  ) {
    const points = [];
    for (let budget = Number.POSITIVE_INFINITY; ; ) {
      const { feasible, sequence, cost, peakBytes } = planRecompute(problem, budget, strategy, options);
      if (!feasible) break;
      points.push({ sequence, expectedMs: base.predictedMs + cost - baseCost(problem) });
      budget = peakBytes - 1;
    }
    this.#points = points;
    this.#realise = realise;
  }

  get count(): number {
    return this.#points.length;
  }

  firstFor(): number {
    return 1;
  }

  expectedMs(rung: number): number {
    return at(this.#points, rung - 1).expectedMs;
  }

  climb(rung: number): readonly Candidate<R>[] {
    const known = this.#climbed.get(rung) ?? [this.#realise(at(this.#points, rung - 1).sequence, 0).result];
    this.#climbed.set(rung, known);
    return known;
  }
}

function isFaster<R>(a: Candidate<R>, b: Candidate<R> | null): boolean {
  if (b === null || a.predictedMs < b.predictedMs) return true;
  return a.predictedMs === b.predictedMs && a.arenaBytes < b.arenaBytes;
}

function isSmaller<R>(a: Candidate<R>, b: Candidate<R>): boolean {
  if (a.arenaBytes < b.arenaBytes) return true;
  return a.arenaBytes === b.arenaBytes && a.predictedMs < b.predictedMs;
}
