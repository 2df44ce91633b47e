/** @file The reasons for being live at a step. */
import { expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import { liveAt, liveName, waitingBytes, whyText } from "./live.ts";
import { nameValues } from "./names.ts";
import { planProgram } from "./plan.ts";

it("tells why each buffer is live at a step", () => {
  const b = new ProgramBuilder();
  const [c, x] = [b.param("c", [16]), b.param("x", [16])];
  const r = b.call("f", [x], { name: "r", shape: [48] });
  const y = b.call("f", [x], { name: "y", shape: [32], scratch: [64] });
  const z = b.call("f", [y], { name: "z" });
  const w = b.call("f", [z, x], { name: "w" });
  const plan = planProgram(b.finish("p", [r, w], { persistent: [c] }), { keepOrder: true });
  const nameOf = nameValues(plan.program);
  const texts = (step: number) => liveAt(plan, step).map((live) => `${liveName(live, nameOf)} ${whyText(live)}`);
  expect(texts(1)).toEqual(["r result", "y written here", "c persistent", "x read here", "(workspace) workspace"]);
  expect(texts(2)).toEqual(["r result", "y read here", "z written here", "c persistent", "x held for step 3"]);
  expect(waitingBytes(liveAt(plan, 2))).toBe(192 + 64);
});
