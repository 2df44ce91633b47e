/**
 * @file Plans by the solver. Each is made for the very budget that is asked for, not for a level near it, so that a
 * proof holds for it:
 *
 *   budget ─→ solver ─→ a sequence and a bound ─→ real plan ─ fits ─→ the fastest of these and of other strategies
 *                                                    ╰─ does not ─→ repaired without the solver ─╯
 *
 * Bound and gap are about the costs and bytes of the problem that the solver is given: live bytes, with nothing lost in
 * holes, and times before fusion. Other strategies' plans are this one's too, so it is never larger or slower than they are.
 */

import {
  type Candidate,
  type FamilyOptions,
  type Proof,
  type Realise,
  TargetLevels,
} from "../plan/budget/budget-levels.ts";
import { isFaster, isSmaller, PlanFamily } from "../plan/budget/family.ts";
import { fitArena, type Realised } from "../plan/recompute/arena.ts";
import type { Answer } from "../plan/recompute/auto.ts";
import { baseCost, type RecomputeProblem, type Sequence } from "../plan/recompute/problem.ts";
import { auto, planRecompute } from "../plan/recompute/strategies.ts";
import { planGraph } from "./plan-graph.ts";

/** Real plans for one budget: that of the solver, and of repairs where it is above the budget. */
const ATTEMPTS = 3;
/** Budgets that are tried between the smallest plan of the others and the least that any operation needs. */
const HALVINGS = 5;
/** A part of the bytes that is not worth another try. */
const CLOSE = 0.005;
/** Work of one such try: enough for the search over states. */
const EFFORT = 0.5;

interface Solved<R> {
  readonly candidates: readonly Candidate<R>[];
  /** No sequence costs less. */
  readonly boundCost: number;
  /** What was shown to be the least cost; null where nothing was. */
  readonly provenCost: number | null;
}

export class SolvedFamily<R> extends PlanFamily<R> {
  readonly #problem: RecomputeProblem;
  readonly #realise: Realise<R>;
  readonly #options: FamilyOptions;
  readonly #others: readonly PlanFamily<R>[];
  readonly #solved = new Map<number, Solved<R>>();
  #least: Candidate<R> | undefined;

  /** `others`: families of the same program whose plans are this one's too. */
  constructor(
    problem: RecomputeProblem,
    base: Candidate<R>,
    realise: Realise<R>,
    { others, ...options }: FamilyOptions & { readonly others: readonly PlanFamily<R>[] },
  ) {
    const levels = new TargetLevels(problem, base, realise, options);
    super({ ...base, cost: baseCost(problem), proof: { gap: 0, proven: true } }, levels);
    this.#problem = problem;
    this.#realise = realise;
    this.#options = options;
    this.#others = others;
  }

  #solve(budgetBytes: number): Solved<R> {
    const cached = this.#solved.get(budgetBytes);
    if (cached) return cached;
    const { strategy, effort, solver } = this.#options;
    const answer = planRecompute(this.#problem, budgetBytes, strategy, { effort, solver });
    const provenCost = answer.feasible && answer.proven ? answer.cost : null;
    const solved = { candidates: this.#realised(answer, budgetBytes), boundCost: answer.boundCost, provenCost };
    this.#solved.set(budgetBytes, solved);
    return solved;
  }

  /** The real plan of an answer, and of its repairs where it is above the budget. */
  #realised({ feasible, sequence: start }: Answer, budgetBytes: number): readonly Candidate<R>[] {
    if (!feasible) return [];
    const candidates: Candidate<R>[] = [];
    const realise = (sequence: Sequence): Realised<Candidate<R>> => {
      const realised = this.#realise(sequence, budgetBytes);
      candidates.push(realised.result);
      return realised;
    };
    const { effort } = this.#options;
    const repair = { effort, strategy: auto, start, attempts: ATTEMPTS } as const;
    if (realise(start).arenaBytes > budgetBytes) fitArena(this.#problem, budgetBytes, realise, repair);
    return candidates;
  }

  override within(budgetBytes: number): Candidate<R> | null {
    if (this.base.arenaBytes <= budgetBytes) return this.base;
    const { candidates, boundCost, provenCost } = this.#solve(budgetBytes);
    const others = this.#others.map((family) => family.within(budgetBytes));
    let best: Candidate<R> | null = null;
    for (const candidate of [...candidates, ...others]) {
      if (candidate && candidate.arenaBytes <= budgetBytes && isFaster(candidate, best)) best = candidate;
    }
    return best && { ...best, proof: proofOf(best, boundCost, provenCost) };
  }

  override slowedBy(slowdown: number): Candidate<R> {
    const limit = this.base.predictedMs * slowdown;
    const best = this.#others.map((family) => family.slowedBy(slowdown)).reduce(smaller, this.base);
    return this.#below(best, ({ predictedMs }) => predictedMs <= limit);
  }

  override least(): Candidate<R> {
    const best = (): Candidate<R> => this.#others.map((family) => family.least()).reduce(smaller, this.base);
    this.#least ??= this.#below(best(), () => true);
    return this.#least;
  }

  /** The smallest plan that is allowed and lies below one of the others', by bisection; what is proven of it takes the solver. */
  #below(others: Candidate<R>, allowed: (candidate: Candidate<R>) => boolean): Candidate<R> {
    let [best, low] = [others, this.#options.floorBytes];
    for (let n = 0; n < HALVINGS && best.arenaBytes - low > CLOSE * best.arenaBytes; n++) {
      const target = Math.floor((low + best.arenaBytes) / 2);
      const answer = planGraph(this.#problem, target, { effort: EFFORT });
      for (const candidate of this.#realised(answer, target)) {
        if (allowed(candidate)) best = smaller(best, candidate);
      }
      if (best.arenaBytes > target) low = target;
    }
    // with what is known about its very size
    return this.within(best.arenaBytes) ?? best;
  }
}

const smaller = <R>(a: Candidate<R>, b: Candidate<R>): Candidate<R> => (isSmaller(b, a) ? b : a);

function proofOf<R>({ cost }: Candidate<R>, boundCost: number, provenCost: number | null): Proof | undefined {
  if (cost === undefined || !(boundCost > 0)) return undefined;
  const proven = provenCost !== null && cost <= provenCost * (1 + 1e-9);
  return { gap: proven ? 0 : Math.max(0, cost / boundCost - 1), proven };
}
