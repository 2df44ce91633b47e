/**
 * @file The forms of a program with loops: the states that its loops hold (loops/plans.ts) together with the other
 * values that are recomputed. A budget is answered by the fastest of
 *
 *   loops alone     as many states as fit, everything else stored
 *   both            a few fixed levels of the loops, the rest by the planner of recomputation
 *
 * Levels are fixed and each family is monotone, so their best is: more bytes never cost time.
 */
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { type LoopChoice, type LoopGroup, withChoice } from "../loops/groups.ts";
import { LoopPlans } from "../loops/plans.ts";
import { type Candidate, UNREACHED } from "../plan/budget/budget-levels.ts";
import { isFaster, isSmaller } from "../plan/budget/family.ts";
import type { Level } from "../plan/recompute/levels.ts";
import { auto } from "../plan/recompute/strategies.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import { GraphPlans } from "./graph-plans.ts";

/** Steps of a program of which more is searched. */
export const SMALL = 64;
/** The smallest plan takes at most so many times as long as the plan with a reasonable number of sweeps. */
export const PATIENCE = 4;

export class LoopForms {
  readonly #graph: Graph;
  readonly #tools: PlanTools;
  readonly #loops: LoopPlans<PlannedProgram>;
  /** Forms that are combined with recomputation; the last one holds as few states as can be, whatever that takes. */
  readonly #forms: readonly (() => GraphPlans)[];
  readonly #tightest: () => GraphPlans;

  /** `stored` is the form whose loops keep their stacks. */
  constructor(graph: Graph, stored: GraphPlans, groups: readonly LoopGroup[], tools: PlanTools) {
    this.#graph = graph;
    this.#tools = tools;
    this.#loops = new LoopPlans(groups, (choice) => (choice.size === 0 ? stored.base : this.#realise(choice)));
    const { levels, few } = this.#loops;
    this.#forms = [() => stored, this.#formAt(at(levels, levels.length >> 1)), this.#formAt(few)];
    this.#tightest = this.#formAt(at(levels, levels.length - 1));
  }

  /** One of many variants: as with those of recomputation, little is spent on the order of its steps. */
  #realise(choice: LoopChoice): Candidate<PlannedProgram> {
    const graph = withChoice(this.#graph, choice, this.#tools.costs);
    return candidateOf(
      this.#tools.assembler.make(graph, [this.#tools.assembler.fuse], { budgetBytes: UNREACHED }),
      auto.name,
      this.#tools,
    );
  }

  /** Forms that need few bytes, for a wider search. */
  get small(): readonly (() => GraphPlans)[] {
    return [at(this.#forms, this.#forms.length - 1), this.#tightest];
  }

  #formAt(choice: LoopChoice): () => GraphPlans {
    let form: GraphPlans | undefined;
    return () => {
      form ??= this.#newForm(choice);
      return form;
    };
  }

  #newForm(choice: LoopChoice): GraphPlans {
    // A form of its own: slices are nodes of this very graph.
    const graph = withChoice(this.#graph, choice, this.#tools.costs);
    const base = candidateOf(
      this.#tools.assembler.make(graph, [this.#tools.assembler.fuse], { budgetBytes: UNREACHED }),
      auto.name,
      this.#tools,
    );
    return new GraphPlans(graph, base, this.#tools);
  }

  /** The fastest plan within a budget; null where none was found. */
  within(budgetBytes: number, segments?: Level): Candidate<PlannedProgram> | null {
    let best = this.#loops.within(budgetBytes);
    for (const form of [...this.#forms, this.#tightest]) {
      const plans = form();
      const { base } = plans;
      const fits = base.arenaBytes <= budgetBytes;
      // All other plans of a family take longer than its first.
      const hopeless = best !== null && base.predictedMs >= best.predictedMs;
      if (!fits && hopeless) continue;
      const plan = fits ? base : plans.family(auto, segments).within(budgetBytes);
      if (plan && isFaster(plan, best)) best = plan;
    }
    return best;
  }

  /** The same among plans in which loops alone hold less. */
  loopsWithin(budgetBytes: number): Candidate<PlannedProgram> | null {
    return this.#loops.within(budgetBytes);
  }

  /** The smallest plan that does not run loops hundreds of times for the last few states. */
  least(segments?: Level): Candidate<PlannedProgram> {
    const few = at(this.#forms, this.#forms.length - 1)()
      .family(auto, segments)
      .least();
    const alone = this.#loops.at(this.#loops.few);
    const [slow, small] = [Math.max(few.predictedMs, alone.predictedMs), isSmaller(alone, few) ? alone : few];
    // Another search may have a smaller plan that takes no longer.
    const other = this.underMs(slow, segments);
    let best = this.#fastestLike(other && isSmaller(other, small) ? other : small);
    // Searching below each plan in turn finds smaller ones; those beyond the time limit are left to explicit budgets.
    for (let below: Candidate<PlannedProgram> | null = best; below && below.predictedMs <= PATIENCE * slow; ) {
      best = below;
      below = this.within(best.arenaBytes - 1, segments);
    }
    return best;
  }

  /** Of a small plan's size, what takes the least time: another state may cost nothing where something else is larger. */
  #fastestLike(small: Candidate<PlannedProgram>): Candidate<PlannedProgram> {
    const plan = this.#loops.within(small.arenaBytes);
    return plan && isFaster(plan, small) ? plan : small;
  }

  /** Plans from everything stored to the smallest, at budgets of equal ratios. */
  curve(points: number): readonly { readonly budgetBytes: number; readonly plan: Candidate<PlannedProgram> }[] {
    const [most, least] = [this.#forms[0]?.().base.arenaBytes ?? 0, this.least().arenaBytes];
    const budgets = Array.from({ length: points }, (_, i) => Math.ceil(most * (least / most) ** (i / (points - 1))));
    return [...new Set(budgets)].flatMap((budgetBytes) => {
      const plan = this.within(budgetBytes);
      return plan ? [{ budgetBytes, plan }] : [];
    });
  }

  /** The smallest plan there is, however long it takes. */
  smallest(segments?: Level): Candidate<PlannedProgram> {
    return this.#tightest().family(auto, segments).least();
  }

  /** The smallest plan that is predicted to take no more than so long. */
  underMs(limitMs: number, segments?: Level): Candidate<PlannedProgram> | null {
    let best = this.#loops.underMs(limitMs);
    for (const form of this.#forms) {
      const plans = form();
      const { predictedMs } = plans.base;
      if (predictedMs > limitMs) continue;
      const plan = plans.family(auto, segments).slowedBy(limitMs / predictedMs);
      if (best === null || isSmaller(plan, best)) best = plan;
    }
    return best && this.#fastestLike(best);
  }
}
