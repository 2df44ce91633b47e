/** @file Values leave the arena where it is too small, in time, and come back intact. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import { faultsOfRun, type Pace, valuesOf } from "../../tests/support/run-plan.ts";
import { type Homeable, homeableValues } from "./homes.ts";
import { moveAt } from "./move.ts";
import { planProgram, planUnlimited } from "./plan.ts";
import { printPlan } from "./print.ts";
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
const schedule = (
  plan: Plan,
  bytes: number,
  copyMs: (bytes: number) => number,
  atHome: readonly Homeable[] = [],
): MoveSchedule | null => scheduleMoves(plan, bytes, { stepMs: plan.program.steps.map(() => 1), copyMs }, atHome);

describe("scheduleMoves", () => {
  const stored = planProgram(trainingStep(12));
  const { program, bound } = stored;
  const ephemeral = bound.bytes - 12 * 4096;
  const half = 12 * 4096 + ephemeral / 2;

  it("moves nothing where everything fits", () => {
    expect(schedule(stored, bound.bytes, () => 1)).toEqual({ moves: [], homes: [], ms: program.steps.length });
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

describe("values at home in another memory", () => {
  const moved = (plan: Plan, { moves, homes }: MoveSchedule): Program =>
    moveAt(plan.program, moves, { device: plan.program.spaces[0], host: file, homes });

  it("come for the steps that use them, and their replacements go", () => {
    const small = planProgram(trainingStep(2));
    const found = schedule(small, 14_000, () => 0.5, homeableValues(small, 4096));
    expect(found?.ms).toBe(small.program.steps.length + 1.5);
    expect(printPlan(planUnlimited(moved(small, found!), { keepOrder: true }))).toMatchInlineSnapshot(`
      "// 18 buffers, arena 13,376 bytes, bound 13,376; file 12,288 bytes, bound 12,288
      func train(
        x:  f32[16,32] @ b2[10240:12288]
        w0: f32[32,32] @ file:b0[0:4096] persistent, becomes w0_4
        w1: f32[32,32] @ file:b1[4096:8192] persistent, becomes w1_3
      ) {
        x_file: f32[16,32] = copy(x)             @ file:b3[8192:10240] queue 1
        w0_1:   f32[32,32] = copy(w0)            @ b4[4096:8192] queue 2
        w1_1:   f32[32,32] = copy(w1)            @ b5[0:4096] queue 2
        wait(w0_1)
        z0:     f32[16,32] = matmul(x, w0_1)     @ b6[8192:10240] scratch b7[12288:13312]
        wait(x_file)
        h0:     f32[16,32] = relu(z0)            @ b6[8192:10240] over z0
        wait(w1_1)
        z1:     f32[16,32] = matmul(h0, w1_1)    @ b8[4096:6144] scratch b9[6144:7168]
        h1:     f32[16,32] = relu(z1)            @ b8[4096:6144] over z1
        loss:   f32[]      = loss(h1)            @ b10[13312:13316]
        // backward
        d_h:    f32[16,32] = loss_grad(h1)       @ b11[10240:12288]
        d_w1:   f32[32,32] = matmul_t(h0, d_h)   @ b12[4096:8192] scratch b13[12288:13312]
        d_h1:   f32[16,32] = back(d_h, w1_1, h0) @ b6[8192:10240] over h0
        // update
        x_1:    f32[16,32] = copy(x_file)        @ b14[10240:12288] queue 2
        w1_2:   f32[32,32] = sgd(w1_1, d_w1)     @ b5[0:4096] over w1_1
        // backward
        w1_3:   f32[32,32] = copy(w1_2)          @ file:b1[4096:8192] over w1 queue 1
        wait(x_1)
        d_w0:   f32[32,32] = matmul_t(x_1, d_h1) @ b15[4096:8192] scratch b16[12288:13312]
        // update
        wait(w1_3)
        w0_2:   f32[32,32] = copy(w0)            @ b17[0:4096] queue 2
        wait(w0_2)
        w0_3:   f32[32,32] = sgd(w0_2, d_w0)     @ b17[0:4096] over w0_2
        w0_4:   f32[32,32] = copy(w0_3)          @ file:b0[0:4096] over w0 queue 1
        wait(w0_4)
        return loss, w0_4, w1_3
      }
      "
    `);
  });

  it("take the arena below what persists", () => {
    const stored = planProgram(trainingStep(6));
    const homeable = homeableValues(stored, 4096);
    expect(homeable.length).toBe(6);
    const found = schedule(stored, 4 * 4096 + 6000, () => 0.5, homeable);
    const placed = planUnlimited(moved(stored, found!), { keepOrder: true });
    expect(placed.bound.bytes).toBeLessThanOrEqual(4 * 4096 + 6000);
    expect(validate(placed.program, placed)).toEqual([]);
    for (const pace of PACES.slice(0, 3)) expect(faultsOfRun(placed, pace)).toEqual([]);
  });

  it("keep every byte of random programs, whichever they are and however copies are timed", () => {
    let homes = 0;
    const layers = fc.integer({ min: 1, max: 4 });
    const property = fc.property(
      fc.oneof(
        randomProgram,
        layers.map((count) => trainingStep(count, 8, 4)),
      ),
      fc.double({ min: 0.4, max: 1, noNaN: true }),
      fc.nat(40),
      fc.nat(),
      (given, share, ms, choice) => {
        const plan = planUnlimited(given);
        const atHome = homeableValues(plan, 0).filter((_, i) => choice % (i + 2) > 0);
        const found = schedule(plan, plan.bound.bytes * share, (bytes) => (bytes * ms) / 2048, atHome);
        if (!found || atHome.length === 0) return;
        homes += atHome.length;
        const program = moved(plan, found);
        const placed = planUnlimited(program, { keepOrder: true });
        expect(validate(program, placed)).toEqual([]);
        expect(placed.copies.filter(({ to }) => placed.problem.buffers[to]?.space === 1)).toEqual([]);
        for (const pace of PACES) expect(faultsOfRun(placed, pace)).toEqual([]);
        expect(resultsOf(program)).toEqual(resultsOf(given));
      },
    );
    fc.assert(property, { numRuns: 100, seed: 11 });
    expect(homes).toBeGreaterThan(30);
  });
});
