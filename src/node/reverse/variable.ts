/**
 * @file Binomial schedules for steps of unequal cost. With C(a, k) the cost of steps a … k - 1,
 *
 * ```
 *   T(a, b, s) = min over a < k < b of  C(a, k) + T(k, b, s-1) + T(a, k, s)        T(a, b, 1): from x_a each time
 * ```
 *
 * The best k is monotone in a and b (Griewank and Walther, "Evaluating Derivatives", 2008, chapter 12), so k is
 * searched between those of (a, b-1) and (a+1, b): O(L² s) in total. Tables grow as L² s too; a loop too long for them
 * is split like a binomial schedule of equal steps, by number or by fraction of the cost, whichever is cheaper.
 */
import { at } from "../../base/invariant.ts";
import { binomialSplit } from "../../loops/binomial.ts";
import { bySplits, type Split, slotsOf } from "./segments.ts";

/** Cells of the tables of splits that fit the memory limit. */
const CELL_LIMIT = 1.6e7;

/** Sum of the costs of the steps before each. */
export function sumsBefore(costs: ArrayLike<number>): Float64Array {
  const before = new Float64Array(costs.length + 1);
  for (let i = 0; i < costs.length; i++) before[i + 1] = at(before, i) + at(costs, i);
  return before;
}

/** T(a, b, 1): every state before b is recomputed from x_a. */
function solveOne(before: Float64Array): Float64Array {
  const width = before.length;
  const cost = new Float64Array(width * width);
  for (let a = 0; a < width; a++) {
    for (let b = a + 2; b < width; b++) {
      cost[a * width + b] = at(cost, a * width + b - 1) + at(before, b - 1) - at(before, a);
    }
  }
  return cost;
}

/** T(·, ·, s) and its splits, from T(·, ·, s-1). */
function solveMore(before: Float64Array, fewer: Float64Array): { cost: Float64Array; split: Uint16Array } {
  const width = before.length;
  const cost = new Float64Array(width * width);
  const split = new Uint16Array(width * width);
  for (let length = 2; length < width; length++) {
    for (let a = 0; a + length < width; a++) {
      const b = a + length;
      const here = a * width + b;
      const low = length === 2 ? a + 1 : at(split, here - 1);
      const high = length === 2 ? a + 1 : Math.min(b - 1, at(split, here + width));
      let best = Number.POSITIVE_INFINITY;
      for (let k = low; k <= high; k++) {
        const total = (before[k] as number) + (fewer[k * width + b] as number) + (cost[a * width + k] as number);
        if (total < best) {
          best = total;
          split[here] = k;
        }
      }
      cost[here] = best - at(before, a);
    }
  }
  return { cost, split };
}

export interface VariablePlan {
  /** Of all advances. */
  readonly cost: number;
  /** Whether no schedule with these snapshots is cheaper. */
  readonly optimal: boolean;
  readonly split: Split;
}

function exactPlan(before: Float64Array, snapshots: number): VariablePlan {
  const width = before.length;
  let cost = solveOne(before);
  const splits: Uint16Array[] = [];
  for (let s = 2; s <= snapshots; s++) {
    const more = solveMore(before, cost);
    cost = more.cost;
    splits.push(more.split);
  }
  return {
    cost: at(cost, width - 1),
    optimal: true,
    split: (from, end, s) => at(at(splits, s - 2), from * width + end) - from,
  };
}

/** Splits at the binomial schedule's fraction of the cost instead of the number of steps. */
function shareSplit(before: Float64Array): Split {
  return (from, end, s) => {
    const share = binomialSplit(end - from, s) / (end - from);
    const target = at(before, from) + share * (at(before, end) - at(before, from));
    let [low, high] = [from + 1, end - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(before, middle) < target) low = middle + 1;
      else high = middle;
    }
    return low - from;
  };
}

function costOf(before: Float64Array, snapshots: number, split: Split): number {
  let cost = 0;
  for (const action of bySplits(before.length - 1, slotsOf(0, snapshots), split)) {
    if (action.kind === "advance") cost += at(before, action.to) - at(before, action.from);
  }
  return cost;
}

/** Where to keep states of a loop whose steps cost `costs`, with `snapshots` ≥ 1. */
export function variablePlan(costs: ArrayLike<number>, snapshots: number): VariablePlan {
  const before = sumsBefore(costs);
  // more snapshots than steps are useless
  const useful = Math.max(1, Math.min(snapshots, costs.length - 1));
  const width = before.length;
  if (width < 2 ** 16 && width * width * useful <= CELL_LIMIT) return exactPlan(before, useful);
  const even: Split = (from, end, s) => binomialSplit(end - from, s);
  const share = shareSplit(before);
  const [evenCost, shareCost] = [costOf(before, useful, even), costOf(before, useful, share)];
  return { cost: Math.min(evenCost, shareCost), optimal: false, split: evenCost <= shareCost ? even : share };
}
