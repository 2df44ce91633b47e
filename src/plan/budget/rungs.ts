/**
 * @file Where the plans of a family come from. Planners that aim at a number of bytes climb a ladder of targets at fixed
 * ratios; a rule with a number that can be chosen (the length of segments, say) has all its plans that none of its others
 * beats. Either way a rung's plans depend on the program alone, not on who asks.
 */
import { at } from "../../base/invariant.ts";
import { fitArena, type Realised } from "../recompute/arena.ts";
import type { Level } from "../recompute/levels.ts";
import type { IntegerSolver } from "../recompute/optimal.ts";
import { baseCost, type RecomputeProblem, type Sequence } from "../recompute/problem.ts";
import { planRecompute, type StrategyName } from "../recompute/strategies.ts";

/** What a plan of the family needs and takes. */
export interface Candidate<R> {
  /** Who decided what is computed again. */
  readonly strategy: string;
  readonly arenaBytes: number;
  readonly predictedMs: number;
  readonly result: R;
  /** Of its sequence, as the planner of recomputation counts it. */
  readonly cost?: number | undefined;
  /** How far that is from the least, where a solver was asked. */
  readonly proof?: Proof | undefined;
}

/** What is known about the cost of a plan, beside those of all plans within the same budget. */
export interface Proof {
  /** Over the bound that no plan is below, less 1. */
  readonly gap: number;
  /** The solver showed that no plan costs less. */
  readonly proven: boolean;
}

/** Makes a real plan of a sequence and says where it is above the target. */
export type Realise<R> = (sequence: Sequence, targetBytes: number) => Realised<Candidate<R>>;

export interface FamilyOptions {
  /** No plan is smaller. */
  readonly floorBytes: number;
  /** Is in all of them. */
  readonly persistentBytes: number;
  readonly strategy: StrategyName;
  /** Work of one plan, as `planRecompute` counts it. */
  readonly effort: number;
  readonly solver?: IntegerSolver | undefined;
  /** What segments are made of. */
  readonly level?: Level | undefined;
}

/** Plans in steps from fast to small, made when they are asked for. */
export interface Rungs<R> {
  /** Rungs are numbered from 1. */
  readonly count: number;
  /** Whether plans are made for a number of bytes. */
  readonly aims: boolean;
  /** Whether it takes seconds to find the smallest plan. */
  readonly large: boolean;
  /** Whether a plan takes seconds to make, so that the first that fits has to do. */
  readonly costly: boolean;
  /** What a rung's plans are meant to need, falling from rung to rung; infinite where they do not aim at bytes. */
  targetOf(rung: number): number;
  /** What a plan of this rung is expected to take; infinite where there is none. */
  expectedMs(rung: number): number;
  /** The plans that were made for it; not all of them reach its target. */
  climb(rung: number): readonly Candidate<R>[];
  /** Those that were made before. */
  climbed(rung: number): readonly Candidate<R>[];
}

/** Rungs between storing everything and `floorBytes` for planners that aim at a number of bytes. */
const RUNGS = 48;
/** Plans that are tried for a rung, and for one of a large program. */
const [ATTEMPTS, FEW_ATTEMPTS] = [4, 2];
/** A large program: its smallest plan is not looked for unless asked. And a very large one: each plan takes seconds. */
export const [LARGE_OPS, COSTLY_OPS] = [600, 3000];

/** Sequences of more operations are not realised: to recompute everything takes their square. */
const LONGEST = 30_000;

/** A target for plans that aim at nothing: no plan meets it, so each is ordered as a variant of the program is. */
export const UNREACHED = 1;

/** Rungs at fixed ratios for planners that aim at a number of bytes. */
export class Ladder<R> implements Rungs<R> {
  readonly count = RUNGS;
  readonly aims = true;
  readonly large: boolean;
  readonly costly: boolean;
  readonly #problem: RecomputeProblem;
  readonly #base: Candidate<R>;
  readonly #realise: Realise<R>;
  readonly #options: FamilyOptions;
  readonly #climbed = new Map<number, readonly Candidate<R>[]>();
  readonly #expected = new Map<number, number>();

  constructor(problem: RecomputeProblem, base: Candidate<R>, realise: Realise<R>, options: FamilyOptions) {
    this.large = problem.ops.length > LARGE_OPS;
    this.costly = problem.ops.length > COSTLY_OPS;
    this.#problem = problem;
    this.#base = base;
    this.#realise = realise;
    this.#options = options;
  }

  targetOf(rung: number): number {
    const { persistentBytes, floorBytes } = this.#options;
    const [most, least] = [this.#base.arenaBytes - persistentBytes, Math.max(1, floorBytes - persistentBytes)];
    return rung === RUNGS ? floorBytes : persistentBytes + Math.floor(most * (least / most) ** (rung / RUNGS));
  }

  expectedMs(rung: number): number {
    const known = this.#expected.get(rung);
    if (known !== undefined) return known;
    const { strategy, effort, solver } = this.#options;
    // What is found without a search is near enough to what is found with one.
    const options = strategy === "auto" ? { effort: 0 } : { effort, solver };
    const { feasible, cost } = planRecompute(this.#problem, this.targetOf(rung), strategy, options);
    const expected = feasible ? this.#base.predictedMs + cost - baseCost(this.#problem) : Number.POSITIVE_INFINITY;
    this.#expected.set(rung, expected);
    return expected;
  }

  climbed(rung: number): readonly Candidate<R>[] {
    return this.#climbed.get(rung) ?? [];
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
    fitArena(this.#problem, target, realise, { ...this.#options, attempts: this.costly ? FEW_ATTEMPTS : ATTEMPTS });
    this.#climbed.set(rung, candidates);
    return candidates;
  }
}

/** The plans of a rule with a number that can be chosen (the length of segments, say): each that is not beaten by another. */
export class Front<R> implements Rungs<R> {
  readonly aims = false;
  readonly large = false;
  readonly costly = false;
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

  expectedMs(rung: number): number {
    return at(this.#points, rung - 1).expectedMs;
  }

  climbed(rung: number): readonly Candidate<R>[] {
    return this.#climbed.get(rung) ?? [];
  }

  climb(rung: number): readonly Candidate<R>[] {
    const known = this.#climbed.get(rung) ?? [this.#realise(at(this.#points, rung - 1).sequence, UNREACHED).result];
    this.#climbed.set(rung, known);
    return known;
  }
}
