/** @file The map of the arena, exact and scaled down, as text. */
import { expect, it } from "vitest";
import { trainingStep } from "../../tests/support/plan-programs.ts";
import { memoryMap } from "./memory-map.ts";
import { planProgram } from "./plan.ts";

it("draws small plans exactly, time across and bytes up", () => {
  expect(memoryMap(planProgram(trainingStep(2)))).toMatchInlineSnapshot(`
    "0x04c00 |.   .   .   .   b7──────────────────────────────|
    0x04800 |.   .   .   .   .   .   b10─.   .   .   .   .   |
    0x04400 |.   .   .   .   .   b8──────────.   .   .   .   |
    0x04000 |.   .   .   .   .   b8──────────.   b12─.   .   |
    0x03800 |b3──────────────────────────────────────.   .   |
    0x03000 |b2──────────────────────────────────────.   .   |
    0x02c00 |.   .   .   .   .   .   b9──────────b11─────.   |
    0x02800 |.   .   b6──.   .   .   b9──────────b11─────.   |
    0x02400 |.   .   b5──────────────b9──────────b11─────.   |
    0x02000 |b4──.   b5──────────────b9──────────b11─────.   |
    0x01000 |b1──────────────────────────────────────────────|
    0x00000 |b0──────────────────────────────────────────────|
       step  0   1   2   3   4   5   6   7   8   9   10  11
    "
  `);
});

it("scales large plans down to the given size", () => {
  const text = memoryMap(planProgram(trainingStep(60)), { width: 72, height: 12 });
  expect(text).toMatchInlineSnapshot(`
    "0x541e5 |.....................aaaaaaaa................................|
    0x4c78a |...............aaaaaaaaaaaaaaaaaaaaaaa.......................|
    0x44d30 |.........aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.............|
    0x3d2d5 |...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa....|
    0x3587a |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
    0x2de20 |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
    0x263c5 |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
    0x1e96a |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
    0x16f10 |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
    0x0f4b5 |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
    0x07a5a |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
    0x00000 |PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP|
       step  0                                                         301
             P persistent, I input, R result, a activation, g gradient, s scratch, . free
             1 cell = 5.0 steps × 31,323 bytes
    "
  `);
  const lines = text.trimEnd().split("\n");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(90);
  expect(lines.filter((line) => line.startsWith("0x"))).toHaveLength(12);
});
