/**
 * @file Chooses the form of each loop for a number of bytes. A loop that keeps its stacks takes the least time and the
 * most bytes; one that keeps s states recomputes t(l, s) iterations. Bytes are divided among several loops by a
 * Lagrange multiplier: at a *price* per byte each loop takes the option with the lowest time plus price times bytes,
 * and one price for all loops gives the best division of the bytes that they take together.
 *
 * ```
 *   levels   0  everything stacked ─ … ─ 7 ─ · · · ─ 8 ─ … ─ n  the fewest states           a level is a price, from 0 up
 *                                            └ between two levels: one loop after the other moves to its next option,
 *                                              largest stacks last, by one state or one iteration's rows a step
 * ```
 *
 * This is one descending sequence of choices, one level per step; the real plans along it (plan/budget/pareto-front.ts) decide
 * which one a budget gets, so that more bytes never cost time.
 */
import { at } from "../base/invariant.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { isSmaller } from "../plan/budget/family.ts";
import { ParetoFront } from "../plan/budget/pareto-front.ts";
import type { LoopChoice, LoopForm, LoopGroup } from "./groups.ts";
import { fewest, mixturesBetween, optionFor, optionsOf, type ReversalOption, slope } from "./options.ts";

/** The number of prices tried. */
const LEVELS = 40;
/** The most forms tried between two options of a loop. */
const STEPS = 16384;

/** The index of each group's option. */
type Picks = readonly number[];

/** Picks from everything stacked to the fewest states, one for each price. */
function levelsOf(options: readonly (readonly ReversalOption[])[]): readonly Picks[] {
  const prices = options.flatMap((ofGroup) => ofGroup.slice(1).map((option, i) => slope(at(ofGroup, i), option)));
  const sorted = [...new Set(prices)].sort((a, b) => a - b);
  const every = Math.max(1, Math.ceil(sorted.length / LEVELS));
  const some = sorted.filter((_, i) => i % every === every - 1 || i === sorted.length - 1);
  const picksAt = (price: number): Picks =>
    options.map((own) => {
      const total = (i: number): number => at(own, i).ms + price * at(own, i).bytes;
      return own.reduce((best, _, i) => (total(i) < total(best) ? i : best), 0);
    });
  const levels = [picksAt(0), ...some.map((price) => picksAt(price * (1 + 1e-9)))];
  return levels.filter((picks, i) => i === 0 || picks.join() !== at(levels, i - 1).join());
}

const textOf = (choice: LoopChoice): string =>
  [...choice].map(([key, { checkpoints, taped, price }]) => `${key}: ${checkpoints}, ${taped}, ${price}`).join("; ");

/** A step of the descent: the form of each group, with estimated bytes and time. */
interface DescentStep {
  readonly forms: readonly LoopForm[];
  readonly bytes: number;
  readonly ms: number;
}

/** The Pareto-optimal steps by estimate, from many bytes to few. */
function paretoSteps(steps: readonly DescentStep[]): readonly DescentStep[] {
  const front: DescentStep[] = [];
  for (const step of [...steps].sort((a, b) => a.bytes - b.bytes || a.ms - b.ms)) {
    if (step.ms < (front.at(-1)?.ms ?? Number.POSITIVE_INFINITY)) front.push(step);
  }
  return front.reverse();
}

/** The choice made of the groups' forms; groups that keep all their rows are absent. */
function choiceOf(groups: readonly LoopGroup[], forms: readonly LoopForm[]): LoopChoice {
  const chosen = groups.map(({ key }, g) => [key, at(forms, g)] as const);
  return new Map(chosen.filter(([, { taped, price }], g) => taped < at(groups, g).length || price > 0));
}

/** Plans of a program by the form of its loops. */
export class LoopPlans<R> {
  readonly levels: readonly LoopChoice[];
  readonly #groups: readonly LoopGroup[];
  readonly #options: readonly (readonly ReversalOption[])[];
  readonly #picks: readonly Picks[];
  readonly #realise: (choice: LoopChoice) => Candidate<R>;
  readonly #made = new Map<string, Candidate<R>>();
  #front: ParetoFront<R> | undefined;

  constructor(groups: readonly LoopGroup[], realise: (choice: LoopChoice) => Candidate<R>) {
    this.#groups = groups;
    this.#realise = realise;
    this.#options = groups.map(optionsOf);
    this.#picks = levelsOf(this.#options);
    this.levels = this.#picks.map((picks) => choiceOf(groups, this.#formsAt(picks)));
  }

  #formsAt(picks: Picks): readonly LoopForm[] {
    return picks.map((pick, g) => at(at(this.#options, g), pick).form);
  }

  at(choice: LoopChoice): Candidate<R> {
    const key = textOf(choice);
    const candidate = this.#made.get(key) ?? this.#realise(choice);
    this.#made.set(key, candidate);
    return candidate;
  }

  /** The fewest states with a bounded number of sweeps (options.ts). */
  get few(): LoopChoice {
    return new Map(this.#groups.map((group) => [group.key, fewest(group)]));
  }

  /** The fastest plan within a budget; null where none fits. */
  within(budgetBytes: number): Candidate<R> | null {
    const top = this.at(at(this.levels, 0));
    if (top.arenaBytes <= budgetBytes) return top;
    this.#front ??= this.#descent(top);
    return this.#front.within(budgetBytes);
  }

  /** The descent from everything stacked to the fewest states, one level per step. */
  #descent(top: Candidate<R>): ParetoFront<R> {
    const steps = paretoSteps(this.#steps());
    const plansAt = (level: number): readonly Candidate<R>[] => [
      this.at(choiceOf(this.#groups, at(steps, level - 1).forms)),
    ];
    return new ParetoFront(top, {
      count: steps.length,
      aims: false,
      targetOf: () => Number.POSITIVE_INFINITY,
      plansAt,
    });
  }

  #steps(): readonly DescentStep[] {
    const picks = [...at(this.#picks, 0)];
    const steps: DescentStep[] = [];
    for (const next of this.#picks.slice(1)) {
      for (let g = picks.length - 1; g >= 0; g--) {
        for (; at(picks, g) > at(next, g); picks[g] = at(picks, g) - 1) steps.push(...this.#stepsBelow(picks, g));
      }
    }
    return steps;
  }

  /** The steps that take one group from its option to the next smaller one. */
  #stepsBelow(picks: Picks, g: number): readonly DescentStep[] {
    const [group, options, pick] = [at(this.#groups, g), at(this.#options, g), at(picks, g)];
    const part = mixturesBetween(group, at(options, pick - 1), at(options, pick));
    const others = picks.map((own, i) => at(at(this.#options, i), own)).filter((_, i) => i !== g);
    const [bytes, ms] = [others.reduce((sum, o) => sum + o.bytes, 0), others.reduce((sum, o) => sum + o.ms, 0)];
    const count = Math.min(STEPS, part.steps);
    return Array.from({ length: count }, (_, i) => {
      const form = part.at(Math.floor((part.steps * i) / count));
      const option = optionFor(group, form);
      return { forms: this.#formsAt(picks).with(g, form), bytes: bytes + option.bytes, ms: ms + option.ms };
    });
  }

  #with(forms: readonly LoopForm[], g: number, form: LoopForm): LoopChoice {
    return choiceOf(this.#groups, forms.with(g, form));
  }

  /** The smallest plan within a time limit; null if there is none. */
  underMs(limitMs: number): Candidate<R> | null {
    const tooSlow = (i: number): boolean => this.at(at(this.levels, i)).predictedMs > limitMs;
    const level = firstWhere(this.levels.length, tooSlow) - 1;
    if (level < 0) return null;
    const forms = [...this.#formsAt(at(this.#picks, level))];
    for (const [g, group] of this.#groups.entries()) {
      const [options, pick] = [at(this.#options, g), at(at(this.#picks, level), g)];
      for (let i = pick; i > 0; i--) {
        const part = mixturesBetween(group, at(options, i - 1), at(options, i));
        const isFast = (n: number): boolean => this.at(this.#with(forms, g, part.at(n))).predictedMs <= limitMs;
        const firstFast = firstWhere(part.steps, isFast);
        forms[g] = part.at(firstFast);
        if (firstFast > 0) break;
      }
    }
    const [plain, narrowed] = [this.at(at(this.levels, level)), this.at(choiceOf(this.#groups, forms))];
    return narrowed.predictedMs <= limitMs && isSmaller(narrowed, plain) ? narrowed : plain;
  }
}

/** The first index at which a monotone property holds, by bisection; `count` if there is none. */
function firstWhere(count: number, holds: (i: number) => boolean): number {
  let [no, yes] = [-1, count];
  while (yes - no > 1) {
    const middle = (no + yes) >> 1;
    if (holds(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}
