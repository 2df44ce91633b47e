/**
 * @file A staircase of plans: each next one is smaller and slower than the one before. It is what questions are answered
 * from, so a larger budget is never slower and a smaller one never takes a larger arena, without exception.
 *
 * Plans come from rungs and not in order: the plan that was made for fewer bytes is now and then the faster one. To climb
 * all rungs would settle that, and take ten times as long as a question may. Instead rungs are climbed by bisection, and a
 * plan is taken only if it lies between those that were taken before it, in bytes *and* in time:
 *
 * ```
 *   bytes ┤● above                           a gap: two neighbours and the rungs between them
 *         ┤┌─────────────────┐
 *       T ┤│· · · ●· · · · · │               the plan of the middle rung lies inside: two gaps
 *         ┤│ ×               │               × would be faster than what larger budgets were told: not taken
 *         ┤└─────────────────┘
 *         ┤                   ● below
 *         └──────────────────────── ms
 * ```
 *
 * Whatever is found in a gap lies between its ends, so any two plans of the staircase are in order, and which gaps there
 * are depends on the program alone, not on what was asked before. A question is a walk down the tree of gaps: as many rungs
 * as the logarithm of their number. What is given up are plans that came out better than their neighbours' search.
 */
import { at } from "../../base/invariant.ts";
import type { Candidate, Rungs } from "./rungs.ts";

/** A plan that fits and takes so much longer than one that nearly did is a poor one: the next rung is climbed too. */
const POOR = 1.02;
/** Gaps whose ends are so near in time are left as they are. */
const NEAR = 1.0005;
/** Rungs that are climbed around the lowest in the end: below it some may reach what the bisection's did not. */
const AROUND = 3;

/** Of rungs, what a staircase needs to know. */
export type Climbable<R> = Pick<Rungs<R>, "count" | "aims" | "targetOf" | "climb">;

/** Two neighbours of the staircase so far, and the rungs whose plans may lie between them. */
interface Gap<R> {
  readonly above: Candidate<R>;
  /** Null below the smallest plan. */
  readonly below: Candidate<R> | null;
  readonly rungs: readonly number[];
  /** The rung that `above` was made for. */
  readonly last: number;
  /** What was made on the way and lies nowhere yet: in the end some of it may lie here; null where that was asked. */
  readonly spare: readonly Candidate<R>[] | null;
}

export class Stairs<R> {
  readonly #rungs: Climbable<R>;
  readonly #whole: Gap<R>;
  readonly #parts = new Map<Gap<R>, readonly Gap<R>[]>();

  /** `top` is the largest plan and the fastest. */
  constructor(top: Candidate<R>, rungs: Climbable<R>) {
    const all = Array.from({ length: rungs.count }, (_, i) => i + 1);
    this.#rungs = rungs;
    this.#whole = { above: top, below: null, rungs: all, last: 0, spare: [] };
  }

  /** The fastest plan within a number of bytes that are too few for `top`; null where there is none. */
  within(budgetBytes: number): Candidate<R> | null {
    return this.#gapOf((plan) => plan.arenaBytes <= budgetBytes).below;
  }

  /** The smallest plan. */
  least(): Candidate<R> {
    return this.#gapOf(() => false).above;
  }

  /** The gap, closed, between the plans for which a property does not hold and those for which it does. */
  #gapOf(holds: (plan: Candidate<R>) => boolean): Gap<R> {
    let gap = this.#whole;
    for (let parts = this.#partsOf(gap); parts.length > 0; parts = this.#partsOf(gap)) {
      gap = parts.find(({ below }) => below === null || holds(below)) ?? at(parts, parts.length - 1);
    }
    return gap;
  }

  #partsOf(gap: Gap<R>): readonly Gap<R>[] {
    const known = this.#parts.get(gap) ?? this.#split(gap);
    this.#parts.set(gap, known);
    return known;
  }

  #split(gap: Gap<R>): readonly Gap<R>[] {
    const { above, below, rungs, last, spare } = gap;
    if (spare === null || (below && below.predictedMs <= above.predictedMs * NEAR)) return [];
    if (rungs.length === 0) return this.#close(gap, spare);
    const middle = rungs.length >> 1;
    const target = this.#rungs.targetOf(at(rungs, middle));
    const { found, climbed } = this.#climb(rungs, middle, target);
    const fitting = found.filter(({ arenaBytes }) => arenaBytes <= target);
    const taken = stepsBetween(fitting, above, below);
    const [left, right] = [rungs.slice(0, middle), rungs.slice(middle + climbed)];
    const made = [...spare, ...found];
    const smallest = taken.at(-1);
    if (!smallest) {
      // Faster than what larger budgets were told: only fewer bytes can bring what is not. Otherwise only more can.
      const isFast = fitting.some(({ predictedMs }) => predictedMs <= above.predictedMs);
      return [{ ...gap, rungs: isFast ? right : left, spare: made }];
    }
    // A rung that aims at more than was reached already aims at nothing new.
    const isLower = (rung: number): boolean => this.#rungs.targetOf(rung) < smallest.arenaBytes;
    const lower = this.#rungs.aims ? right.filter(isLower) : right;
    const better = below ? null : this.#betterBelow(smallest, lower);
    if (better !== null) {
      return [{ ...gap, rungs: [...left, ...lower.filter((rung) => rung >= better)], spare: made }];
    }
    const reached = at(rungs, middle + climbed - 1);
    return between(above, taken, below, (start) => {
      if (start === above) return { rungs: left, last, spare: made };
      return { rungs: start === smallest ? lower : [], last: reached, spare: made };
    });
  }

  /** Plans of the middle rung, and of those after it that are climbed with it. */
  #climb(rungs: readonly number[], middle: number, target: number) {
    const found = [...this.#rungs.climb(at(rungs, middle))];
    const climbNext = (): void => {
      const next = rungs[middle + climbed];
      if (next === undefined) return;
      found.push(...this.#rungs.climb(next));
      climbed += 1;
    };
    let climbed = 1;
    const fastest = Math.min(...found.map(({ predictedMs }) => predictedMs));
    const isGood = (plan: Candidate<R>): boolean => plan.arenaBytes <= target && plan.predictedMs <= fastest * POOR;
    if (found.length > 0 && !found.some(isGood)) climbNext();
    return { found, climbed };
  }

  /**
   * A rung whose plan is smaller than the one given and no slower. With nothing below it yet, a poor plan would be in the
   * way of all smaller ones, so the next that is found below it has to be slower before it is taken.
   */
  #betterBelow({ arenaBytes, predictedMs }: Candidate<R>, rungs: readonly number[]): number | null {
    for (let rest = rungs; rest.length > 0; ) {
      const rung = at(rest, rest.length >> 1);
      const smaller = this.#rungs.climb(rung).filter((plan) => plan.arenaBytes < arenaBytes);
      if (smaller.length > 0) return smaller.some((plan) => plan.predictedMs <= predictedMs) ? rung : null;
      rest = rest.slice(0, rest.length >> 1);
    }
    return null;
  }

  /** No rung is left: what was made for other rungs and lies here is taken; below the smallest plan, also of those around. */
  #close({ above, below, last }: Gap<R>, spare: readonly Candidate<R>[]): readonly Gap<R>[] {
    const found = below ? spare : [...spare, ...this.#around(last)];
    return between(above, stepsBetween(found, above, below), below, () => ({ rungs: [], last, spare: null }));
  }

  #around(last: number): readonly Candidate<R>[] {
    const found: Candidate<R>[] = [];
    for (const step of [1, -1]) {
      for (
        let rung = last + step;
        Math.abs(rung - last) <= AROUND && rung >= 1 && rung <= this.#rungs.count;
        rung += step
      ) {
        const plans = this.#rungs.climb(rung);
        // Where nothing was found, there is nothing below.
        if (plans.length === 0 && step > 0) break;
        found.push(...plans);
      }
    }
    return found;
  }
}

/** The gaps between two plans when some between them are taken. */
function between<R>(
  above: Candidate<R>,
  taken: readonly Candidate<R>[],
  below: Candidate<R> | null,
  rest: (start: Candidate<R>) => Omit<Gap<R>, "above" | "below">,
): readonly Gap<R>[] {
  return [above, ...taken].map((start, i) => ({ above: start, below: taken[i] ?? below, ...rest(start) }));
}

/** Of some plans those that lie between two others in bytes and in time and are not beaten, from large to small. */
function stepsBetween<R>(
  plans: readonly Candidate<R>[],
  above: Candidate<R>,
  below: Candidate<R> | null,
): readonly Candidate<R>[] {
  const [leastBytes, mostMs] = below ? [below.arenaBytes, below.predictedMs] : [-1, Number.POSITIVE_INFINITY];
  const inside = plans.filter(
    ({ arenaBytes, predictedMs }) =>
      arenaBytes < above.arenaBytes &&
      arenaBytes > leastBytes &&
      predictedMs > above.predictedMs &&
      predictedMs < mostMs,
  );
  const steps: Candidate<R>[] = [];
  for (const plan of inside.sort((a, b) => a.predictedMs - b.predictedMs || a.arenaBytes - b.arenaBytes)) {
    if (plan.arenaBytes < (steps.at(-1)?.arenaBytes ?? Number.POSITIVE_INFINITY)) steps.push(plan);
  }
  return steps;
}
