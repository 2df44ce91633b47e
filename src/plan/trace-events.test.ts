/** @file A plan as a trace: its times add up to the prediction, its counters to the live bytes. */
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { ProgramBuilder, trainingStep } from "../../tests/support/plan-programs.ts";
import { liveBytes } from "./bound.ts";
import { memoryChart } from "./memory-chart.ts";
import { memoryMap } from "./memory-map.ts";
import { planProgram } from "./plan.ts";
import { problemIn } from "./problem.ts";
import { terminalPaint, wantsColour } from "./terminal.ts";
import { planTrace } from "./trace-events.ts";

it("has a slice for each kernel, back to back, and a sample of memory where each begins", () => {
  const plan = planProgram(trainingStep());
  const { steps } = plan.program;
  const { traceEvents, otherData } = planTrace(plan, (step) => step + 1);
  const slices = traceEvents.filter((e) => e.ph === "X");
  const kernels = steps.flatMap((step, i) => (step.alias ? [] : [i]));
  expect(slices.map((e) => e.args.step)).toEqual(kernels);
  expect(slices.map((e) => e.dur)).toEqual(kernels.map((i) => (i + 1) * 1000));
  slices.slice(1).forEach((slice, i) => {
    expect(slice.ts).toBe((slices[i]?.ts ?? 0) + (slices[i]?.dur ?? 0));
  });
  const samples = traceEvents.filter((e) => e.ph === "C");
  const total = samples.map(({ args }) => Object.values(args).reduce<number>((sum, bytes) => sum + Number(bytes), 0));
  expect(total).toEqual([...liveBytes(problemIn(plan.problem), steps.length + 1)]);
  expect(Math.max(...total)).toBe(otherData.boundBytes);
  expect(JSON.parse(JSON.stringify(traceEvents))).toEqual(traceEvents);
});

it("names the source line of a kernel where it is known", () => {
  const b = new ProgramBuilder();
  const y = b.call("f", [b.param("x", [4])], { name: "y", where: "model.ts:1:2" });
  const { traceEvents } = planTrace(planProgram(b.finish("p", [y])), () => 1);
  expect(traceEvents.find((e) => e.ph === "X")).toMatchObject({
    ...{ name: "f", cat: "forward", ts: 0, dur: 1000 },
    args: { step: 0, text: "y = f(x)", where: "model.ts:1:2" },
  });
});

it("pictures in colour are the pictures without it, painted", () => {
  const plan = planProgram(trainingStep());
  for (const picture of [memoryChart, memoryMap]) {
    for (const options of [
      { width: 60, height: 12 },
      { width: 400, height: 200 },
    ]) {
      const painted = picture(plan, { ...options, paint: terminalPaint });
      expect(painted).toContain("\u001b[");
      expect(stripVTControlCharacters(painted)).toBe(picture(plan, options));
    }
  }
});

it("colour is for terminals, and users have the last word", () => {
  expect(wantsColour(true, {})).toBe(true);
  expect(wantsColour(false, {})).toBe(false);
  expect(wantsColour(true, { NO_COLOR: "1" })).toBe(false);
  expect(wantsColour(true, { TERM: "dumb" })).toBe(false);
  expect(wantsColour(false, { FORCE_COLOR: "1" })).toBe(true);
  expect(wantsColour(true, { FORCE_COLOR: "0" })).toBe(false);
});
