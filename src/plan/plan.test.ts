/** @file The planner as a whole: random programs through everything, and the refusal of budgets that are too small. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProgramBuilder, randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import { grouped, TidemarkError } from "../base/errors.ts";
import { explainText } from "./explain.ts";
import { planInfeasible } from "./infeasible.ts";
import { planJson } from "./json.ts";
import { memoryChart } from "./memory-chart.ts";
import { memoryMap } from "./memory-map.ts";
import { planProgram } from "./plan.ts";
import { printPlan } from "./print.ts";
import { reportPlan, reportText } from "./report.ts";
import { validate } from "./validate.ts";

function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof TidemarkError) return error.message;
    throw error;
  }
  return "none";
}

describe("planProgram", () => {
  it("plans any program correctly, in either order of steps, never below its bound", () => {
    fc.assert(
      fc.property(randomProgram, fc.boolean(), (program, keepOrder) => {
        const plan = planProgram(program, { keepOrder });
        expect(validate(program, plan)).toEqual([]);
        expect(plan.height).toBeGreaterThanOrEqual(plan.bound.bytes);
        expect(plan.height % program.spaces[0].alignment).toBe(0);
        expect(plan.height).toBeLessThanOrEqual(planProgram(program, { keepOrder: true }).height);
      }),
      { numRuns: 2000, seed: 1 },
    );
  });

  it("can show every plan in every way", () => {
    fc.assert(
      fc.property(randomProgram, (program) => {
        const plan = planProgram(program);
        const texts = [
          printPlan(plan),
          memoryMap(plan),
          memoryMap(plan, { width: 40, height: 5 }),
          memoryChart(plan),
          reportText(plan),
        ];
        for (const value of plan.bufferOf.keys()) texts.push(explainText(plan, value));
        expect(texts.join("")).not.toMatch(/undefined|NaN|null|#\d/);
        expect(JSON.parse(JSON.stringify(planJson(plan)))).toEqual(planJson(plan));
        expect(reportPlan(plan).withoutReuseBytes).toBeGreaterThanOrEqual(plan.bound.bytes);
      }),
      { numRuns: 300, seed: 2 },
    );
  });

  it("makes the same plan every time, whatever the ids of the values are", () => {
    expect(printPlan(planProgram(trainingStep(4)))).toBe(printPlan(planProgram(trainingStep(4))));
  });

  it("plans a deep training step at its bound, with gradients that never live together", () => {
    const program = trainingStep(24);
    const [kept, ordered] = [planProgram(program, { keepOrder: true }), planProgram(program)];
    expect(ordered.height).toBe(ordered.bound.bytes);
    expect(reportPlan(ordered).ephemeralBytes).toBeLessThan(0.6 * reportPlan(kept).ephemeralBytes);
    expect(ordered.copies).toEqual([]);
  });

  it("plans a program without steps, and one without anything", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [16]);
    const program = b.finish("identity", [x]);
    expect(validate(program, planProgram(program))).toEqual([]);
    expect(planProgram(program).height).toBe(64);
    expect(planProgram(new ProgramBuilder().finish("nothing", [])).height).toBe(0);
  });

  it("accepts a budget that is just enough", () => {
    const { height } = planProgram(trainingStep());
    expect(planProgram(trainingStep(), { budgetBytes: height }).problem.spaces[0].capacity).toBe(height);
  });
});

describe("PlanInfeasible", () => {
  it("shows what is live at the tightest step and what waits there", () => {
    expect(refusal(() => planProgram(trainingStep(3), { budgetBytes: 20000 }))).toMatchInlineSnapshot(`
      "PlanInfeasible: train needs 25,664 bytes, the budget is 20,000
        tightest at step 8, d_w2 = matmul_t(h1, d_h):
          b0   w0      4,096  persistent
          b1   w1      4,096  persistent
          b2   w2      4,096  persistent
          b12  d_w2    4,096  written here
          b3   x       2,048  held for step 14
          b4   h0      2,048  held for step 11
          b6   h1      2,048  read here
          b11  d_h     2,048  read here
          …    2 more  1,088
        4,160 of 25,664 bytes are held there for later steps or for the caller
        help: raise the budget to 25,664, use smaller batches, or recompute values held for later (checkpoint)"
    `);
  });

  it("says so when one step alone needs too much", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [64]);
    const y = b.call("big", [x], { name: "y", shape: [1000], scratch: [512], where: "model.ts:3:7 in f" });
    const program = b.finish("wide", [y]);
    expect(refusal(() => planProgram(program, { budgetBytes: 1000 }))).toMatchInlineSnapshot(`
      "PlanInfeasible: wide needs 4,800 bytes, the budget is 1,000
        tightest at step 0, y = big(x):
          b1  y            4,032  written here
          b2  (workspace)    512  workspace
          b0  x              256  read here
        arguments, or results and persistent values, take 4,032 bytes: no plan can be smaller
        at model.ts:3:7 in f
        help: raise the budget to 4,800, use smaller batches, or split this step"
    `);
  });

  it("says so when only the packing is to blame", () => {
    const { height, ...plan } = planProgram(trainingStep(2));
    const loose = { ...plan, height: height + 1024, problem: { ...plan.problem, capacity: height } };
    const { message } = planInfeasible(loose);
    expect(message).toContain(
      `no more than ${grouped(height)} bytes are live at once; 1,024 are lost to fragmentation`,
    );
    expect(message).toContain(`help: raise the budget to ${grouped(height + 1024)}`);
  });
});
