/** @file Schedules for loops of unknown length: the best in their range, never more repetitions than needed, no failure. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leastAdvances, reach, repetitions } from "../../loops/binomial.ts";
import { memoryLevel } from "./action.ts";
import { type Checked, checkActions } from "./check.ts";
import { online } from "./online.ts";
import { scheduleNamed } from "./schedule.ts";

function run(steps: number, snapshots: number, evaluations?: Uint32Array): Checked {
  const actions = online(snapshots, (step) => step === steps - 1);
  return checkActions(steps, [memoryLevel(snapshots)], actions, { evaluations });
}

describe("an online schedule", () => {
  it("is as good as one that knows the length, at each length up to C(s+2, 2) + 1", () => {
    const wrong: string[] = [];
    for (let s = 1; s <= 24; s++) {
      for (let l = 1; l <= reach(s, 2) + 1; l++) {
        const { problem, recomputedSteps } = run(l, s);
        if (problem !== null || recomputedSteps !== leastAdvances(l, s)) wrong.push(`${l} steps, ${s}: ${problem}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("is not, one step further: the range is the largest that is known", () => {
    for (let s = 2; s <= 8; s++) {
      const l = reach(s, 2) + 2;
      expect(run(l, s).recomputedSteps).toBeGreaterThan(leastAdvances(l, s));
    }
  });

  it("runs no step more often than the schedule that knows the length may", () => {
    const wrong: string[] = [];
    for (let s = 1; s <= 6; s++) {
      for (let l = 1; l <= Math.min(160, reach(s, 4)); l++) {
        const evaluations = new Uint32Array(l);
        const { problem } = run(l, s, evaluations);
        const most = Math.max(...evaluations) - 1;
        if (problem !== null || most > repetitions(l, s)) wrong.push(`${l} steps, ${s}: ${problem ?? most}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("is always possible", () => {
    const loops = fc.tuple(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 40 }));
    fc.assert(
      fc.property(loops, ([l, s]) => {
        const { problem, recomputedSteps, peakSnapshots } = run(l, s);
        expect(problem).toBeNull();
        expect(peakSnapshots).toBeLessThanOrEqual(s);
        expect(recomputedSteps).toBeGreaterThanOrEqual(leastAdvances(l, s));
        expect(recomputedSteps).toBeLessThanOrEqual(1.5 * leastAdvances(l, s));
      }),
      { seed: 7, numRuns: 150 },
    );
  });

  it("asks once for each step, in order, while the state of that step is current", () => {
    const asked: number[] = [];
    let current = 0;
    const actions = online(3, (step) => {
      expect(current).toBe(step);
      asked.push(step);
      return step === 19;
    });
    for (const action of actions) {
      if (action.kind === "advance") current = action.to;
      if (action.kind === "reverse") break;
    }
    expect(asked).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it("reverses a loop of no steps by doing nothing", () => {
    const { levels, actions } = scheduleNamed("online", { steps: 0, snapshots: 3 });
    expect(checkActions(0, levels, actions())).toMatchObject({ problem: null, actions: 0 });
  });
});
