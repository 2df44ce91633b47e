/** @file Steps of unequal cost: against all splits, without the monotonicity that the tables rely on. */
import { describe, expect, it } from "vitest";
import { hostRandom } from "../../base/random.ts";
import { leastAdvances } from "../../loops/binomial.ts";
import { checkActions } from "./check.ts";
import { scheduleNamed } from "./schedule.ts";
import { variablePlan } from "./variable.ts";

/** T(0, L, s) by trying every split of every piece. */
function leastCost(costs: readonly number[], snapshots: number): number {
  const known = new Map<string, number>();
  const sum = (a: number, b: number): number => costs.slice(a, b).reduce((x, y) => x + y, 0);
  function least(a: number, b: number, s: number): number {
    if (b - a <= 1) return 0;
    const key = `${a},${b},${s}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    let best = s === 1 ? sum(a, b - 1) + least(a, b - 1, 1) : Number.POSITIVE_INFINITY;
    for (let k = a + 1; s > 1 && k < b; k++) best = Math.min(best, sum(a, k) + least(k, b, s - 1) + least(a, k, s));
    known.set(key, best);
    return best;
  }
  return least(0, costs.length, snapshots);
}

function costOf(costs: readonly number[], snapshots: number): number {
  const schedule = scheduleNamed("variable", { steps: costs.length, snapshots, costs });
  const checked = checkActions(costs.length, schedule.levels, schedule.actions(), { costs });
  expect(checked.problem).toBeNull();
  expect(checked.peakSnapshots).toBeLessThanOrEqual(snapshots);
  return checked.cost;
}

describe("a schedule for unequal steps", () => {
  it("costs as little as any, for random, skewed and partly free steps", () => {
    const random = hostRandom(11);
    const kinds = [
      (x: number) => Math.ceil(9 * x),
      (x: number) => Math.ceil(1e4 * x ** 8),
      (x: number) => (x < 0.6 ? 0 : 3),
    ];
    for (const kind of kinds) {
      for (let n = 0; n < 12; n++) {
        const costs = Array.from({ length: 2 + Math.floor(24 * random.next()) }, () => kind(random.next()));
        for (const snapshots of [1, 2, 3, 5]) {
          expect(costOf(costs, snapshots), `${costs} with ${snapshots}`).toBe(leastCost(costs, snapshots));
        }
      }
    }
  });

  it("is the binomial one when they are equal", () => {
    for (const [l, s] of [
      [40, 3],
      [100, 6],
      [150, 2],
    ] as const) {
      const costs = new Array<number>(l).fill(2);
      expect(variablePlan(costs, s)).toMatchObject({ cost: 2 * leastAdvances(l, s), optimal: true });
      expect(costOf(costs, s)).toBe(2 * leastAdvances(l, s));
    }
  });

  it("is cheaper than the binomial one when they are not", () => {
    const costs = Array.from({ length: 60 }, (_, i) => (i < 50 ? 1 : 100));
    const binomial = scheduleNamed("binomial", { steps: 60, snapshots: 4 });
    const even = checkActions(60, binomial.levels, binomial.actions(), { costs }).cost;
    expect(costOf(costs, 4)).toBeLessThan(0.8 * even);
  });

  it("is split by number or by cost when it is too long for the tables", () => {
    const random = hostRandom(5);
    const costs = Array.from({ length: 20_000 }, () => 1 + Math.floor(9 * random.next()));
    const plan = variablePlan(costs, 9);
    expect(plan.optimal).toBe(false);
    expect(costOf(costs, 9)).toBe(plan.cost);
    const mean = costs.reduce((x, y) => x + y, 0) / costs.length;
    expect(plan.cost / mean / leastAdvances(20_000, 9)).toBeLessThan(1.05);
  });

  it("wants one cost for each step", () => {
    expect(() => scheduleNamed("variable", { steps: 3, snapshots: 1, costs: [1] })).toThrow("1 costs for 3 steps");
    expect(() => scheduleNamed("variable", { steps: 3, snapshots: 1 })).toThrow("0 costs for 3 steps");
    expect(costOf([], 1)).toBe(0);
    expect(costOf([5], 1)).toBe(0);
  });
});
