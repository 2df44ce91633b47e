/** @file Every answer that a value can get, on plans small enough to check by eye. */
import { describe, expect, it } from "vitest";
import { ProgramBuilder, trainingStep } from "../../tests/support/plan-programs.ts";
import { explainText, explainValue } from "./explain.ts";
import { planProgram } from "./plan.ts";

const plan = planProgram(trainingStep(2));

describe("explainValue", () => {
  it("says where a value is, how long it lives, and why it was not written over an operand", () => {
    expect(explainText(plan, "d_w1")).toMatchInlineSnapshot(`
      "d_w1: f32[32,32] is at b9[8192:12288], 4,096 bytes
        it is written at step 6, d_w1 = matmul_t(h0, d_h)
        its only reader is step 8, w1_1 = sgd(w1, d_w1)
        it is not written over h0: the step does not allow it
        it is not written over d_h: the step does not allow it
        before it, the place belongs to b4 (workspace), b5 (z1), b6 (workspace)
        after it, the place is reused by b11 (d_w0)
      "
    `);
  });

  it("says what a donated parameter becomes", () => {
    expect(explainText(plan, "w0")).toMatchInlineSnapshot(`
      "w0: f32[32,32] is at b0[0:4096], 4,096 bytes
        it is a parameter, there from step 0
        its last of 2 readers is step 10, w0_1 = sgd(w0, d_w0)
        its content lives for steps [0, 11), its buffer for [0, 12)
        w0_1 replaces it in the same storage
        b0 also holds w0_1
      "
    `);
  });

  it("gives every reason against writing in place", () => {
    const b = new ProgramBuilder();
    const [kept, x] = [b.param("kept", [16]), b.param("x", [16])];
    const y = b.call("f", [x, kept], { name: "y", over: [x, kept] });
    const z = b.call("f", [y, x], { name: "z", over: [y] });
    const flat = b.rename(z, { name: "flat" });
    const u = b.call("f", [z, flat], { name: "u", over: [z] });
    const [v, w] = [b.call("f", [u], { name: "v", over: [u] }), b.call("g", [y], { name: "w" })];
    const p = planProgram(b.finish("p", [y, v, w], { persistent: [kept] }), { keepOrder: true });
    const why = (name: string) =>
      explainValue(p, name).sentences.filter((s) => s.includes("written over") || s.includes("name of"));
    expect(why("y")).toEqual([
      "it is not written over x: step 1 still reads it",
      "it is not written over kept: it is persistent and not donated",
    ]);
    expect(why("z")).toEqual([
      "it is not written over y: step 5 still reads it",
      "it is not written over x: the step does not allow it",
    ]);
    expect(why("flat")).toEqual(["it is another name of z"]);
    expect(why("u")).toEqual([
      "it is not written over z: the step reads the same storage as flat too",
      "it is not written over flat: the step does not allow it",
    ]);
    expect(why("v")).toEqual(["it is written over u, which dies there"]);
    expect(explainValue(p, "kept").sentences).toContain("it is persistent and not donated, so it is never overwritten");
  });

  it("says why a final copy is needed", () => {
    const b = new ProgramBuilder();
    const [p, q, r] = [b.param("p", [16]), b.param("q", [16]), b.param("r", [16])];
    const nextP = b.call("f", [p, q], { name: "next_p" });
    const nextQ = b.call("f", [q], { name: "next_q", over: [q] });
    const late = b.call("f", [q, nextQ], { name: "late" });
    const program = b.finish("p", [nextP, nextQ, p, late], {
      donated: [
        [p, 0],
        [q, 1],
        [r, 2],
      ],
      persistent: [p, q, r],
    });
    const reason = (name: string) =>
      explainValue(planProgram(program, { keepOrder: true }), name).sentences.find((s) => s.includes("final copy"));
    expect(reason("p")).toBe("next_p replaces it by a final copy: p is a result as well");
    expect(reason("q")).toBe(
      "next_q replaces it by a final copy: q is still read at step 2, after next_q is written at step 1",
    );
    expect(reason("r")).toBe("p replaces it by a final copy: p is a parameter's storage itself");
  });

  it("refuses names that are not in the plan and offers those that are", () => {
    expect(() => explainValue(plan, "d_w")).toThrow(/train stores no value named d_w\n {2}help: it stores d_w1, d_w0/);
  });
});
