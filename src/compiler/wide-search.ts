/**
 * @file Every way that is known to make a plan small, for the smallest plan and before a budget is refused: all strategies,
 * each under every way to fuse. The quick search (`auto` over the usual fusion) is faster and meets most budgets, but the
 * bytes that it counts with are those of the usual kernels. Where one of these is the tightest step, because it stores
 * several values at once, only other kernels need less:
 *
 * ```
 *   one kernel      x ─→ h1 h2 h3 h4      holds all five while it runs, whatever is computed again
 *   one each        x ─→ h1 ─→ h2 …       holds two at a time
 * ```
 *
 * What is tried depends on the program's size alone, so the same question has the same answer, whatever was asked before.
 */
import { isFaster, isSmaller, type PlanFamily } from "../plan/budget/family.ts";
import { type Candidate, LARGE_OPS } from "../plan/budget/rungs.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { StrategyName } from "../plan/recompute/strategies.ts";
import type { Made } from "./assembler.ts";
import type { GraphPlans } from "./graph-plans.ts";

/** Rules: a handful of plans each. */
const RULES = [
  "recompute-all",
  "every-k",
  "sqrt",
  "selective",
  "min-cut",
  "calls",
] as const satisfies readonly StrategyName[];

/**
 * What is tried for programs of at most so many steps, by fusion: the usual one, one stored value a kernel, one operation
 * a kernel. Planners that aim at bytes take as long as all rules together.
 */
const TRIED: readonly { readonly steps: number; readonly strategies: readonly (readonly StrategyName[])[] }[] = [
  {
    steps: 300,
    strategies: [
      [...RULES, "chain", "look-ahead"],
      [...RULES, "look-ahead"],
      ["recompute-all", "every-k"],
    ],
  },
  { steps: 1000, strategies: [RULES, ["recompute-all"], ["recompute-all"]] },
  { steps: 3000, strategies: [["recompute-all", "every-k"], [], []] },
];

/** The same for forms whose loops hold less, most of which `auto` has looked at. */
const TRIED_WITH_LOOPS: typeof TRIED = [
  { steps: 300, strategies: [["recompute-all", "every-k"], ["recompute-all"], ["recompute-all"]] },
];

/** One graph under one way to fuse it. */
interface Variant {
  readonly plans: GraphPlans;
  readonly strategies: readonly StrategyName[];
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
    ask: (family: PlanFamily<Made>) => Candidate<Made> | null,
    accepts: (base: Candidate<Made>) => boolean,
  ): readonly Candidate<Made>[] {
    return this.#variants().flatMap(({ plans, strategies }) => {
      const found = strategies.flatMap((strategy) => ask(plans.family(strategy, segments)) ?? []);
      return accepts(plans.base) ? [plans.base, ...found] : found;
    });
  }

  /** The fastest plan within a budget in which everything is stored; null where there is none, or each takes long to make. */
  storedWithin(budgetBytes: number): Candidate<Made> | null {
    if (this.#stored.steps > LARGE_OPS) return null;
    const bases = this.#withStoredLoops().map(({ plans }) => plans.base);
    return fastestOf(bases.filter(({ arenaBytes }) => arenaBytes <= budgetBytes));
  }

  /** The fastest plan within a budget; null where there is none. */
  within(budgetBytes: number, segments?: Level): Candidate<Made> | null {
    const fits = ({ arenaBytes }: Candidate<Made>): boolean => arenaBytes <= budgetBytes;
    return fastestOf(this.#asked(segments, (family) => family.within(budgetBytes), fits));
  }

  /** The smallest plan that takes at most so long; null where all take longer. */
  underMs(limitMs: number, segments?: Level): Candidate<Made> | null {
    const isFast = ({ predictedMs }: Candidate<Made>): boolean => predictedMs <= limitMs;
    const ask = (family: PlanFamily<Made>): Candidate<Made> | null =>
      isFast(family.base) ? family.slowedBy(limitMs / family.base.predictedMs) : null;
    return smallestOf(this.#asked(segments, ask, isFast));
  }

  /** The smallest plan. */
  least(segments?: Level): Candidate<Made> | null {
    return smallestOf(
      this.#asked(
        segments,
        (family) => family.least(),
        () => true,
      ),
    );
  }
}

export function fastestOf(plans: readonly (Candidate<Made> | null)[]): Candidate<Made> | null {
  return plans.reduce((a, b) => (b && isFaster(b, a) ? b : a), null);
}

function smallestOf(plans: readonly Candidate<Made>[]): Candidate<Made> | null {
  return plans.reduce<Candidate<Made> | null>((a, b) => (a === null || isSmaller(b, a) ? b : a), null);
}
