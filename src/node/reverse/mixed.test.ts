/** @file Mixed schedules: the published recurrence, tables, sizes of their own, and what happens beyond the table. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { leastAdvances } from "../../loops/binomial.ts";
import { checkActions } from "./check.ts";
import { mixed, mixedLevel } from "./mixed.ts";
import { type MixedSizes, mixedTable } from "./mixed-table.ts";
import { scheduleNamed } from "./schedule.ts";

const EVEN: MixedSizes = { stateUnits: 1, tapeUnits: 1 };

function evaluationsOf(steps: number, snapshots: number): number {
  const schedule = scheduleNamed("mixed", { steps, snapshots });
  const checked = checkActions(steps, schedule.levels, schedule.actions());
  expect(checked.problem).toBeNull();
  return checked.forwardSteps;
}

/** m(l, s) as published: with cases for one unit and for enough, and no split after the first step. */
function published(steps: number, units: number): number[][] {
  const m: number[][] = [[]];
  for (let s = 1; s <= units; s++) {
    const row = [0, 1];
    for (let l = 2; l <= steps; l++) {
      if (l <= s + 1) row[l] = l;
      else if (s === 1) row[l] = (l * (l + 1)) / 2 - 1;
      else {
        row[l] = 1 + m[s - 1]![l - 1]!;
        for (let i = 2; i < l; i++) row[l] = Math.min(row[l]!, i + row[i]! + m[s - 1]![l - i]!);
      }
    }
    m.push(row);
  }
  return m;
}

describe("a mixed schedule", () => {
  it("has the published number of evaluations for up to 200 steps and 24 units", () => {
    const m = published(200, 24);
    const wrong: string[] = [];
    for (let s = 1; s <= 24; s++) {
      const table = mixedTable(200, s, EVEN);
      for (let l = 1; l <= 200; l++) {
        const checked = checkActions(l, [mixedLevel(s, EVEN)], mixed(l, s, EVEN, table));
        const right =
          checked.problem === null && checked.forwardSteps === m[s]![l] && table.evaluations(l, s) === m[s]![l];
        if (!right) wrong.push(`${l} steps, ${s} units: ${checked.problem ?? checked.forwardSteps}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  const file = "../shared/bench/instances/checkpoint-oracles/mixed.csv";
  it.skipIf(!existsSync(file))("agrees with a table of 300 steps by 24 units", () => {
    const rows = readFileSync(file, "utf8").trim().split("\n").slice(1);
    expect(rows).toHaveLength(7200);
    const table = mixedTable(300, 24, EVEN);
    const wrong = rows.filter((row) => {
      const [l, s, total] = row.split(",").map(Number) as [number, number, number];
      return table.evaluations(l, s) !== total;
    });
    expect(wrong).toEqual([]);
  });

  it("agrees with published values for a thousand steps", () => {
    expect([5, 10, 20, 40].map((s) => evaluationsOf(1000, s))).toEqual([6828, 3921, 2823, 2142]);
  });

  it("repeats nothing when every tape has a place", () => {
    expect(evaluationsOf(50, 49)).toBe(50);
    expect(evaluationsOf(50, 1e9)).toBe(50);
    expect(evaluationsOf(1, 0)).toBe(1);
    expect(evaluationsOf(0, 0)).toBe(0);
  });

  it("is the binomial schedule when no tape fits", () => {
    const sizes = { stateUnits: 1, tapeUnits: 1000 };
    const table = mixedTable(100, 5, sizes);
    expect(table.evaluations(100, 5)).toBe(100 + leastAdvances(100, 5));
  });

  it("keeps within its units whatever the sizes are", () => {
    for (const [stateUnits, tapeUnits] of [
      [1, 3],
      [3, 1],
      [2, 5],
      [5, 2],
    ] as const) {
      for (const units of [7, 16, 31]) {
        const sizes = { stateUnits, tapeUnits };
        const table = mixedTable(80, units, sizes);
        const checked = checkActions(80, [mixedLevel(units, sizes)], mixed(80, units, sizes, table));
        expect(checked).toMatchObject({ problem: null, forwardSteps: table.evaluations(80, units) });
      }
    }
  });

  it("refuses what does not fit", () => {
    expect(() => scheduleNamed("mixed", { steps: 2, snapshots: 0 })).toThrow("2 steps cannot be reversed in 0 units");
    const sizes = { stateUnits: 4, tapeUnits: 1 };
    expect(() => scheduleNamed("mixed", { steps: 9, snapshots: 3, sizes })).toThrow("help: give 4");
  });
});

describe("a mixed schedule too long to solve", () => {
  /** Evaluations with less effort over the least. */
  const loss = (steps: number, units: number, sizes: MixedSizes, effort: { steps: number; window: number }): number => {
    const table = mixedTable(steps, units, sizes, effort);
    const checked = checkActions(steps, [mixedLevel(units, sizes)], mixed(steps, units, sizes, table));
    expect(checked).toMatchObject({ problem: null, forwardSteps: table.evaluations(steps, units) });
    expect(table.optimal).toBe(false);
    return checked.forwardSteps / mixedTable(steps, units, sizes).evaluations(steps, units);
  };

  it("is at most 2 % worse when splits near the last one are tried", () => {
    for (const [stateUnits, tapeUnits] of [
      [1, 1],
      [1, 4],
      [2, 1],
      [3, 2],
    ] as const) {
      for (const units of [5, 20, 60]) {
        const ratio = loss(500, units, { stateUnits, tapeUnits }, { steps: 500, window: 25 });
        expect(ratio, `${stateUnits}:${tapeUnits} in ${units}`).toBeLessThanOrEqual(1.02);
      }
    }
  });

  it("is still better than the binomial one when its long pieces are split as those", () => {
    for (const units of [3, 10, 20]) {
      const ratio = loss(1000, units, EVEN, { steps: 100, window: Number.POSITIVE_INFINITY });
      const exact = mixedTable(1000, units, EVEN).evaluations(1000, units);
      expect(ratio * exact).toBeLessThan(1000 + leastAdvances(1000, units));
    }
  });

  it("goes on to a million steps", () => {
    const table = mixedTable(1e6, 12, EVEN, { steps: 1000, window: Number.POSITIVE_INFINITY });
    const checked = checkActions(1e6, [mixedLevel(12, EVEN)], mixed(1e6, 12, EVEN, table));
    expect(checked).toMatchObject({ problem: null, forwardSteps: table.evaluations(1e6, 12) });
    expect(checked.forwardSteps).toBeLessThan(1e6 + leastAdvances(1e6, 12));
  });

  it("counts also with one unit, where every part is one step shorter", () => {
    expect(mixedTable(1e5, 1, EVEN, { steps: 10, window: 9 }).evaluations(1e5, 1)).toBe((1e5 * (1e5 + 1)) / 2 - 1);
  });
});
