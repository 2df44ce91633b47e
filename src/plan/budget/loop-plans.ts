/**
 * @file How many states each loop of a program holds, for a number of bytes. A loop that keeps its stacks takes the least
 * time and the most bytes; one that holds s states makes t(l, s) turns again. With several loops the question is who gets
 * the bytes: at a *price* of a byte each loop takes the number that is cheapest for it, time and bytes together, and one
 * price for all is the best division of the bytes that they take.
 *
 * ```
 *   levels   0  everything stacked ─ … ─ 7 ─ 8 ─ … ─ n  as few as there can be      a level is a price, from 0 up
 *                                        │   │
 *   bytes B                     too much ┘   └ fits: then each loop in turn, the largest stacks first, gets what is left
 * ```
 *
 * Whether a level fits is asked of a real plan. Levels do not depend on the question, and what is added to one is the
 * most that fits, so more bytes never cost time. Loops of equal sizes are treated alike.
 */
import { at } from "../../base/invariant.ts";
import type { Graph } from "../../ir/graph.ts";
import type { ScanAttrs } from "../../ops/loops.ts";
import { type CostModel, msOf } from "../cost/model.ts";
import { graphWork } from "../cost/work.ts";
import { repetitions } from "../reverse/binomial.ts";
import { isFaster, isSmaller } from "./family.ts";
import { binomialSchedule } from "./reversal.ts";
import { type Decide, type FoundLoop, rewindLoops } from "./rewind.ts";
import type { Candidate } from "./rungs.ts";

/** Loops that are treated alike. */
export interface LoopGroup {
  readonly key: string;
  readonly count: number;
  readonly length: number;
  readonly stateBytes: number;
  readonly tapeBytes: number;
  /** Of one turn again, and of the rows of all turns again, in all runs of all loops. */
  readonly stepMs: number;
  readonly tapesMs: number;
}

/** States held by loops of each group; loops of the others keep their stacks. */
export type LoopChoice = ReadonlyMap<string, number>;

/** Sweeps that a plan makes unless it has to fit a given number of bytes: fewer states would save two or three at most. */
const MOST_SWEEPS = 200;
/** Prices that are looked at. */
const LEVELS = 40;

const keyOf = ({ pair: { length, stateBytes, tapeBytes }, depth }: FoundLoop): string =>
  `${depth} deep, ${length} × ${tapeBytes}, ${stateBytes}`;

const isFree = ({ pair: { forward } }: FoundLoop): boolean =>
  ((forward.attrs as Partial<ScanAttrs>).reversal ?? "auto") === "auto";

/** A graph whose loops hold states as chosen. */
export function withChoice(graph: Graph, choice: LoopChoice): Graph {
  const decide: Decide = (loop) => {
    const slots = isFree(loop) ? choice.get(keyOf(loop)) : undefined;
    return slots === undefined ? null : binomialSchedule(loop.pair.length, slots);
  };
  return choice.size === 0 ? graph : rewindLoops(graph, decide);
}

/** The fewest states with which a loop makes no more than so many sweeps. */
function fewest({ length }: Pick<LoopGroup, "length">): number {
  let slots = 1;
  while (repetitions(length, slots) > MOST_SWEEPS) slots++;
  return slots;
}

/** The loops of a graph that are the planner's to decide, those with the largest stacks first. */
export function loopGroups(graph: Graph, model: CostModel): readonly LoopGroup[] {
  const groups = new Map<string, LoopGroup>();
  const msOfGraph = (region: Graph): number => msOf(graphWork(region), model);
  const decide: Decide = (loop) => (isFree(loop) ? binomialSchedule(loop.pair.length, 1) : null);
  rewindLoops(graph, decide, (loop) => {
    const { pair, runs, step, back } = loop;
    const { length, stateBytes, tapeBytes } = pair;
    const key = keyOf(loop);
    const known = groups.get(key);
    const again = Math.max(0, msOfGraph(back) - msOfGraph(pair.backwardParts.body));
    groups.set(key, {
      key,
      count: (known?.count ?? 0) + 1,
      length,
      stateBytes,
      tapeBytes,
      stepMs: (known?.stepMs ?? 0) + runs * msOfGraph(step),
      tapesMs: (known?.tapesMs ?? 0) + runs * length * again,
    });
  });
  const bytes = ({ count, length, tapeBytes }: LoopGroup): number => count * length * tapeBytes;
  return [...groups.values()].sort((a, b) => bytes(b) - bytes(a) || (a.key < b.key ? -1 : 1));
}

/** One way to reverse the loops of a group; `slots` is null where stacks are kept. */
interface Option {
  readonly slots: number | null;
  readonly ms: number;
  readonly bytes: number;
}

function optionOf(group: LoopGroup, slots: number | null): Option {
  const { count, length, stateBytes, tapeBytes, stepMs, tapesMs } = group;
  if (slots === null) return { slots, ms: 0, bytes: count * length * tapeBytes };
  const { advances } = binomialSchedule(length, slots);
  return { slots, ms: advances * stepMs + tapesMs, bytes: count * (slots + 1) * stateBytes };
}

/** Numbers of states from the fewest to one for each turn, in steps that grow; then the stacks. */
function optionsOf(group: LoopGroup): readonly Option[] {
  const most = Math.max(1, group.length - 1);
  const options: Option[] = [];
  // States that nothing depends on need not be held, however many could be.
  const last = group.stateBytes === 0 ? 1 : most;
  for (let slots = 1; ; slots = Math.min(last, Math.max(slots + 1, Math.floor(slots * 1.25)))) {
    options.push(optionOf(group, slots));
    if (slots === last) break;
  }
  const all = optionOf(group, null);
  return [...options.filter(({ bytes }) => bytes < all.bytes), all];
}

/** Time saved for each byte more. */
const slope = (fewer: Option, more: Option): number => (fewer.ms - more.ms) / Math.max(1, more.bytes - fewer.bytes);

/** Of options from few to many bytes, those that some price makes the best: from one to the next the slope falls. */
function hull(options: readonly Option[]): readonly Option[] {
  const kept: Option[] = [];
  for (const option of options) {
    for (let n = kept.length; n > 1; n = kept.length) {
      const [before, last] = [at(kept, n - 2), at(kept, n - 1)];
      if (slope(before, last) > slope(last, option)) break;
      kept.pop();
    }
    kept.push(option);
  }
  return kept;
}

/** Choices from everything stacked to as few states as there can be, one for each of some prices. */
function levelsOf(groups: readonly LoopGroup[]): readonly LoopChoice[] {
  const hulls = groups.map((group) => hull(optionsOf(group)));
  const prices = hulls.flatMap((options) => options.slice(1).map((option, i) => slope(at(options, i), option)));
  const sorted = [...new Set(prices)].sort((a, b) => a - b);
  const every = Math.max(1, Math.ceil(sorted.length / LEVELS));
  const some = sorted.filter((_, i) => i % every === every - 1 || i === sorted.length - 1);
  const choiceAt = (price: number): LoopChoice => {
    const chosen = groups.flatMap(({ key }, g): (readonly [string, number])[] => {
      const options = at(hulls, g);
      const total = ({ ms, bytes }: Option): number => ms + price * bytes;
      const best = options.reduce((a, b) => (total(b) < total(a) ? b : a));
      return best.slots === null ? [] : [[key, best.slots]];
    });
    return new Map(chosen);
  };
  const choices = [new Map<string, number>(), ...some.map((price) => choiceAt(price * (1 + 1e-9)))];
  return choices.filter((choice, i) => i === 0 || textOf(choice) !== textOf(at(choices, i - 1)));
}

const textOf = (choice: LoopChoice): string => [...choice].map(([key, slots]) => `${key}: ${slots}`).join("; ");

/** Plans of a program by what its loops hold. */
export class LoopPlans<R> {
  readonly levels: readonly LoopChoice[];
  readonly #groups: readonly LoopGroup[];
  readonly #realise: (choice: LoopChoice) => Candidate<R>;
  readonly #made = new Map<string, Candidate<R>>();

  constructor(groups: readonly LoopGroup[], realise: (choice: LoopChoice) => Candidate<R>) {
    this.#groups = groups;
    this.#realise = realise;
    this.levels = levelsOf(groups);
  }

  at(choice: LoopChoice): Candidate<R> {
    const key = textOf(choice);
    const made = this.#made.get(key) ?? this.#realise(choice);
    this.#made.set(key, made);
    return made;
  }

  /** As few states as a reasonable number of sweeps takes. */
  get few(): LoopChoice {
    return new Map(this.#groups.map((group) => [group.key, Math.min(fewest(group), Math.max(1, group.length - 1))]));
  }

  /** The fastest plan within a budget; null where none fits. */
  within(budgetBytes: number): Candidate<R> | null {
    const fits = (choice: LoopChoice): boolean => this.at(choice).arenaBytes <= budgetBytes;
    const level = firstWhere(this.levels.length, (i) => fits(at(this.levels, i)));
    if (level === this.levels.length) return null;
    let choice = at(this.levels, level);
    for (const group of level === 0 ? [] : this.#groups) {
      const slots = choice.get(group.key);
      if (slots === undefined) continue;
      const wider = (n: number): LoopChoice => new Map([...choice, [group.key, slots + n]]);
      const room = Math.max(0, group.length - 1 - slots);
      choice = wider(this.#mostThatFits(room, budgetBytes, group, wider));
    }
    const filled = this.at(choice);
    const plain = this.at(at(this.levels, level));
    return isFaster(filled, plain) ? filled : plain;
  }

  /** The most states that can be added: arenas grow with them in equal steps, so the first guess is near. */
  #mostThatFits(
    room: number,
    budget: number,
    { stateBytes, count }: LoopGroup,
    wider: (n: number) => LoopChoice,
  ): number {
    let [yes, no] = [0, room + 1];
    const each = Math.max(1, count * stateBytes);
    for (let turn = 1; no - yes > 1; turn++) {
      const near = yes + Math.floor((budget - this.at(wider(yes)).arenaBytes) / each);
      // Where steps are not equal after all, every third guess halves what is left.
      const guess = turn % 3 === 0 ? (yes + no) >> 1 : Math.min(no - 1, Math.max(yes + 1, near));
      if (this.at(wider(guess)).arenaBytes <= budget) yes = guess;
      else no = guess;
    }
    return yes;
  }

  /** The smallest plan that takes no more than so long; null where none does. */
  underMs(limitMs: number): Candidate<R> | null {
    const tooSlow = (i: number): boolean => this.at(at(this.levels, i)).predictedMs > limitMs;
    const level = firstWhere(this.levels.length, tooSlow) - 1;
    if (level < 0) return null;
    let choice = at(this.levels, level);
    for (const group of this.#groups) {
      const slots = choice.get(group.key) ?? group.length - 1;
      const fewerStates = Math.max(0, slots - fewest(group));
      const narrower = (n: number): LoopChoice => new Map([...choice, [group.key, slots - n]]);
      const most = firstWhere(fewerStates + 1, (n) => this.at(narrower(n)).predictedMs > limitMs) - 1;
      if (most >= 0) choice = narrower(most);
    }
    const [plain, narrowed] = [this.at(at(this.levels, level)), this.at(choice)];
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
