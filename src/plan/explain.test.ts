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
        it is not written over h0: it has 2,048 bytes, not 4,096
        it is not written over d_h: it has 2,048 bytes, not 4,096
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
      "it is not written over x: it is read again at step 1, z = f(y, x)",
      "it is not written over kept: it is persistent and not donated",
    ]);
    expect(why("z")).toEqual([
      "it is not written over y: it is read again at step 5, w = g(y)",
      "it is not written over x: the step reads other elements of it than the one it writes",
    ]);
    expect(why("flat")).toEqual(["it is another name of z"]);
    expect(why("u")).toEqual([
      "it is not written over z: the step reads the same storage as flat too",
      "it is not written over flat: the step reads the same storage as z too",
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

  it("says how long a value waits for a reader", () => {
    expect(explainValue(planProgram(trainingStep(3)), "h0").sentences).toContain(
      "from step 3 on it waits 8 steps for step 11, d_w1 = matmul_t(h0, d_h2)",
    );
  });

  it("explains buffers by their numbers", () => {
    expect(explainText(plan, "b0")).toMatchInlineSnapshot(`
      "b0 is at [0:4096], 4,096 bytes, for steps [0, 12): persistent
        w0: f32[32,32] is there from step 0
        w0_1: f32[32,32] is written at step 10, w0_1 = sgd(w0, d_w0)
        its place is never free, so nothing else uses it
      "
    `);
    expect(explainText(plan, "b4")).toMatchInlineSnapshot(`
      "b4 is at [8192:9216], 1,024 bytes, for steps [0, 1): workspace of step 0, z0 = matmul(x, w0)
        after it, the place is reused by b5 (z1), b9 (d_w1), b11 (d_w0)
      "
    `);
  });

  it("finds parameters by their paths in the arguments", () => {
    const b = new ProgramBuilder();
    const params = ["state_params_layers_0_w", "state_step", "x"].map((name) => b.param(name, [16]));
    const p = planProgram(b.finish("p", [b.call("f", params, { name: "y" })]));
    for (const path of ["state.params.layers[0].w", "params.layers[0].w", "state_params_layers_0_w"]) {
      expect(explainValue(p, path).value).toBe(params[0]);
    }
    expect(explainValue(p, "x").value).toBe(params[2]);
    expect(() => explainValue(p, "state.params")).toThrow(/stores no value named state\.params/);
  });

  it("refuses names that are not in the plan and offers those that are", () => {
    expect(() => explainValue(plan, "d_w")).toThrow(/train stores no value named d_w\n {2}help: it stores d_w1, d_w0/);
  });
});
