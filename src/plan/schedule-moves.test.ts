/** @file Values leave the arena where it is too small, in time, and come back intact. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import { faultsOfRun, type Pace, valuesOf } from "../../tests/support/run-plan.ts";
import { moveAt } from "./move.ts";
import { planProgram, planUnlimited } from "./plan.ts";
import type { Plan } from "./problem.ts";
import type { Program } from "./program.ts";
import { type MoveSchedule, scheduleMoves } from "./schedule-moves.ts";
import { memorySpace } from "./space.ts";
import { validate } from "./validate.ts";

const file = memorySpace(4096, { name: "file", hostVisible: false });
const PACES: readonly Pace[] = ["start", "wait", 5, 6];

const resultsOf = (program: Program): readonly (readonly number[])[] => {
  const values = valuesOf(program);
  return program.results.map((value) => [...values.get(value)!]);
};

/** Every step takes a millisecond. */
const schedule = (plan: Plan, bytes: number, copyMs: (bytes: number) => number): MoveSchedule | null =>
  scheduleMoves(plan, bytes, { stepMs: plan.program.steps.map(() => 1), copyMs });

describe("scheduleMoves", () => {
  const stored = planProgram(trainingStep(12));
  const { program, bound } = stored;
  const ephemeral = bound.bytes - 12 * 4096;
  const half = 12 * 4096 + ephemeral / 2;

  it("moves nothing where everything fits", () => {
    expect(schedule(stored, bound.bytes, () => 1)).toEqual({ moves: [], ms: program.steps.length });
  });

  it("hides copies behind the steps of a fast link, and waits for a slow one", () => {
    const fast = schedule(stored, half, () => 0.5);
    expect(fast?.ms).toBe(program.steps.length);
    const moved = moveAt(program, fast?.moves ?? [], { device: program.spaces[0], host: file });
    expect(planUnlimited(moved, { keepOrder: true }).bound.bytes).toBeLessThanOrEqual(half);
    expect(schedule(stored, half, () => 8)?.ms).toBeGreaterThan(program.steps.length);
  });

  it("gives up where one step needs more", () => {
    expect(schedule(stored, 12 * 4096 + 64, () => 1)).toBeNull();
  });

  it("keeps every byte of random programs at any budget, however copies are timed", () => {
    let moved = 0;
    const property = fc.property(
      randomProgram,
      fc.double({ min: 0.6, max: 1, noNaN: true }),
      fc.nat(40),
      (given, share, ms) => {
        const plan = planUnlimited(given);
        const found = schedule(plan, plan.bound.bytes * share, (bytes) => (bytes * ms) / 2048);
        if (!found || found.moves.length === 0) return;
        moved++;
        const program = moveAt(plan.program, found.moves, { device: plan.program.spaces[0], host: file });
        const placed = planUnlimited(program, { keepOrder: true });
        expect(validate(program, placed)).toEqual([]);
        for (const pace of PACES) expect(faultsOfRun(placed, pace)).toEqual([]);
        expect(resultsOf(program)).toEqual(resultsOf(given));
      },
    );
    fc.assert(property, { numRuns: 400, seed: 7 });
    expect(moved).toBeGreaterThan(10);
  });
});
