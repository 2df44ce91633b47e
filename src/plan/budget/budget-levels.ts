/**
 * @file Where the plans of a family come from. Strategies that aim at a number of bytes have levels of targets at fixed
 * ratios; a rule with a parameter (the length of segments, say) has a level for each of its plans that none of its others
 * beats. Either way the plans of a level depend on the program alone, not on the request.
 */
import { at } from "../../base/invariant.ts";
import { fitArena, type Realised } from "../recompute/arena.ts";
import type { Answer } from "../recompute/auto.ts";
import type { Level } from "../recompute/levels.ts";
import { baseCost, baseSequence, type RecomputeProblem, type Sequence } from "../recompute/problem.ts";
import { simulate } from "../recompute/simulate.ts";
import type { IntegerSolver } from "../recompute/solver.ts";
import { planRecompute } from "../recompute/strategies.ts";
import type { Strategy } from "../recompute/strategy.ts";

/** A plan of a family, with its bytes and its time. */
export interface Candidate<R> {
  /** The strategy that decided what is recomputed. */
  readonly strategy: string;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  readonly result: R;
  /** The cost of its sequence, as the planner of recomputation counts it. */
  readonly cost?: number | undefined;
  /** The distance from the least cost, if a solver was used. */
  readonly proof?: Proof | undefined;
}

/** How near the cost of a plan is to the least within the same budget. */
export interface Proof {
  /** The cost over the lower bound, minus 1. */
  readonly gap: number;
  /** The solver showed that no plan costs less. */
  readonly proven: boolean;
}

/** Fuses, lowers and places a sequence; reports conflicts where the arena is above the target. */
export type Realise<R> = (sequence: Sequence, targetBytes: number) => Realised<Candidate<R>>;

export interface FamilyOptions {
  /** No plan is smaller. */
  readonly floorBytes: number;
  /** Bytes that all plans hold. */
  readonly persistentBytes: number;
  /** Arenas are multiples of it: targets with none between them are one. */
  readonly alignment: number;
  readonly strategy: Strategy;
  /** Work of one plan, as `planRecompute` counts it. */
  readonly effort: number;
  readonly solver?: IntegerSolver | undefined;
  /** The unit of segments. */
  readonly segments?: Level | undefined;
}

/** Plans at levels from fast to small, made on request. */
export interface BudgetLevels<R> {
  /** Levels are numbered from 1. */
  readonly count: number;
  /** Whether plans are made for a number of bytes. */
  readonly aims: boolean;
  /** Whether a plan takes seconds to make, so that the first that fits has to do. */
  readonly costly: boolean;
  /** The bytes that plans of a level aim at, falling from level to level; infinite for rules. */
  targetOf(level: number): number;
  /** The expected time of a plan of this level; infinite if it has none. */
  expectedMs(level: number): number;
  /** The plans of a level; not all of them reach its target. */
  plansAt(level: number): readonly Candidate<R>[];
}

/** Levels between storing everything and `floorBytes` for strategies that aim at a number of bytes. */
const LEVELS = 48;
/** Plans that are tried for a level, and for one of a very large program. */
const [ATTEMPTS, FEW_ATTEMPTS] = [4, 2];
/** Operations of a large program, whose smallest plan is found on request only, and of one whose plans take seconds each. */
export const [LARGE_OPS, COSTLY_OPS] = [600, 3000];

/** Longer sequences are not realised: recomputing everything takes the square of the operations. */
const LONGEST = 30_000;

/** The target of plans that aim at nothing: no plan meets it, so each is ordered as a variant of the program is. */
export const UNREACHED = 1;

/** Levels at fixed ratios for strategies that aim at a number of bytes. */
export class TargetLevels<R> implements BudgetLevels<R> {
  readonly count = LEVELS;
  readonly aims = true;
  readonly costly: boolean;
  readonly #problem: RecomputeProblem;
  readonly #base: Candidate<R>;
  readonly #realise: Realise<R>;
  readonly #options: FamilyOptions;
  readonly #plans = new Map<number, readonly Candidate<R>[]>();
  readonly #expected = new Map<number, number>();

  constructor(problem: RecomputeProblem, base: Candidate<R>, realise: Realise<R>, options: FamilyOptions) {
    this.costly = problem.ops.length > COSTLY_OPS;
    this.#problem = problem;
    this.#base = base;
    this.#realise = realise;
    this.#options = options;
  }

  targetOf(level: number): number {
    const { persistentBytes, floorBytes } = this.#options;
    const [most, least] = [this.#base.arenaBytes - persistentBytes, Math.max(1, floorBytes - persistentBytes)];
    return level === LEVELS ? floorBytes : persistentBytes + Math.floor(most * (least / most) ** (level / LEVELS));
  }

  expectedMs(level: number): number {
    const cached = this.#expected.get(level);
    if (cached !== undefined) return cached;
    // The first plan is near enough to the one that a search would end with.
    const options = { effort: 0, solver: this.#options.solver };
    const { feasible, cost } = planRecompute(this.#problem, this.targetOf(level), this.#options.strategy, options);
    const expected = feasible ? this.#base.predictedMs + cost - baseCost(this.#problem) : Number.POSITIVE_INFINITY;
    this.#expected.set(level, expected);
    return expected;
  }

  /** The first of the levels that the same arenas fit. */
  #firstLike(level: number): number {
    const most = (of: number): number => Math.floor(this.targetOf(of) / this.#options.alignment);
    let first = level;
    while (first > 1 && most(first - 1) === most(level)) first--;
    return first;
  }

  plansAt(level: number): readonly Candidate<R>[] {
    const cached = this.#plans.get(level);
    if (cached) return cached;
    const first = this.#firstLike(level);
    const plans = first < level ? this.plansAt(first) : this.#newPlans(level);
    this.#plans.set(level, plans);
    return plans;
  }

  #newPlans(level: number): readonly Candidate<R>[] {
    const target = this.targetOf(level);
    const candidates: Candidate<R>[] = [];
    const realise = (sequence: Sequence): Realised<Candidate<R>> => {
      const realised = this.#realise(sequence, target);
      candidates.push(realised.result);
      return realised;
    };
    fitArena(this.#problem, target, realise, { ...this.#options, attempts: this.costly ? FEW_ATTEMPTS : ATTEMPTS });
    return candidates;
  }
}

type Planned = Pick<Answer, "sequence" | "cost" | "peakBytes">;

/** A rule's plan by budget, or null; of a rule that has a list of plans, each is made and simulated once. */
function planner(
  problem: RecomputeProblem,
  strategy: Strategy,
  options: Omit<FamilyOptions, "strategy">,
): (budget: number) => Planned | null {
  if (!strategy.plans || problem.ops.length === 0) {
    return (budget) => {
      const answer = planRecompute(problem, budget, strategy, options);
      return answer.feasible ? answer : null;
    };
  }
  const simulated = (sequence: Sequence) => ({ sequence, ...simulate(problem, sequence) });
  const all = [...strategy.plans(problem, options.segments)]
    .map(simulated)
    .filter((plan) => plan.violations.length === 0);
  const stored = simulated(baseSequence(problem));
  return (budget) => {
    const fitting = all.filter(({ peakBytes }) => peakBytes <= budget);
    if (fitting.length === 0) return stored.peakBytes <= budget ? stored : null;
    return fitting.reduce((a, b) => (b.cost < a.cost ? b : a));
  };
}

/** The plans of a rule with a parameter (the length of segments, say) that are not beaten by another of its plans. */
export class RuleLevels<R> implements BudgetLevels<R> {
  readonly aims = false;
  readonly costly = false;
  readonly #points: readonly { readonly sequence: Sequence; readonly expectedMs: number }[];
  readonly #realise: Realise<R>;
  readonly #plans = new Map<number, readonly Candidate<R>[]>();

  constructor(
    problem: RecomputeProblem,
    base: Candidate<R>,
    realise: Realise<R>,
    { strategy, ...options }: FamilyOptions,
  ) {
    const points = [];
    const planWithin = planner(problem, strategy, options);
    for (let budget = Number.POSITIVE_INFINITY; ; ) {
      const plan = planWithin(budget);
      if (!plan) break;
      const { sequence, cost, peakBytes } = plan;
      const isLong = sequence.length > Math.max(LONGEST, 4 * problem.ops.length);
      if (!isLong) points.push({ sequence, expectedMs: base.predictedMs + cost - baseCost(problem) });
      budget = peakBytes - 1;
    }
    this.#points = points;
    this.#realise = realise;
  }

  get count(): number {
    return this.#points.length;
  }

  targetOf(): number {
    return Number.POSITIVE_INFINITY;
  }

  expectedMs(level: number): number {
    return at(this.#points, level - 1).expectedMs;
  }

  plansAt(level: number): readonly Candidate<R>[] {
    const plans = this.#plans.get(level) ?? [this.#realise(at(this.#points, level - 1).sequence, UNREACHED).result];
    this.#plans.set(level, plans);
    return plans;
  }
}
