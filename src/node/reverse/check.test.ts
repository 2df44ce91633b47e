/** @file The checking machine accepts a right schedule, counts it, and refuses each way of doing something impossible. */
import { describe, expect, it } from "vitest";
import { type Action, type Level, memoryLevel, WORK } from "./action.ts";
import { checkActions } from "./check.ts";

const advance = (from: number, to: number): Action => ({ kind: "advance", from, to });
const snapshot = (step: number, slot: number, level = 0): Action => ({ kind: "snapshot", step, level, slot });
const restore = (step: number, slot: number, level = 0): Action => ({ kind: "restore", step, level, slot });
const free = (slot: number, level = 0): Action => ({ kind: "free", level, slot });
const tape = (step: number, slot = 0, level = WORK): Action => ({ kind: "tape", step, level, slot });
const reverse = (step: number, slot = 0, level = WORK): Action => ({ kind: "reverse", step, level, slot });

/** Three steps, one snapshot. */
const RIGHT: readonly Action[] = [
  snapshot(0, 0),
  advance(0, 2),
  tape(2),
  reverse(2),
  restore(0, 0),
  advance(0, 1),
  tape(1),
  reverse(1),
  restore(0, 0),
  free(0),
  tape(0),
  reverse(0),
];

const replaced = (index: number, ...actions: Action[]): readonly Action[] => RIGHT.toSpliced(index, 1, ...actions);

const BOTH: readonly Level[] = [
  { name: "memory", units: 4, stateUnits: 1, tapeUnits: 3, writeCost: 0, readCost: 0 },
  { name: "disk", units: 1, stateUnits: 1, tapeUnits: null, writeCost: 5, readCost: 7 },
];

describe("the checking machine", () => {
  it("counts evaluations, accesses, peaks and costs", () => {
    const evaluations = new Uint32Array(3);
    const checked = checkActions(3, [memoryLevel(1)], RIGHT, { costs: [10, 100, 1000], evaluations });
    expect(checked).toEqual({
      problem: null,
      forwardSteps: 6,
      recomputedSteps: 3,
      advances: 3,
      peakSnapshots: 1,
      peakTapes: 0,
      peakUnits: [1],
      writes: [1],
      reads: [2],
      cost: 120,
      actions: 12,
    });
    expect([...evaluations]).toEqual([3, 2, 1]);
  });

  it("counts units of several levels, and their costs", () => {
    const actions = [snapshot(0, 0, 1), tape(0, 1, 0), tape(1), reverse(1), reverse(0, 1, 0), free(1), free(0, 1)];
    const checked = checkActions(2, BOTH, actions);
    expect(checked).toMatchObject({ problem: null, peakUnits: [3, 1], peakTapes: 1, peakSnapshots: 1, cost: 5 });
  });

  it("accepts that a loop of no steps does nothing", () => {
    expect(checkActions(0, [], [])).toMatchObject({ problem: null, forwardSteps: 0, recomputedSteps: 0 });
  });

  it.each<[string, readonly Action[], string]>([
    ["an advance from another state", replaced(1, advance(1, 2)), "action 1, advance: the current state is 0, not 1"],
    ["an advance backward", replaced(1, advance(0, 0)), "no steps 0 to 0 of 3"],
    ["an advance beyond the end", replaced(1, advance(0, 4)), "no steps 0 to 4 of 3"],
    ["a snapshot of another state", replaced(0, snapshot(1, 0)), "the current state is 0, not 1"],
    ["a snapshot outside of the slots", replaced(0, snapshot(0, 1)), "memory has 1 units, a state at 1 takes 1"],
    ["a snapshot at no place", replaced(0, snapshot(0, -1)), "a state at -1"],
    ["a snapshot on a level that is not there", replaced(0, snapshot(0, 0, 3)), "there is no level 3"],
    ["a snapshot where there is one", replaced(0, snapshot(0, 0), snapshot(0, 0)), "has the state of step 0"],
    ["a restore of what was not kept", replaced(0), "action 3, restore: the state of step 0 is not at 0 of level 0"],
    ["a restore as another step", replaced(4, restore(1, 0)), "the state of step 1 is not at 0"],
    ["a restore of what was freed", replaced(3, reverse(2), free(0)), "the state of step 0 is not at 0"],
    ["freeing nothing", replaced(9, free(0), free(0)), "nothing starts at 0"],
    ["taping another step", replaced(2, tape(1)), "the current state is 2, not 1"],
    ["reversing out of order", replaced(3), "action 6, reverse: the next step to reverse is 2"],
    ["reversing twice", replaced(3, reverse(2), reverse(2)), "the next step to reverse is 1"],
    ["reversing without a tape", replaced(2), "the working tape is that of step none"],
    ["reversing another tape", replaced(6), "action 6, reverse: the working tape is that of step none"],
    ["an early end", RIGHT.slice(0, 9), "1 steps are not reversed"],
    ["a place left behind", replaced(9), "1 slots are not freed"],
  ])("refuses %s", (_, actions, problem) => {
    expect(checkActions(3, [memoryLevel(1)], actions).problem).toContain(problem);
  });

  it.each<[string, readonly Action[], string]>([
    ["a tape where only states are kept", [tape(0, 0, 1)], "disk keeps no tape"],
    ["a tape that does not fit", [tape(0, 2, 0)], "memory has 4 units, a tape at 2 takes 3"],
    ["a state over a tape", [tape(0, 0, 0), snapshot(1, 2, 0)], "unit 2 of memory has the tape of step 0"],
    ["a tape taken for a state", [tape(0, 0, 0), restore(0, 0, 0)], "the state of step 0 is not at 0"],
    ["the middle of a tape", [tape(0, 0, 0), tape(1), reverse(1), reverse(0, 1, 0)], "the tape of step 0 is not at 1"],
    ["freeing the middle of a tape", [tape(0, 0, 0), free(1)], "nothing starts at 1"],
  ])("refuses %s", (_, actions, problem) => {
    expect(checkActions(2, BOTH, actions).problem).toContain(problem);
  });
});
