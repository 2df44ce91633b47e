/**
 * @file Reversal from held states as the module runs it: followed here by an interpreter of its statements, whose actions
 * are given to the checker of schedules, and counted against the least there can be.
 */
import { describe, expect, it } from "vitest";
import { ScriptMachine } from "../../../tests/support/script-machine.ts";
import { at } from "../../base/invariant.ts";
import { type Int, int, type Local, type Statement } from "../../codegen/script.ts";
import { type Action, memoryLevel, WORK } from "../../node/reverse/action.ts";
import { checkActions } from "../../node/reverse/check.ts";
import type { Reversal } from "../../ops/loops.ts";
import type { SplitAttrs } from "../../ops/record.ts";
import { leastAdvances } from "../binomial.ts";
import { namedSchedule } from "../schedules.ts";
import { binomialSplit, type Checkpoints, recordStates, reverseSweep } from "./checkpoints.ts";

/** Places of the machine: iterations of checkpoints lie from 0, a copy between WORKING and a slot is a snapshot or a restore. */
const WORKING = -1;
const [STEP, BACK] = [-2, -3];

/** The actions of a recorded loop and its reverse. */
function actionsOf(length: number, rule: SplitAttrs): readonly Action[] {
  const actions: Action[] = [];
  const held = new Set<number>();
  let current = 0;
  const machine = new ScriptMachine({
    onCopy: (to, from) => {
      if (to === STEP) {
        const last = actions.at(-1);
        if (last?.kind === "advance") actions[actions.length - 1] = { ...last, to: from + 1 };
        else actions.push({ kind: "advance", from, to: from + 1 });
        current = from + 1;
      } else if (to === BACK) {
        actions.push({ kind: "tape", step: from, level: WORK, slot: 0 });
        actions.push({ kind: "reverse", step: from, level: WORK, slot: 0 });
      } else if (from === WORKING) {
        if (held.has(to)) actions.push({ kind: "free", level: 0, slot: to });
        held.add(to);
        actions.push({ kind: "snapshot", step: current, level: 0, slot: to });
      } else {
        current = machine.memory.get(from) ?? -1;
        actions.push({ kind: "restore", step: current, level: 0, slot: from });
      }
    },
  });
  const moved = (to: Int, from: Int): readonly Statement[] => [{ kind: "copy", to, from, bytes: 1 }];
  const states: Checkpoints = {
    rule,
    save: (slot) => moved(slot, int(WORKING)),
    restore: (slot) => moved(int(WORKING), slot),
    iterationOf: (slot) => ({ kind: "load", at: slot, bytes: 4 }),
    setIteration: (slot, iteration) => [{ kind: "store", at: slot, value: iteration }],
    step: (iteration) => moved(int(STEP), { kind: "local", local: iteration }),
  };
  const top: Local = { name: "top" };
  machine.run(recordStates(states, int(length), top));
  machine.run(
    reverseSweep(states, int(length), { top, resumed: true }, (iteration) =>
      moved(int(BACK), { kind: "local", local: iteration }),
    ),
  );
  // What is left in checkpoints at the end is let go.
  return [...actions, ...[...held].map((slot): Action => ({ kind: "free", level: 0, slot }))];
}

function countsOf(length: number, rule: SplitAttrs) {
  return checkActions(length, [memoryLevel(rule.checkpoints)], actionsOf(length, rule));
}

describe("a recorded loop and its reverse", () => {
  it("never read a state that is not held, and make as few iterations as the best schedule: 60 iterations, 9 checkpoints", () => {
    for (let length = 1; length <= 60; length++) {
      for (let checkpoints = 1; checkpoints <= 9; checkpoints++) {
        const counts = countsOf(length, { checkpoints, split: "binomial", every: 0 });
        expect(counts.problem, `${length} iterations, ${checkpoints} checkpoints`).toBeNull();
        expect(counts.advances, `${length} iterations, ${checkpoints} checkpoints`).toBe(
          leastAdvances(length, checkpoints),
        );
      }
    }
  });

  it.each([
    [1000, 5],
    [10_000, 46],
    [10_000, 495],
    [100_000, 12],
  ])("make as few iterations as the best schedule: %i iterations, %i checkpoints", (length, checkpoints) => {
    const counts = countsOf(length, { checkpoints, split: "binomial", every: 0 });
    expect(counts.problem).toBeNull();
    expect(counts.advances).toBe(leastAdvances(length, checkpoints));
  });

  it.each(["binomial", "binary", "periodic", "square-root"] as const satisfies readonly Reversal[])(
    "by %s make as many iterations as the plan says, in the checkpoints that it gives",
    (name) => {
      for (const snapshots of [0, 1, 2, 3, 7]) {
        for (const length of [1, 2, 3, 4, 7, 10, 31, 64, 100]) {
          const schedule = namedSchedule(name, length, snapshots);
          if (!schedule) throw new Error(`${name} has no schedule`);
          const counts = countsOf(length, schedule);
          const text = `${length} iterations, ${snapshots} snapshots`;
          expect(counts.problem, text).toBeNull();
          expect(counts.advances - (length - 1), text).toBe(schedule.advances);
        }
      }
    },
  );
});

function split(length: number, checkpoints: number): number {
  const m: Local = { name: "m" };
  const machine = new ScriptMachine();
  machine.run(binomialSplit(m, int(length), int(checkpoints)));
  return machine.locals.get(m) ?? 0;
}

/**
 * Forward iterations needed to reverse `length` iterations with `checkpoints` states, the first one included; `ahead`
 * says where to keep one.
 */
function forwardIterations(
  length: number,
  checkpoints: number,
  ahead: (length: number, checkpoints: number) => number,
): number {
  const known = new Map<string, number>();
  const iterations = (l: number, s: number): number => {
    if (l <= 1) return 0;
    if (s === 1) return (l * (l - 1)) / 2;
    const key = `${l},${s}`;
    const m = known.has(key) ? 0 : ahead(l, s);
    const made = known.get(key) ?? m + iterations(l - m, s - 1) + iterations(m, s);
    known.set(key, made);
    return made;
  };
  return iterations(length, checkpoints);
}

describe("the split of a loop", () => {
  it("makes as few iterations as the best one, for up to 80 iterations and 8 checkpoints", () => {
    const best = Array.from({ length: 9 }, () => [0, 0]);
    for (let s = 1; s <= 8; s++) {
      for (let l = 2; l <= 80; l++) {
        let least = (l * (l - 1)) / 2;
        for (let m = 1; s > 1 && m < l; m++)
          least = Math.min(least, m + at(at(best, s - 1), l - m) + at(at(best, s), m));
        at(best, s)[l] = least;
        expect(forwardIterations(l, s, split), `${l} iterations, ${s} checkpoints`).toBe(least);
      }
    }
  });

  it("stays between the ends for any number of iterations, also where binomials leave 32 bits", () => {
    for (const checkpoints of [2, 3, 5, 32, 1000]) {
      for (const length of [2, 3, 1000, 70_000, 2 ** 24, 2 ** 30]) {
        if (length > 2 ** 24 && checkpoints < 5) continue;
        const m = split(length, checkpoints);
        expect(m).toBeGreaterThanOrEqual(1);
        expect(m).toBeLessThan(length);
      }
    }
  });

  it("takes 5.5 sweeps for a million iterations with 32 checkpoints", () => {
    expect(forwardIterations(1_000_000, 32, split) / 1_000_000).toBeCloseTo(5.5, 1);
  });
});
