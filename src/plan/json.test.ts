/** @file The whole JSON form of one small plan. */
import { expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import { planJson } from "./json.ts";
import { planProgram } from "./plan.ts";

it("is plain data with everything numbered", () => {
  const b = new ProgramBuilder();
  const [w, x] = [b.param("w", [16]), b.param("x", [16])];
  const y = b.call("f", [x, w], { name: "y", over: [x], scratch: [64], where: "model.ts:1:2" });
  const next = b.call("g", [y, w], { name: "w", phase: "update" });
  const plan = planProgram(b.finish("p", [next], { donated: [[w, 0]], persistent: [w] }), { budgetBytes: 1024 });
  expect(planJson(plan)).toEqual({
    version: 1,
    name: "p",
    heightBytes: 192,
    boundBytes: 192,
    budgetBytes: 1024,
    boundStep: 0,
    alignment: 64,
    strategy: "bytes/first-fit",
    buffers: [
      { kind: "persistent", start: 0, end: 3, offset: 0, bytes: 64, values: [0] },
      { kind: "input", start: 0, end: 2, offset: 64, bytes: 64, values: [1, 2] },
      { kind: "scratch", start: 0, end: 1, offset: 128, bytes: 64, values: [] },
      { kind: "result", start: 1, end: 3, offset: 128, bytes: 64, values: [3] },
    ],
    values: [
      { name: "w", type: "f32[16]", buffer: 0, offset: 0, over: null },
      { name: "x", type: "f32[16]", buffer: 1, offset: 64, over: null },
      { name: "y", type: "f32[16]", buffer: 1, offset: 64, over: 1 },
      { name: "w_1", type: "f32[16]", buffer: 3, offset: 128, over: null },
    ],
    steps: [
      {
        op: "f",
        text: "f(x, w)",
        phase: "forward",
        where: "model.ts:1:2",
        reads: [1, 0],
        writes: [2],
        scratch: [2],
        alias: false,
      },
      { op: "g", text: "g(y, w)", phase: "update", where: null, reads: [2, 0], writes: [3], scratch: [], alias: false },
    ],
    params: [
      { value: 0, persistent: true, donated: true, replacement: 0 },
      { value: 1, persistent: false, donated: false, replacement: null },
    ],
    results: [{ value: 3, buffer: 3 }],
    copies: [{ value: 3, from: 3, to: 0, param: 0 }],
  });
});
