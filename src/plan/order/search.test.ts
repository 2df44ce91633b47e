/** @file The search against one without rules; windows; and what it says when its credit is spent. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { branchedProgram, layeredProgram, treeProgram } from "../../../bench/order-programs.ts";
import { leastPeak } from "../../../tests/support/orders.ts";
import { randomProgram } from "../../../tests/support/plan-programs.ts";
import type { Program } from "../program.ts";
import { Memory, peakOf } from "./memory.ts";
import { type Model, modelOf } from "./model.ts";
import { Search } from "./search.ts";

const given = (model: Model) => Array.from({ length: model.steps }, (_, i) => i);

/** Lower and lower limits, until there is no order. */
function solve(model: Model, credit = 1e6): { readonly bytes: number; readonly answer: string; readonly used: number } {
  const search = new Search(new Memory(model));
  search.begin(given(model), credit);
  for (let bytes = peakOf(new Memory(model), given(model)).bytes; ; ) {
    const { answer, order } = search.find(bytes - 1);
    if (answer !== "found") return { bytes, answer, used: credit - search.credit };
    expect([...order].sort((a, b) => a - b)).toEqual(given(model));
    const { bytes: lower } = peakOf(new Memory(model), order);
    expect(lower).toBeLessThan(bytes);
    bytes = lower;
  }
}

function expectExact(program: Program): void {
  const model = modelOf(program);
  if (model.steps === 0) return;
  expect(solve(model)).toMatchObject({ bytes: leastPeak(model), answer: "none" });
}

describe("Search", () => {
  it("finds the least peak of any program", () => {
    fc.assert(fc.property(randomProgram, expectExact), { numRuns: 3000, seed: 31 });
  });

  it("finds the least peak of programs with many orders", () => {
    for (let seed = 0; seed < 150; seed++) {
      expectExact(layeredProgram(12, 6, seed));
      expectExact(layeredProgram(12, 12, seed));
      expectExact(treeProgram(11, seed));
    }
  });

  it("needs few tries where branches come together, because it does not climb out of valleys", () => {
    for (let seed = 0; seed < 10; seed++) {
      const { answer, used } = solve(modelOf(branchedProgram(6, seed)));
      expect(answer).toBe("none");
      expect(used).toBeLessThan(100_000);
    }
  });

  it("says when it does not know, and leaves everything where it was", () => {
    const model = modelOf(layeredProgram(40, 20, 1));
    const memory = new Memory(model);
    const search = new Search(memory);
    search.begin(given(model), 50);
    expect(search.find(peakOf(new Memory(model), given(model)).bytes - 1).answer).toBe("unknown");
    expect(memory.ran).toBe(0);
    expect(memory.live).toBe(new Memory(model).live);
    expect([...memory.pending]).toEqual([...new Memory(model).pending]);
  });

  it("orders some steps in the middle of a program, and others after them", () => {
    const model = modelOf(layeredProgram(60, 10, 2));
    const [memory, order] = [new Memory(model), given(model)];
    const search = new Search(memory);
    for (let from = 0; from < 60; from += 20) {
      search.begin(order.slice(from, from + 20), 1e5);
      const found = search.find(Number.POSITIVE_INFINITY).order;
      expect([...found].sort((a, b) => a - b)).toEqual(order.slice(from, from + 20));
      for (const step of found) memory.run(step);
    }
    expect(memory.ran).toBe(60);
  });
});
