/** @file Binomial schedules: closed form, dynamic program and the actions agree, and no schedule takes fewer snapshots. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { checkActions } from "../node/reverse/check.ts";
import { scheduleNamed } from "../node/reverse/schedule.ts";
import { binomialSplit, leastAdvances, reach, repetitions } from "./binomial.ts";

const [STEPS, SNAPSHOTS] = [200, 24];

/** Least advances and, among those schedules, least snapshots, by trying all splits: `[advances, snapshots][s][l]`. */
function tried(): { readonly advances: number[][]; readonly snapshots: number[][] } {
  const advances: number[][] = [[]];
  const snapshots: number[][] = [[]];
  for (let s = 1; s <= SNAPSHOTS; s++) {
    const [t, w]: [number[], number[]] = [
      [0, 0],
      [0, 0],
    ];
    for (let l = 2; l <= STEPS; l++) {
      t[l] = (l * (l - 1)) / 2;
      w[l] = 1;
      for (let k = 1; s > 1 && k < l; k++) {
        const total = k + t[k]! + (advances[s - 1]![l - k] as number);
        // the left part's own first state is kept already
        const kept = 1 + Math.max(0, w[k]! - 1) + snapshots[s - 1]![l - k]!;
        if (total < t[l]! || (total === t[l] && kept < w[l]!)) [t[l], w[l]] = [total, kept];
      }
    }
    advances.push(t);
    snapshots.push(w);
  }
  return { advances, snapshots };
}

describe("a binomial schedule", () => {
  it("has the advances of the closed form, which are the least of all splits, for up to 200 steps and 24 snapshots", () => {
    const { advances } = tried();
    const wrong: string[] = [];
    for (let s = 1; s <= SNAPSHOTS; s++) {
      for (let l = 1; l <= STEPS; l++) {
        const schedule = scheduleNamed("binomial", { steps: l, snapshots: s });
        const { problem, ...counts } = checkActions(l, schedule.levels, schedule.actions());
        const least = advances[s]![l]!;
        const right = leastAdvances(l, s) === least && counts.forwardSteps === l + least && counts.peakSnapshots <= s;
        if (problem !== null || !right) wrong.push(`${l} steps, ${s} snapshots: ${problem ?? counts.forwardSteps}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("takes the fewest snapshots of all schedules with so few advances", () => {
    const { snapshots } = tried();
    for (let s = 1; s <= SNAPSHOTS; s++) {
      for (let l = 1; l <= STEPS; l += 7) {
        const schedule = scheduleNamed("binomial", { steps: l, snapshots: s });
        const { writes } = checkActions(l, schedule.levels, schedule.actions());
        expect(writes[0], `${l} steps, ${s} snapshots`).toBe(snapshots[s]![l]);
      }
    }
  });

  it("runs no step more often than the number of repetitions before it is taped", () => {
    for (const [l, s] of [
      [10, 2],
      [70, 4],
      [71, 4],
      [252, 5],
      [253, 5],
      [500, 8],
    ] as const) {
      const evaluations = new Uint32Array(l);
      const schedule = scheduleNamed("binomial", { steps: l, snapshots: s });
      checkActions(l, schedule.levels, schedule.actions(), { evaluations });
      expect(Math.max(...evaluations) - 1).toBe(repetitions(l, s));
    }
  });

  it("agrees with published values", () => {
    for (const [l, s, t] of [
      [100, 5, 316],
      [1000, 10, 3636],
      [1000, 50, 1948],
      [365, 12, 990],
      [71, 4, 229],
    ] as const) {
      expect(leastAdvances(l, s)).toBe(t);
    }
  });

  const table = "../shared/bench/instances/checkpoint-oracles/revolve.csv";
  it.skipIf(!existsSync(table))("agrees with a table of 300 steps by 24 snapshots", () => {
    const rows = readFileSync(table, "utf8").trim().split("\n").slice(1);
    expect(rows).toHaveLength(7200);
    const wrong = rows.filter((row) => {
      const [l, s, r, t] = row.split(",").map(Number) as [number, number, number, number];
      return repetitions(l, s) !== r || leastAdvances(l, s) !== t;
    });
    expect(wrong).toEqual([]);
  });

  it("reverses a million steps in a stream", () => {
    const schedule = scheduleNamed("binomial", { steps: 1e6, snapshots: 30 });
    const checked = checkActions(1e6, schedule.levels, schedule.actions());
    expect(checked).toMatchObject({ problem: null, recomputedSteps: leastAdvances(1e6, 30), peakSnapshots: 30 });
  });
});

describe("the reach of snapshots", () => {
  it("is Pascal's triangle", () => {
    for (let s = 1; s <= 20; s++) {
      for (let r = 1; r <= 20; r++) expect(reach(s, r)).toBe(reach(s - 1, r) + reach(s, r - 1));
    }
    expect([reach(3, -1), reach(-1, 3), reach(0, 5), reach(5, 0)]).toEqual([0, 0, 1, 1]);
  });

  it("does not overflow", () => {
    expect(reach(1000, 1000)).toBe(Number.POSITIVE_INFINITY);
    expect(repetitions(1e6, 1)).toBe(999_999);
    expect(leastAdvances(5, 0)).toBe(Number.POSITIVE_INFINITY);
    expect(binomialSplit(2, 1000)).toBe(1);
  });
});
