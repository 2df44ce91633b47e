/** @file The numbers of a plan and their text. */
import { expect, it } from "vitest";
import { trainingStep } from "../../tests/support/plan-programs.ts";
import { planProgram } from "./plan.ts";
import { reportPlan, reportText } from "./report.ts";

it("has the numbers of a plan", () => {
  const plan = planProgram(trainingStep(2));
  const report = reportPlan(plan);
  expect(report).toMatchObject({
    name: "train",
    steps: 11,
    peakBytes: plan.height,
    boundBytes: plan.bound.bytes,
    persistentBytes: 8192,
    ephemeralBytes: plan.height - 8192,
    valuesRenamed: 0,
    copies: 0,
    ratio: plan.height / plan.bound.bytes,
  });
  const stored = [...plan.bufferOf.keys()].reduce(
    (sum, v) => sum + Math.max(64, 4 * v.type.shape.reduce((a, b) => a * b, 1)),
    0,
  );
  expect(report.withoutReuseBytes).toBe(stored + 4 * 1024);
  expect(report.kinds.reduce((sum, kind) => sum + kind.bytesAtPeak, 0)).toBe(plan.bound.bytes);
  expect(report.tightest.live.reduce((sum, b) => sum + b.bytes, 0)).toBe(plan.bound.bytes);
});

it("says it in words", () => {
  expect(reportText(planProgram(trainingStep(2)), 4)).toMatchInlineSnapshot(`
    "train: 11 steps, 14 values in 13 buffers, 5 in place, 0 renamed, 0 copied at the end
      peak           19,520  1.000 × bound, by bytes/first-fit
      bound          19,520  most bytes live at once
      budget           none
      persistent      8,192  kept between runs
      ephemeral      11,328
      without reuse  43,072  2.21 × peak
      kind        buffers   bytes  at peak
      persistent        2   8,192    8,192
      input             1   2,048    2,048
      result            1      64       64
      activation        2   4,096    2,048
      gradient          3  10,240    6,144
      scratch           4   4,096    1,024
      tightest at step 6, d_w1 = matmul_t(h0, d_h):
        b0  w0    4,096  persistent
        b1  w1    4,096  persistent
        b9  d_w1  4,096  written here
        b2  x     2,048  held for step 9
        … 4 more
    "
  `);
});
