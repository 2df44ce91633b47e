/** @file The text of plans. */
import { describe, expect, it } from "vitest";
import { ProgramBuilder, trainingStep } from "../../tests/support/plan-programs.ts";
import { planProgram } from "./plan.ts";
import { printPlan } from "./print.ts";

describe("printPlan", () => {
  it("prints the program with addresses, phases, workspace and what is written over what", () => {
    expect(printPlan(planProgram(trainingStep(2)))).toMatchInlineSnapshot(`
      "// 13 buffers, 19,520 bytes, bound 19,520
      func train(
        x:  f32[16,32] @ b2[12288:14336]
        w0: f32[32,32] @ b0[0:4096] persistent, becomes w0_1
        w1: f32[32,32] @ b1[4096:8192] persistent, becomes w1_1
      ) {
        z0:   f32[16,32] = matmul(x, w0)     @ b3[14336:16384] scratch b4[8192:9216]
        h0:   f32[16,32] = relu(z0)          @ b3[14336:16384] over z0
        z1:   f32[16,32] = matmul(h0, w1)    @ b5[8192:10240] scratch b6[10240:11264]
        h1:   f32[16,32] = relu(z1)          @ b5[8192:10240] over z1
        loss: f32[]      = loss(h1)          @ b7[19456:19460]
        // backward
        d_h:  f32[16,32] = loss_grad(h1)     @ b8[16384:18432]
        d_w1: f32[32,32] = matmul_t(h0, d_h) @ b9[8192:12288] scratch b10[18432:19456]
        d_h1: f32[16,32] = back(d_h, w1, h0) @ b3[14336:16384] over h0
        // update
        w1_1: f32[32,32] = sgd(w1, d_w1)     @ b1[4096:8192] over w1
        // backward
        d_w0: f32[32,32] = matmul_t(x, d_h1) @ b11[8192:12288] scratch b12[16384:17408]
        // update
        w0_1: f32[32,32] = sgd(w0, d_w0)     @ b0[0:4096] over w0
        return loss, w0_1, w1_1
      }
      "
    `);
  });

  it("prints final copies, renamings, several results and results that were put aside", () => {
    const b = new ProgramBuilder();
    const [p, x] = [b.param("p", [4, 4]), b.param("x", [4])];
    const flat = b.rename(p, { name: "flat" });
    const next = b.call("f", [flat, x], { name: "next", shape: [16] });
    const program = b.finish("step", [next, p], {
      donated: [
        [p, 0],
        [x, -1],
      ],
      persistent: [p],
    });
    expect(printPlan(planProgram(program))).toMatchInlineSnapshot(`
      "// 4 buffers, 192 bytes, bound 192
      func step(
        p: f32[4,4] @ b0[0:64] persistent, becomes next
        x: f32[4]   @ b1[128:144] donated
      ) {
        flat: f32[16] = reshape(p) @ b0[0:64] over p
        next: f32[16] = f(flat, x) @ b2[64:128]
        copy p from b0[0:64] to b3[128:192]
        copy next from b2[64:128] to b0[0:64] over p
        return next, p @ b3[128:192]
      }
      "
    `);
  });

  it("takes another format of statements", () => {
    const b = new ProgramBuilder();
    const y = b.call("f", [b.param("x", [4])], { name: "y" });
    const text = printPlan(planProgram(b.finish("p", [y])), () => ({ names: "n", types: "t", call: "c" }));
    expect(text).toContain("  n: t = c @ b1[0:16]\n");
  });
});
