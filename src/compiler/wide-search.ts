/**
 * @file Every way that is known to make a plan small, for the smallest plan and before a budget is refused: all strategies,
 * each under every way to fuse. The quick search (`auto` over the usual fusion) is faster and meets most budgets, but the
 * bytes that it counts with are those of the usual kernels. Where one of these is the tightest step, because it stores
 * several values at once, only other kernels need less:
 *
 * ```
 *   one kernel      x ─→ h1 h2 h3 h4      holds all five while it runs, whatever is recomputed
 *   one each        x ─→ h1 ─→ h2 …       holds two at a time
 * ```
 *
 * What is tried depends on the program's size alone, so the same question has the same answer, whatever was asked before.
 */

import { type Candidate, LARGE_OPS } from "../plan/budget/budget-levels.ts";
import { isFaster, isSmaller, type PlanFamily } from "../plan/budget/family.ts";
import type { Level } from "../plan/recompute/levels.ts";
import {
  calls,
  chain,
  everyK,
  lookAhead,
  minCut,
  recomputeAll,
  selective,
  sqrt,
} from "../plan/recompute/strategies.ts";
import type { Strategy } from "../plan/recompute/strategy.ts";
import type { PlannedProgram } from "./assembler.ts";
import type { GraphPlans } from "./graph-plans.ts";

/** Rules: a handful of plans each. */
const RULES: readonly Strategy[] = [recomputeAll, everyK, sqrt, selective, minCut, calls];

/**
 * What is tried for programs of at most so many steps, by fusion: the usual one, one stored value a kernel, one operation
 * a kernel. Planners that aim at bytes take as long as all rules together.
 */
const TRIED: readonly { readonly steps: number; readonly strategies: readonly (readonly Strategy[])[] }[] = [
  {
    steps: 300,
    strategies: [
      [...RULES, chain, lookAhead],
      [...RULES, lookAhead],
      [recomputeAll, everyK],
    ],
  },
  { steps: 1000, strategies: [RULES, [recomputeAll], [recomputeAll]] },
  { steps: 3000, strategies: [[recomputeAll, everyK], [], []] },
];

/** The same for forms whose loops hold less, most of which `auto` has looked at. */
const TRIED_WITH_LOOPS: typeof TRIED = [
  { steps: 300, strategies: [[recomputeAll, everyK], [recomputeAll], [recomputeAll]] },
];

/** One graph under one way to fuse it. */
interface Variant {
  readonly plans: GraphPlans;
  readonly strategies: readonly Strategy[];
}

/** A graph under every way to fuse it. */
function variantsOf(usual: GraphPlans, all: typeof TRIED): readonly Variant[] {
  const tried = all.find(({ steps }) => usual.steps <= steps)?.strategies ?? [];
  const plans = [usual, ...usual.lean()];
  return plans.map((own, i) => ({ plans: own, strategies: tried[i] ?? [] }));
}

export class WideSearch {
  readonly #stored: GraphPlans;
  readonly #others: readonly (() => GraphPlans)[];
  #storedVariants: readonly Variant[] | undefined;
  #otherVariants: readonly Variant[] | undefined;

  /** `stored` is the program under the usual fusion, `others` are forms of it whose loops hold less. */
  constructor(stored: GraphPlans, others: readonly (() => GraphPlans)[]) {
    this.#stored = stored;
    this.#others = others;
  }

  #withStoredLoops(): readonly Variant[] {
    this.#storedVariants ??= variantsOf(this.#stored, TRIED);
    return this.#storedVariants;
  }

  #variants(): readonly Variant[] {
    this.#otherVariants ??= this.#others.flatMap((plans) => variantsOf(plans(), TRIED_WITH_LOOPS));
    return [...this.#withStoredLoops(), ...this.#otherVariants];
  }

  /** What each family says, and everything stored. */
  #asked(
    segments: Level | undefined,
    ask: (family: PlanFamily<PlannedProgram>) => Candidate<PlannedProgram> | null,
    accepts: (base: Candidate<PlannedProgram>) => boolean,
  ): readonly Candidate<PlannedProgram>[] {
    return this.#variants().flatMap(({ plans, strategies }) => {
      const answers = strategies.flatMap((strategy) => ask(plans.family(strategy, segments)) ?? []);
      return accepts(plans.base) ? [plans.base, ...answers] : answers;
    });
  }

  /** The fastest plan within a budget in which everything is stored; null where there is none, or each takes long to make. */
  storedWithin(budgetBytes: number): Candidate<PlannedProgram> | null {
    if (this.#stored.steps > LARGE_OPS) return null;
    const bases = this.#withStoredLoops().map(({ plans }) => plans.base);
    return fastestOf(bases.filter(({ arenaBytes }) => arenaBytes <= budgetBytes));
  }

  /** The fastest plan within a budget; null where there is none. */
  within(budgetBytes: number, segments?: Level): Candidate<PlannedProgram> | null {
    const fits = ({ arenaBytes }: Candidate<PlannedProgram>): boolean => arenaBytes <= budgetBytes;
    return fastestOf(this.#asked(segments, (family) => family.within(budgetBytes), fits));
  }

  /** The smallest plan that takes at most so long; null where all take longer. */
  underMs(limitMs: number, segments?: Level): Candidate<PlannedProgram> | null {
    const isFast = ({ predictedMs }: Candidate<PlannedProgram>): boolean => predictedMs <= limitMs;
    const ask = (family: PlanFamily<PlannedProgram>): Candidate<PlannedProgram> | null =>
      isFast(family.base) ? family.slowedBy(limitMs / family.base.predictedMs) : null;
    return smallestOf(this.#asked(segments, ask, isFast));
  }

  /** The smallest plan. */
  least(segments?: Level): Candidate<PlannedProgram> | null {
    return smallestOf(
      this.#asked(
        segments,
        (family) => family.least(),
        () => true,
      ),
    );
  }
}

export function fastestOf(plans: readonly (Candidate<PlannedProgram> | null)[]): Candidate<PlannedProgram> | null {
  return plans.reduce((a, b) => (b && isFaster(b, a) ? b : a), null);
}

function smallestOf(plans: readonly Candidate<PlannedProgram>[]): Candidate<PlannedProgram> | null {
  return plans.reduce<Candidate<PlannedProgram> | null>((a, b) => (a === null || isSmaller(b, a) ? b : a), null);
}
