/** @file The account of memory against buffers as they are assigned, for random programs in random orders. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { numbers } from "../../../bench/order-programs.ts";
import { randomOrder } from "../../../tests/support/orders.ts";
import { ProgramBuilder, randomProgram, trainingStep } from "../../../tests/support/plan-programs.ts";
import { assignBuffers } from "../alias.ts";
import { liveBytes } from "../bound.ts";
import { problemIn } from "../problem.ts";
import type { Program } from "../program.ts";
import { Memory, peakOf } from "./memory.ts";
import { modelOf } from "./model.ts";

/** Most live bytes at any step, after buffers were assigned. The return step is not one: copies may need room there. */
function assignedPeak(program: Program, order: readonly number[]): number {
  const { problem } = assignBuffers({ ...program, steps: order.map((i) => program.steps[i]!) });
  return liveBytes(problemIn(problem), order.length).reduce((a, b) => Math.max(a, b), 0);
}

describe("the account of memory", () => {
  it("is what the assignment needs, or more where a chain of values ends in a slot that was free before", () => {
    let [programs, exact, above] = [0, 0, 0];
    fc.assert(
      fc.property(randomProgram, fc.nat(), (program, seed) => {
        const model = modelOf(program);
        const order = randomOrder(model, numbers(seed));
        const [counted, assigned] = [peakOf(new Memory(model), order).bytes, assignedPeak(program, order)];
        expect(counted).toBeGreaterThanOrEqual(assigned);
        if (model.exact) expect(counted).toBe(assigned);
        programs += 1;
        exact += model.exact ? 1 : 0;
        above += counted > assigned ? 1 : 0;
      }),
      { numRuns: 4000, seed: 21 },
    );
    expect(exact / programs).toBeGreaterThan(0.7);
    expect(above / programs).toBeLessThan(0.01);
  });

  it("is exact for training steps", () => {
    const program = trainingStep(5);
    const model = modelOf(program);
    expect(model.exact).toBe(true);
    for (let seed = 0; seed < 50; seed++) {
      const order = randomOrder(model, numbers(seed));
      expect(peakOf(new Memory(model), order).bytes).toBe(assignedPeak(program, order));
    }
  });

  it("takes steps back as if they had not run", () => {
    fc.assert(
      fc.property(randomProgram, fc.nat(), (program, seed) => {
        const memory = new Memory(modelOf(program));
        const state = () => [memory.live, memory.ran, ...memory.pending, ...memory.home, ...memory.done];
        for (const step of randomOrder(memory.model, numbers(seed))) {
          const before = state();
          const during = memory.run(step);
          memory.undo(step, before[0]!);
          expect(state()).toEqual(before);
          expect(memory.run(step)).toBe(during);
        }
      }),
      { numRuns: 300, seed: 22 },
    );
  });

  it("lets values pass through a slot only if they are gone when its replacement comes, in any order", () => {
    const pass = (late: boolean) => {
      const b = new ProgramBuilder();
      const p = b.param("p", [64]);
      const t = b.call("scale", [p], { name: "t", over: [p] });
      const r = b.call("add", late ? [b.param("g", [64])] : [t], { name: "r", over: late ? [] : [t] });
      const y = late ? b.call("use", [t], { name: "y", shape: [1] }) : r;
      return modelOf(b.finish("p", [r, y], { donated: [[p, 0]], persistent: [p] }));
    };
    expect([...pass(false).passing]).toEqual([1 * pass(false).storages + 0]);
    expect([...pass(true).passing]).toEqual([]);
    expect(pass(true).exact).toBe(false);
  });
});
