/** @file Measured slowdowns: no figure from a few steps, the middle of many, the current plan alone. */
import { expect, it } from "vitest";
import { slowdownOf } from "./slowdown.ts";
import type { StepReport } from "./trainer.ts";

const steps = (ratios: readonly number[]): readonly StepReport[] =>
  ratios.map((ratio, i) => ({ step: i + 1, loss: 1, storedLoss: 1, ms: 10 * ratio, storedMs: 10 }));

it("says nothing before there are enough steps of the plan", () => {
  expect(slowdownOf([], 0)).toBeNull();
  expect(slowdownOf(steps(Array(8).fill(1)), 0)).toBeNull();
  expect(slowdownOf(steps(Array(9).fill(1)), 0)).toEqual({ median: 1, low: 1, high: 1 });
  expect(slowdownOf(steps(Array(40).fill(1)), 35)).toBeNull();
});

it("is the median of ratios, with the middle half of them, whatever single steps do", () => {
  const ratios = Array.from({ length: 41 }, (_, i) => 1 + (i % 5) / 10);
  const noisy = ratios.map((ratio, i) => (i % 10 === 3 ? 25 : ratio));
  const slowdown = slowdownOf(steps(noisy), 0);
  expect(slowdown?.median).toBeCloseTo(1.2);
  expect(slowdown?.low).toBeCloseTo(1.1);
  expect(slowdown?.high).toBeLessThanOrEqual(1.4);
});

it("counts the latest steps of the current plan, without clocks that stood still", () => {
  expect(slowdownOf(steps([...Array(50).fill(3), ...Array(20).fill(1.5)]), 50)?.median).toBe(1.5);
  expect(slowdownOf(steps([...Array(300).fill(3), ...Array(100).fill(2)]), 0)?.high).toBe(2);
  expect(slowdownOf(steps(Array(30).fill(0)), 0)).toBeNull();
});
