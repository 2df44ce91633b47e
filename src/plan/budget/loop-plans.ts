/**
 * @file What each loop of a program holds, for a number of bytes. A loop that keeps its stacks takes the least time and the
 * most bytes; one that holds s states makes t(l, s) turns again. With several loops the question is who gets the bytes: at
 * a *price* of a byte each loop takes the option that is cheapest for it, time and bytes together, and one price for all is
 * the best division of the bytes that they take.
 *
 * ```
 *   levels   0  everything stacked ─ … ─ 7 ─ 8 ─ … ─ n  as few as there can be      a level is a price, from 0 up
 *                                        │   │
 *   bytes B                     too much ┘   └ fits: then each loop in turn, the largest stacks first, gets what is left
 * ```
 *
 * Whether a level fits is asked of a real plan. Levels do not depend on the question, and what is added to one is the
 * most that fits, so more bytes never cost time.
 */
import { at } from "../../base/invariant.ts";
import { isFaster, isSmaller } from "./family.ts";
import type { LoopChoice, LoopForm, LoopGroup } from "./loop-groups.ts";
import { type Between, between, fewest, type Option, optionsOf, slope } from "./loop-options.ts";
import type { Candidate } from "./rungs.ts";

/** Prices that are looked at. */
const LEVELS = 40;

/** The number of each group's option. */
type Picks = readonly number[];

/** Picks from everything stacked to as few states as there can be, one for each of some prices. */
function levelsOf(options: readonly (readonly Option[])[]): readonly Picks[] {
  const prices = options.flatMap((own) => own.slice(1).map((option, i) => slope(at(own, i), option)));
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
  [...choice].map(([key, { slots, taped, price }]) => `${key}: ${slots}, ${taped}, ${price}`).join("; ");

/** A choice by the groups' forms; a loop that keeps its rows as they are is not in it. */
function choiceOf(groups: readonly LoopGroup[], forms: readonly LoopForm[]): LoopChoice {
  const chosen = groups.map(({ key }, g) => [key, at(forms, g)] as const);
  return new Map(chosen.filter(([, { taped, price }], g) => taped < at(groups, g).length || price > 0));
}

/** Plans of a program by what its loops hold. */
export class LoopPlans<R> {
  readonly levels: readonly LoopChoice[];
  readonly #groups: readonly LoopGroup[];
  readonly #options: readonly (readonly Option[])[];
  readonly #picks: readonly Picks[];
  readonly #realise: (choice: LoopChoice) => Candidate<R>;
  readonly #made = new Map<string, Candidate<R>>();

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
    const made = this.#made.get(key) ?? this.#realise(choice);
    this.#made.set(key, made);
    return made;
  }

  /** As few states as a reasonable number of sweeps takes. */
  get few(): LoopChoice {
    return new Map(this.#groups.map((group) => [group.key, fewest(group)]));
  }

  /** The fastest plan within a budget; null where none fits. */
  within(budgetBytes: number): Candidate<R> | null {
    const fits = (choice: LoopChoice): boolean => this.at(choice).arenaBytes <= budgetBytes;
    const level = firstWhere(this.levels.length, (i) => fits(at(this.levels, i)));
    if (level === this.levels.length) return null;
    const forms = [...this.#formsAt(at(this.#picks, level))];
    for (const g of forms.keys()) {
      for (const part of this.#above(g, at(at(this.#picks, level), g))) {
        const most = this.#mostThatFits(part, budgetBytes, (n) => this.#with(forms, g, part.at(n)));
        forms[g] = part.at(most);
        if (most < part.steps) break;
      }
    }
    const filled = this.at(choiceOf(this.#groups, forms));
    const plain = this.at(at(this.levels, level));
    return isFaster(filled, plain) ? filled : plain;
  }

  #with(forms: readonly LoopForm[], g: number, form: LoopForm): LoopChoice {
    return choiceOf(this.#groups, forms.with(g, form));
  }

  /** From a group's option to those with more bytes, one after the other. */
  #above(g: number, pick: number): readonly Between[] {
    const options = at(this.#options, g);
    return options.slice(pick + 1).map((to, i) => between(at(this.#groups, g), at(options, pick + i), to));
  }

  /** The most steps that fit: arenas grow with them in equal steps, so the first guess is near. */
  #mostThatFits({ steps, each }: Between, budget: number, stepped: (n: number) => LoopChoice): number {
    let [yes, no] = [0, steps + 1];
    for (let turn = 1; no - yes > 1; turn++) {
      const near = yes + Math.floor((budget - this.at(stepped(yes)).arenaBytes) / each);
      // Where steps are not equal after all, every third guess halves what is left.
      const guess = turn % 3 === 0 ? (yes + no) >> 1 : Math.min(no - 1, Math.max(yes + 1, near));
      if (this.at(stepped(guess)).arenaBytes <= budget) yes = guess;
      else no = guess;
    }
    return yes;
  }

  /** The smallest plan that takes no more than so long; null where none does. */
  underMs(limitMs: number): Candidate<R> | null {
    const tooSlow = (i: number): boolean => this.at(at(this.levels, i)).predictedMs > limitMs;
    const level = firstWhere(this.levels.length, tooSlow) - 1;
    if (level < 0) return null;
    const forms = [...this.#formsAt(at(this.#picks, level))];
    for (const [g, group] of this.#groups.entries()) {
      const [options, pick] = [at(this.#options, g), at(at(this.#picks, level), g)];
      for (let i = pick; i > 0; i--) {
        const part = between(group, at(options, i - 1), at(options, i));
        const isFast = (n: number): boolean => this.at(this.#with(forms, g, part.at(n))).predictedMs <= limitMs;
        const least = firstWhere(part.steps, isFast);
        forms[g] = part.at(least);
        if (least > 0) break;
      }
    }
    const [plain, narrowed] = [this.at(at(this.levels, level)), this.at(choiceOf(this.#groups, forms))];
    return narrowed.predictedMs <= limitMs && isSmaller(narrowed, plain) ? narrowed : plain;
  }
}

/** The first number that a property holds for, by bisection; `count` where there is none. */
function firstWhere(count: number, holds: (i: number) => boolean): number {
  let [no, yes] = [-1, count];
  while (yes - no > 1) {
    const middle = (no + yes) >> 1;
    if (holds(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}
