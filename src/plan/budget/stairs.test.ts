/** @file The staircase of plans, on rungs whose plans are anything: its promises may not depend on how good they are. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Candidate } from "./rungs.ts";
import { type Climbable, Stairs } from "./stairs.ts";

type Plan = Candidate<number>;

const TOP: Plan = { strategy: "store-all", arenaBytes: 1000, predictedMs: 100, result: 0 };

/** Rungs that aim at 980, 960, … bytes and find what they are told to; `climbs` counts those that were climbed. */
function rungsOf(found: readonly (readonly (readonly [number, number])[])[], aims: boolean) {
  const climbs = new Set<number>();
  const step = 1000 / (found.length + 1);
  const rungs: Climbable<number> = {
    count: found.length,
    aims,
    targetOf: (rung) => (aims ? Math.floor(1000 - step * rung) : Number.POSITIVE_INFINITY),
    climb(rung) {
      climbs.add(rung);
      const plans = found[rung - 1] ?? [];
      return plans.map(([arenaBytes, predictedMs]) => ({ strategy: "auto", arenaBytes, predictedMs, result: rung }));
    },
  };
  return { rungs, climbs };
}

const ladders = fc.record({
  aims: fc.boolean(),
  found: fc.array(
    fc.array(fc.tuple(fc.integer({ min: 1, max: 1100 }), fc.integer({ min: 90, max: 200 })), { maxLength: 3 }),
    { maxLength: 60 },
  ),
});
const BUDGETS = Array.from({ length: 200 }, (_, i) => 999 - 5 * i);

const figures = (plan: Plan | null): readonly number[] | null => plan && [plan.arenaBytes, plan.predictedMs];

test("fewer bytes never take a larger arena and are never faster, whatever rungs find", () => {
  fc.assert(
    fc.property(ladders, ({ found, aims }) => {
      const stairs = new Stairs(TOP, rungsOf(found, aims).rungs);
      let before = TOP;
      for (const budget of BUDGETS) {
        const plan = stairs.within(budget);
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
    fc.property(ladders, fc.array(fc.constantFrom(...BUDGETS), { maxLength: 8 }), ({ found, aims }, asked) => {
      const { rungs } = rungsOf(found, aims);
      const used = new Stairs(TOP, rungs);
      for (const budget of asked) {
        expect(figures(used.within(budget))).toEqual(figures(new Stairs(TOP, rungs).within(budget)));
      }
      expect(figures(used.least())).toEqual(figures(new Stairs(TOP, rungs).least()));
    }),
    { numRuns: 100, seed: 2 },
  );
});

test("the smallest plan answers a budget of its size, and nothing answers less", () => {
  fc.assert(
    fc.property(ladders, ({ found, aims }) => {
      const stairs = new Stairs(TOP, rungsOf(found, aims).rungs);
      const least = stairs.least();
      if (least !== TOP) expect(stairs.within(least.arenaBytes)).toBe(least);
      expect(stairs.within(least.arenaBytes - 1)).toBe(null);
    }),
    { numRuns: 100, seed: 3 },
  );
});

test("rungs whose plans are in order are all steps, and a question climbs few of them", () => {
  const found = Array.from({ length: 48 }, (_, i) => [[Math.floor(1000 - (1000 / 49) * (i + 1)), 101 + i] as const]);
  for (const aims of [true, false]) {
    for (const [i, [plan]] of found.entries()) {
      const { rungs, climbs } = rungsOf(found, aims);
      expect(figures(new Stairs(TOP, rungs).within(plan?.[0] ?? 0))).toEqual(plan);
      // the lowest looks around itself
      if (i < 47) expect(climbs.size).toBeLessThanOrEqual(7);
    }
  }
});

test("a plan that came out faster than what a larger budget was told is not given out", () => {
  // rungs aim at 833, 666, 500, 333, 166; the third is taken first, and the fourth comes out faster than that
  const found = [[[800, 101]], [[650, 105]], [[490, 120]], [[330, 110]], [[160, 130]]] as const;
  const stairs = new Stairs(TOP, rungsOf(found, true).rungs);
  expect(figures(stairs.within(500))).toEqual([490, 120]);
  expect(figures(stairs.within(489))).toEqual([160, 130]);
});

test("a poor plan is not in the way of all smaller ones", () => {
  // rungs aim at 750, 500, 250; the last one is better than the middle one in every way
  const found = [[[740, 101]], [[490, 120]], [[240, 110]]] as const;
  const stairs = new Stairs(TOP, rungsOf(found, true).rungs);
  expect(figures(stairs.within(500))).toEqual([240, 110]);
  expect(figures(stairs.least())).toEqual([240, 110]);
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
  const stairs = new Stairs(TOP, rungsOf(found, true).rungs);
  expect(figures(stairs.within(650))).toEqual([600, 110]);
});
