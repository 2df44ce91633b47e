/** @file The simple schedules, and what every schedule has in common. */
import { describe, expect, it } from "vitest";
import { type Checked, checkActions } from "./check.ts";
import { SCHEDULE_NAMES, type ScheduleOptions, scheduleNamed } from "./schedule.ts";

function run(name: string, options: ScheduleOptions): Checked {
  const schedule = scheduleNamed(name, options);
  return checkActions(options.steps, schedule.levels, schedule.actions(), { costs: options.costs });
}

describe("every schedule", () => {
  it.each(SCHEDULE_NAMES)("%s reverses loops of 0 to 60 steps, the same way each time", (name) => {
    for (let steps = 0; steps <= 60; steps++) {
      const costs = Array.from({ length: steps }, (_, i) => 1 + (i % 3));
      const snapshots = name === "square-root" ? 10 : 4;
      const schedule = scheduleNamed(name, { steps, snapshots, costs });
      const checked = checkActions(steps, schedule.levels, schedule.actions());
      expect(checked.problem, `${steps} steps`).toBeNull();
      expect(checked.peakSnapshots).toBeLessThanOrEqual(snapshots);
      expect([...schedule.actions()]).toEqual([...schedule.actions()]);
    }
  });

  it("is known by its name, and asks for whole numbers", () => {
    expect(() => scheduleNamed("binomail", { steps: 1, snapshots: 1 })).toThrow(/no schedule binomail\n.*binomial/);
    expect(() => scheduleNamed("binomial", { steps: -1, snapshots: 1 })).toThrow("-1 steps");
    expect(() => scheduleNamed("binomial", { steps: 1, snapshots: 0.5 })).toThrow("0.5 snapshots");
    expect(() => scheduleNamed("periodic", { steps: 1, snapshots: 1, every: 0 })).toThrow("every 0 steps");
  });
});

describe("the simple schedules", () => {
  it("store-all repeats nothing and keeps every tape but the working one", () => {
    const counts = { problem: null, forwardSteps: 40, recomputedSteps: 0, peakTapes: 39, peakSnapshots: 0 };
    expect(run("store-all", { steps: 40, snapshots: 0 })).toMatchObject(counts);
  });

  it("periodic repeats all pieces but the last", () => {
    const counts = { problem: null, recomputedSteps: 40, peakSnapshots: 4, peakTapes: 9 };
    expect(run("periodic", { steps: 45, snapshots: 9, every: 10 })).toMatchObject(counts);
    expect(run("periodic", { steps: 45, snapshots: 4 })).toMatchObject({ recomputedSteps: 36, peakSnapshots: 4 });
    expect(() => run("periodic", { steps: 45, snapshots: 3, every: 10 })).toThrow("every 10 steps is 4, 3 can be kept");
  });

  it("square-root keeps about √L of each", () => {
    const counts = { problem: null, recomputedSteps: 90, peakSnapshots: 9, peakTapes: 9 };
    expect(run("square-root", { steps: 100, snapshots: 9 })).toMatchObject(counts);
  });

  it("binary needs log₂ L snapshots and L/2 · log₂ L advances", () => {
    expect(run("binary", { steps: 64, snapshots: 6 })).toMatchObject({
      problem: null,
      advances: 192,
      peakSnapshots: 6,
    });
  });

  it.each(["binary", "binomial", "online", "multi-level"])("%s needs one snapshot", (name) => {
    expect(() => run(name, { steps: 2, snapshots: 0 })).toThrow("2 steps cannot be reversed without a snapshot");
    expect(run(name, { steps: 1, snapshots: 0 })).toMatchObject({ problem: null, forwardSteps: 1 });
  });
});
