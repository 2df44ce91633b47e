/** @file Times of plans with copies, computed by hand. */
import { expect, it } from "vitest";
import { ProgramBuilder } from "../../../tests/support/plan-programs.ts";
import type { CostModel } from "../../target/work.ts";
import { NO_WORK } from "../../target/work.ts";
import { moveValues } from "../move.ts";
import { planProgram } from "../plan.ts";
import type { Plan } from "../problem.ts";
import { memorySpace } from "../space.ts";
import { planTrace, predictedStepMs } from "../trace-events.ts";
import { type NodeCosts, planMs } from "./model.ts";

/** A kernel takes a millisecond; a copy of 1,000 floats takes what `linkRate` says. */
function costsAt(linkRate: number): NodeCosts {
  const rates: CostModel = {
    name: "test",
    productRate: 1,
    arithmeticRate: 1000,
    byteRate: 1e30,
    linkRate,
    callSeconds: 0,
  };
  return { rates, key: "test", workOf: () => ({ ...NO_WORK, arithmetic: 1 }) };
}

/** h0 is moved out after step 0 and back before the last of 8 steps. */
function movedChain(flightSteps: number): Plan {
  const b = new ProgramBuilder();
  const h0 = b.call("f", [b.param("x", [1000])], { name: "h0" });
  let last = h0;
  for (let i = 0; i < 6; i++) last = b.call("f", [last], { name: `h${i + 1}` });
  const program = b.finish("chain", [b.call("g", [last, h0], { name: "y" })]);
  const spaces = { device: memorySpace(64, { name: "device" }), host: memorySpace(64, { name: "host" }) };
  return planProgram(moveValues(program, [h0], { ...spaces, flightSteps }));
}

it("hides copies behind kernels where there is time, and adds what is left", () => {
  const bytes = 4000;
  const ms = (copyMs: number, flightSteps: number): number =>
    planMs(movedChain(flightSteps), costsAt(bytes / (copyMs / 1000)));
  // eight kernels; a copy of 2 ms is hidden behind 2 steps, of 3 ms waits for 1 ms on either way
  expect(ms(2, 2)).toBeCloseTo(8, 9);
  expect(ms(3, 2)).toBeCloseTo(10, 9);
  expect(ms(3, 3)).toBeCloseTo(8, 9);
  expect(ms(2, 0)).toBeCloseTo(8 + 1 + 2, 9); // out: beside step 1, which reads h0; back: nothing beside it
});

it("has copies on threads of their own in a trace", () => {
  const plan = movedChain(2);
  const costs = costsAt(4000 / 0.003);
  const { traceEvents } = planTrace(plan, (step) => predictedStepMs(plan, step, costs));
  const slices = traceEvents.filter((e) => e.ph === "X");
  expect(slices.filter((e) => e.name === "copy").map(({ tid, ts, dur }) => [tid, ts, dur])).toEqual([
    [2, 1000, 3000],
    [3, 6000, 3000],
  ]);
  const end = Math.max(...slices.map(({ ts, dur }) => ts + (dur ?? 0)));
  expect(end).toBeCloseTo(1000 * planMs(plan, costs), 6);
  const counters = new Set(traceEvents.filter((e) => e.ph === "C").map((e) => e.name));
  expect([...counters]).toEqual(["device", "host"]);
});
