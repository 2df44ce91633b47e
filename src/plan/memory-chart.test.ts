/** @file The chart of live bytes, as text. */
import { expect, it } from "vitest";
import { trainingStep } from "../../tests/support/plan-programs.ts";
import { memoryChart } from "./memory-chart.ts";
import { planProgram } from "./plan.ts";

it("stacks live bytes by kind and marks peak and bound", () => {
  expect(memoryChart(planProgram(trainingStep(4)), { height: 8 })).toMatchInlineSnapshot(`
    "  31,808 |          gg          | peak, bound
             |      aaaagggggggg    |
             |  aaaaaaaaaaaaaaaagg  |
             |IIIIIIIIIIIIIIIIIIIIg |
      15,904 |PPPPPPPPPPPPPPPPPPPPPP|
             |PPPPPPPPPPPPPPPPPPPPPP|
             |PPPPPPPPPPPPPPPPPPPPPP|
             |PPPPPPPPPPPPPPPPPPPPPP|
        step  0                   21
              P persistent, I input, R result, a activation, g gradient, s scratch
    "
  `);
});

it("keeps to its width however many steps there are", () => {
  const lines = memoryChart(planProgram(trainingStep(80))).split("\n");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
});
