/** @file Minimum cuts against all sets of steps, and against the peaks of all orders. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { layeredProgram } from "../../../bench/order-programs.ts";
import { leastPeak } from "../../../tests/support/orders.ts";
import { ProgramBuilder, randomProgram, trainingStep } from "../../../tests/support/plan-programs.ts";
import { minimumCut } from "./cut.ts";
import { listOf } from "./lists.ts";
import { Memory } from "./memory.ts";
import { type Model, modelOf } from "./model.ts";

const cutOf = (model: Model, step: number) => minimumCut(model, step, 1e6).cut!;

/** The least that is live while the step runs, over all sets of steps that may have run before. */
function leastAt(model: Model, step: number): number {
  let best = Number.POSITIVE_INFINITY;
  const memory = new Memory(model);
  const seen = new Set<string>();
  const visit = (): void => {
    const state = memory.done.join("");
    if (seen.has(state)) return;
    seen.add(state);
    for (let i = 0; i < model.steps; i++) {
      if (memory.done[i] || !listOf(model.predecessors, i).every((before) => memory.done[before] === 1)) continue;
      const live = memory.live;
      const during = memory.run(i);
      if (i === step) best = Math.min(best, during);
      else visit();
      memory.undo(i, live);
    }
  };
  visit();
  return best;
}

describe("minimumCut", () => {
  it("is the least that can be live while a step runs, where nothing depends on slots", () => {
    let [equal, all] = [0, 0];
    for (let seed = 0; seed < 60; seed++) {
      const model = modelOf(layeredProgram(9, 6, seed));
      for (let step = 0; step < model.steps; step++) {
        const [cut, least] = [cutOf(model, step).bytes, leastAt(model, step)];
        expect(cut).toBeLessThanOrEqual(least);
        equal += cut === least ? 1 : 0;
        all += 1;
      }
    }
    // Less for first steps, which have unread parameters with them, and where a step has a choice.
    expect(equal / all).toBeGreaterThan(0.95);
  });

  it("is never above the peak of the best order", () => {
    fc.assert(
      fc.property(randomProgram, (program) => {
        const model = modelOf(program);
        const least = leastPeak(model);
        for (let step = 0; step < model.steps; step++) expect(cutOf(model, step).bytes).toBeLessThanOrEqual(least);
      }),
      { numRuns: 500, seed: 41 },
    );
  });

  it("comes with sets that hold what their steps need, and the step's own needs, but not the step", () => {
    const model = modelOf(trainingStep(4));
    for (let step = 0; step < model.steps; step++) {
      const { smallest, largest } = cutOf(model, step);
      for (const set of [smallest, largest]) {
        expect(set[step]).toBe(0);
        expect(listOf(model.predecessors, step).every((i) => set[i] === 1)).toBe(true);
        set.forEach((inside, i) => {
          if (inside) expect(listOf(model.predecessors, i).every((before) => set[before] === 1)).toBe(true);
        });
      }
      smallest.forEach((inside, i) => {
        expect(inside).toBeLessThanOrEqual(largest[i]!);
      });
    }
  });

  it("moves what is not needed yet after the step, and what frees memory before it", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [16]);
    const early = b.call("early", [x], { shape: [4096] });
    const peak = b.call("peak", [x], { shape: [1024] });
    const y = b.param("y", [2048]);
    const late = b.call("late", [y], { shape: [16] });
    const program = b.finish("p", [b.call("end", [early, peak, late], { shape: [] })]);
    expect([...cutOf(modelOf(program), 1).largest]).toEqual([0, 0, 1, 0]);
  });

  it("gives up when it has looked at too many edges", () => {
    expect(minimumCut(modelOf(layeredProgram(50, 20, 1)), 25, 10).cut).toBeNull();
  });
});
