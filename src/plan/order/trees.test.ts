/** @file Liu's order is the best one for trees, and a valid one for everything. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { layeredProgram, treeProgram } from "../../../bench/order-programs.ts";
import { leastPeak } from "../../../tests/support/orders.ts";
import { randomProgram } from "../../../tests/support/plan-programs.ts";
import { checkProgram, type Program } from "../program.ts";
import { backwardOrder } from "./backward.ts";
import { ListScheduler } from "./list.ts";
import { Memory, peakOf } from "./memory.ts";
import { modelOf } from "./model.ts";
import { treeOrder } from "./trees.ts";

function expectValid(program: Program): void {
  const model = modelOf(program);
  const given = Array.from({ length: model.steps }, (_, i) => i);
  const orders = [treeOrder(model), backwardOrder(model, given), new ListScheduler(model).order(given, 100)];
  for (const order of orders) {
    expect([...order].sort((a, b) => a - b)).toEqual(given);
    expect(() => checkProgram({ ...program, steps: [...order].map((i) => program.steps[i]!) })).not.toThrow();
  }
}

describe("treeOrder", () => {
  it("is optimal for trees", () => {
    for (let seed = 0; seed < 400; seed++) {
      const model = modelOf(treeProgram(2 + (seed % 12), seed));
      expect(peakOf(new Memory(model), treeOrder(model)).bytes).toBe(leastPeak(model));
    }
  });

  it("is valid for any program, and so are the orders made from the beginning and from the end", () => {
    fc.assert(fc.property(randomProgram, expectValid), { numRuns: 1000, seed: 51 });
    for (let seed = 0; seed < 20; seed++) expectValid(layeredProgram(200, 20, seed));
  });

  it("is valid for trees with more segments than it keeps apart", () => {
    expectValid(treeProgram(3000, 7));
  });
});
