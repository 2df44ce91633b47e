/** @file Snapshots on several levels: known optima, one level, and loops too long for the dynamic program. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { leastAdvances } from "../../loops/binomial.ts";
import { type LevelSpec, stateLevel } from "./action.ts";
import { type Checked, checkActions } from "./check.ts";
import { byLevels, planLevels } from "./levels.ts";
import { scheduleNamed } from "./schedule.ts";

const slots = (name: string, units: number, writeCost = 0, readCost = writeCost): LevelSpec => {
  return { name, units, writeCost, readCost };
};

function run(steps: number, levels: readonly LevelSpec[]): Checked {
  const schedule = scheduleNamed("multi-level", { steps, snapshots: 0, levels });
  expect(schedule.levels).toEqual(levels.map(stateLevel));
  const checked = checkActions(steps, schedule.levels, schedule.actions());
  expect(checked.problem).toBeNull();
  return checked;
}

const INF = Number.POSITIVE_INFINITY;

describe("a schedule for several levels", () => {
  it.each([
    [10, 2, INF, 2, 20],
    [20, 3, INF, 2, 43],
    [50, 3, INF, 2, 125],
    [100, 5, INF, 5, 280],
    [200, 5, INF, 5, 593],
    [100, 5, 2, 2, 267],
    [100, 5, 5, 2, 257],
    [200, 5, 3, 5, 656],
  ])("of %i steps with %i slots in memory and %f on disk at %i costs %i", (steps, memory, disk, cost, least) => {
    expect(run(steps, [slots("mem", memory), slots("disk", disk, cost)]).cost).toBe(least);
  });

  const file = "../shared/bench/instances/checkpoint-oracles/two_level.csv";
  it.skipIf(!existsSync(file))("costs what a table of 420 cases says", () => {
    const rows = readFileSync(file, "utf8").trim().split("\n").slice(1);
    expect(rows).toHaveLength(420);
    const wrong = rows.filter((row) => {
      const [steps, ram, disk, w, r, least] = row.split(",").map((word) => (word === "inf" ? INF : Number(word))) as [
        number,
        number,
        number,
        number,
        number,
        number,
      ];
      return run(steps, [slots("mem", ram), slots("disk", disk, w, r)]).cost !== least;
    });
    expect(wrong).toEqual([]);
  });

  it("with one level, at no cost, is the binomial one", () => {
    for (const [l, s] of [
      [50, 3],
      [100, 10],
      [7, 100],
    ] as const) {
      expect(run(l, [slots("mem", s)]).cost).toBe(leastAdvances(l, s));
    }
  });

  it("is the same whether a free first level is solved or known", () => {
    const free = slots("mem", 4);
    // no slots at no cost below it: the level with four is not the first and is solved
    const solved = planLevels(60, [slots("none", 0, 1), free, slots("disk", 3, 2)]);
    expect(planLevels(60, [free, slots("disk", 3, 2)]).cost).toBe(solved.cost);
  });

  it("leaves a level alone that costs more than it saves", () => {
    expect(run(60, [slots("mem", 4), slots("tape-robot", 10, 1e6)]).writes[1]).toBe(0);
  });

  it("needs a slot somewhere", () => {
    const none = [slots("mem", 0), slots("disk", 0, 1)];
    expect(() => run(2, none)).toThrow("2 steps cannot be reversed without a snapshot");
    expect(run(1, none).forwardSteps).toBe(1);
    expect(run(0, none).forwardSteps).toBe(0);
  });
});

describe("a schedule for several levels of a long loop", () => {
  const limited = [slots("mem", 5), slots("disk", 20, 3)];
  const endless = [slots("mem", 5), slots("disk", INF, 3)];
  const three = [slots("mem", 4, 0.5), slots("disk", 12, 3), slots("far", INF, 30)];

  it.each([
    ["a limited disk", limited, 1.1],
    ["a disk without limit", endless, 1.01],
    ["three levels", three, 1.1],
  ])("with %s is cut until the tables know it, at little loss", (_, levels, most) => {
    const steps = 2000;
    const least = planLevels(steps, levels);
    expect(least.optimal).toBe(true);
    for (const solved of [100, 400]) {
      const plan = planLevels(steps, levels, solved);
      expect(plan.optimal).toBe(false);
      const checked = checkActions(steps, levels.map(stateLevel), byLevels(steps, levels, plan));
      expect(checked).toMatchObject({ problem: null, cost: plan.cost });
      expect(plan.cost / least.cost).toBeLessThan(most);
    }
  });

  it("is cut from the default of the tables on", () => {
    const plan = planLevels(60_000, three);
    expect(plan.optimal).toBe(false);
    const checked = checkActions(60_000, three.map(stateLevel), byLevels(60_000, three, plan));
    expect(checked).toMatchObject({ problem: null, cost: plan.cost });
  });

  it("uses memory alone when the rest is too slow", () => {
    const levels = [slots("mem", 20), slots("disk", 30, 1e7)];
    expect(run(60_000, levels)).toMatchObject({ cost: leastAdvances(60_000, 20), writes: [expect.anything(), 0] });
  });
});
