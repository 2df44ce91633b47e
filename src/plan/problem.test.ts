/** @file Small facts about buffers and addresses. */
import { expect, it } from "vitest";
import { trainingStep } from "../../tests/support/plan-programs.ts";
import { planProgram } from "./plan.ts";
import { addressOf, alignUp, heightOf, overlapInTime, rangeOf } from "./problem.ts";

it("rounds up to multiples", () => {
  expect([0, 1, 63, 64, 65].map((n) => alignUp(n, 64))).toEqual([0, 64, 64, 64, 128]);
});

it("counts lifespans half-open", () => {
  expect(overlapInTime({ start: 0, end: 2 }, { start: 2, end: 3 })).toBe(false);
  expect(overlapInTime({ start: 0, end: 3 }, { start: 2, end: 3 })).toBe(true);
});

it("measures the arena up to its last byte, rounded up; buffers of no bytes do not count", () => {
  const lifespan = { start: 0, end: 1 };
  const buffer = (id: number, bytes: number) => ({
    id,
    bytes,
    lifespan,
    values: [],
    align: 64,
    kind: "activation" as const,
  });
  const problem = { buffers: [buffer(0, 4), buffer(1, 0)], capacity: Number.POSITIVE_INFINITY, alignment: 64 };
  expect(heightOf(problem, [64, 640])).toBe(128);
});

it("finds the bytes of a value through its buffer", () => {
  const plan = planProgram(trainingStep());
  const w0 = plan.program.params[1]!;
  expect(addressOf(plan, w0)).toEqual({ buffer: 0, from: 0, to: 4096 });
  expect(rangeOf(plan, 1)).toEqual({ from: 4096, to: 8192 });
});
