/** @file The Pareto front of plans, on levels with arbitrary plans: its guarantees may not depend on how good they are. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Candidate } from "./budget-levels.ts";
import { type FrontLevels, ParetoFront } from "./pareto-front.ts";

type Plan = Candidate<number>;

const TOP: Plan = { strategy: "store-all", arenaBytes: 1000, predictedMs: 100, result: 0 };

/** Levels that aim at 980, 960, … bytes and have the given plans; `asked` has those that were asked for plans. */
function levelsOf(found: readonly (readonly (readonly [number, number])[])[], aims: boolean) {
  const asked = new Set<number>();
  const step = 1000 / (found.length + 1);
  const levels: FrontLevels<number> = {
    count: found.length,
    aims,
    targetOf: (level) => (aims ? Math.floor(1000 - step * level) : Number.POSITIVE_INFINITY),
    plansAt(level) {
      asked.add(level);
      const plans = found[level - 1] ?? [];
      return plans.map(([arenaBytes, predictedMs]) => ({ strategy: "auto", arenaBytes, predictedMs, result: level }));
    },
  };
  return { levels, asked };
}

const series = fc.record({
  aims: fc.boolean(),
  found: fc.array(
    fc.array(fc.tuple(fc.integer({ min: 1, max: 1100 }), fc.integer({ min: 90, max: 200 })), { maxLength: 3 }),
    { maxLength: 60 },
  ),
});
const BUDGETS = Array.from({ length: 200 }, (_, i) => 999 - 5 * i);

const figures = (plan: Plan | null): readonly number[] | null => plan && [plan.arenaBytes, plan.predictedMs];

test("fewer bytes never take a larger arena and are never faster, whatever levels find", () => {
  fc.assert(
    fc.property(series, ({ found, aims }) => {
      const front = new ParetoFront(TOP, levelsOf(found, aims).levels);
      let before = TOP;
      for (const budget of BUDGETS) {
        const plan = front.within(budget);
        if (plan === null) break;
        expect(plan.arenaBytes).toBeLessThanOrEqual(budget);
        expect(plan.arenaBytes).toBeLessThanOrEqual(before.arenaBytes);
        expect(plan.predictedMs).toBeGreaterThanOrEqual(before.predictedMs);
        // a plan that fits fewer bytes too is the answer there too
        if (before.arenaBytes <= budget) expect(plan).toBe(before);
        before = plan;
      }
    }),
    { numRuns: 300, seed: 1 },
  );
});

test("an answer does not depend on what was asked before", () => {
  fc.assert(
    fc.property(series, fc.array(fc.constantFrom(...BUDGETS), { maxLength: 8 }), ({ found, aims }, asked) => {
      const { levels } = levelsOf(found, aims);
      const used = new ParetoFront(TOP, levels);
      for (const budget of asked) {
        expect(figures(used.within(budget))).toEqual(figures(new ParetoFront(TOP, levels).within(budget)));
      }
      expect(figures(used.least())).toEqual(figures(new ParetoFront(TOP, levels).least()));
    }),
    { numRuns: 100, seed: 2 },
  );
});

test("the smallest plan answers a budget of its size, and nothing answers less", () => {
  fc.assert(
    fc.property(series, ({ found, aims }) => {
      const front = new ParetoFront(TOP, levelsOf(found, aims).levels);
      const least = front.least();
      if (least !== TOP) expect(front.within(least.arenaBytes)).toBe(least);
      expect(front.within(least.arenaBytes - 1)).toBe(null);
    }),
    { numRuns: 100, seed: 3 },
  );
});

test("levels whose plans are in order are all steps, and a question asked few of them", () => {
  const found = Array.from({ length: 48 }, (_, i) => [[Math.floor(1000 - (1000 / 49) * (i + 1)), 101 + i] as const]);
  for (const aims of [true, false]) {
    for (const [i, [plan]] of found.entries()) {
      const { levels, asked } = levelsOf(found, aims);
      expect(figures(new ParetoFront(TOP, levels).within(plan?.[0] ?? 0))).toEqual(plan);
      // the lowest looks around itself
      if (i < 47) expect(asked.size).toBeLessThanOrEqual(7);
    }
  }
});

test("a plan that came out faster than what a larger budget was told is not given out", () => {
  // levels aim at 833, 666, 500, 333, 166; the third is taken first, and the fourth comes out faster than that
  const found = [[[800, 101]], [[650, 105]], [[490, 120]], [[330, 110]], [[160, 130]]] as const;
  const front = new ParetoFront(TOP, levelsOf(found, true).levels);
  expect(figures(front.within(500))).toEqual([490, 120]);
  expect(figures(front.within(489))).toEqual([160, 130]);
});

test("a poor plan is not in the way of all smaller ones", () => {
  // levels aim at 750, 500, 250; the last one is better than the middle one in every way
  const found = [[[740, 101]], [[490, 120]], [[240, 110]]] as const;
  const front = new ParetoFront(TOP, levelsOf(found, true).levels);
  expect(figures(front.within(500))).toEqual([240, 110]);
  expect(figures(front.least())).toEqual([240, 110]);
});

test("what missed its target is a step in the end where it lies between others", () => {
  const found = [
    [[740, 101]],
    [
      [600, 110],
      [490, 120],
    ],
    [[240, 130]],
  ] as const;
  const front = new ParetoFront(TOP, levelsOf(found, true).levels);
  expect(figures(front.within(650))).toEqual([600, 110]);
});
