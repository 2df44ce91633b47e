/** @file Values that are moved to another memory and back arrive intact, whenever copies take place. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProgramBuilder, randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import { faultsOfRun, type Pace, valuesOf } from "../../tests/support/run-plan.ts";
import { movableValues, moveValues } from "./move.ts";
import { planProgram } from "./plan.ts";
import { printPlan } from "./print.ts";
import type { Program } from "./program.ts";
import { memorySpace } from "./space.ts";
import { validate } from "./validate.ts";

const device = memorySpace(64, { name: "device", hostVisible: false });
const host = memorySpace(256, { name: "host" });
const PACES: readonly Pace[] = ["start", "wait", 5, 6];

/** Bytes of all results of a program, without a plan. */
function resultsOf(program: Program): readonly (readonly number[])[] {
  const values = valuesOf(program);
  return program.results.map((value) => [...values.get(value)!]);
}

function expectIntact(program: Program, moved: Program): void {
  const plan = planProgram(moved);
  expect(validate(moved, plan)).toEqual([]);
  for (const pace of PACES) expect(faultsOfRun(plan, pace)).toEqual([]);
  expect(resultsOf(moved)).toEqual(resultsOf(program));
}

describe("moveValues", () => {
  const layers = 5;
  const stored = planProgram(trainingStep(layers));
  const { program } = stored;
  const activations = movableValues(program).filter((value) => value.name?.startsWith("h"));

  it("takes activations to the host while nothing uses them", () => {
    const small = trainingStep(3);
    const h0 = movableValues(small).filter((value) => value.name === "h0");
    expect(printPlan(planProgram(moveValues(small, h0, { device, host })))).toMatchInlineSnapshot(`
      "// 20 buffers, device 29,760 bytes, bound 29,760; host 2,048 bytes, bound 2,048
      func train(
        x:  f32[16,32] @ b3[24576:26624]
        w0: f32[32,32] @ b0[0:4096] persistent, becomes w0_1
        w1: f32[32,32] @ b1[4096:8192] persistent, becomes w1_1
        w2: f32[32,32] @ b2[8192:12288] persistent, becomes w2_1
      ) {
        z0:      f32[16,32] = matmul(x, w0)        @ b4[12288:14336] scratch b5[14336:15360]
        h0:      f32[16,32] = relu(z0)             @ b4[12288:14336] over z0
        h0_host: f32[16,32] = copy(h0)             @ host:b6[0:2048] queue 1
        z1:      f32[16,32] = matmul(h0, w1)       @ b7[20480:22528] scratch b8[14336:15360]
        h1:      f32[16,32] = relu(z1)             @ b7[20480:22528] over z1
        wait(h0_host)
        z2:      f32[16,32] = matmul(h1, w2)       @ b9[12288:14336] scratch b10[14336:15360]
        h2:      f32[16,32] = relu(z2)             @ b9[12288:14336] over z2
        loss:    f32[]      = loss(h2)             @ b11[29696:29700]
        // backward
        d_h:     f32[16,32] = loss_grad(h2)        @ b12[16384:18432]
        h0_1:    f32[16,32] = copy(h0_host)        @ b13[26624:28672] queue 2
        d_w2:    f32[32,32] = matmul_t(h1, d_h)    @ b14[12288:16384] scratch b15[18432:19456]
        d_h2:    f32[16,32] = back(d_h, w2, h1)    @ b7[20480:22528] over h1
        wait(h0_1)
        d_w1:    f32[32,32] = matmul_t(h0_1, d_h2) @ b16[16384:20480] scratch b17[22528:23552]
        d_h1:    f32[16,32] = back(d_h2, w1, h0_1) @ b13[26624:28672] over h0_1
        d_w0:    f32[32,32] = matmul_t(x, d_h1)    @ b18[20480:24576] scratch b19[28672:29696]
        // update
        w0_1:    f32[32,32] = sgd(w0, d_w0)        @ b0[0:4096] over w0
        w1_1:    f32[32,32] = sgd(w1, d_w1)        @ b1[4096:8192] over w1
        w2_1:    f32[32,32] = sgd(w2, d_w2)        @ b2[8192:12288] over w2
        return loss, w0_1, w1_1, w2_1
      }
      "
    `);
  });

  it("makes the device's arena smaller by what is away at its tightest step", () => {
    const plan = planProgram(moveValues(program, activations, { device, host }));
    expect(activations.length).toBeGreaterThan(2);
    expect(plan.height).toBeLessThan(stored.height);
    expect(plan.others[0]!.height).toBe(activations.length * 2048);
    expect(stored.others).toEqual([]);
  });

  it("brings every choice of values back intact, however long copies are in flight", () => {
    const small = trainingStep(3, 4, 4);
    const values = movableValues(small);
    expect(values.length).toBeGreaterThan(4);
    for (let choice = 0; choice < 2 ** values.length; choice++) {
      const chosen = values.filter((_, i) => (choice >> i) & 1);
      for (const flightSteps of [0, 2, 5])
        expectIntact(small, moveValues(small, chosen, { device, host, flightSteps }));
    }
  });

  it("brings values of any program back intact", () => {
    let copies = 0;
    fc.assert(
      fc.property(randomProgram, fc.nat(), fc.nat(5), (random, choice, flightSteps) => {
        const chosen = movableValues(random).filter((_, i) => (choice >> (i % 30)) & 1);
        const alignment = random.spaces[0].alignment;
        const spaces = { device: { ...device, alignment }, host };
        const moved = moveValues(random, chosen, { ...spaces, flightSteps });
        copies += chosen.length;
        expectIntact(random, moved);
      }),
      { numRuns: 800, seed: 77 },
    );
    expect(copies).toBeGreaterThan(500);
  });

  it("gives other names again to what comes back", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [16]);
    const y = b.call("f", [x], { name: "y" });
    const flat = b.rename(y, { name: "flat" });
    const z = b.call("g", [flat], { name: "z" });
    const w = b.call("g", [z], { name: "w" });
    const u = b.call("g", [w], { name: "u" });
    const p = b.finish("p", [b.call("h", [u, flat, y], { name: "v", over: [flat] }), flat]);
    const moved = moveValues(p, [flat], { device, host, flightSteps: 1 });
    expect(moved.steps.map(({ node }) => node.op.name).join(" ")).toBe("f copy reshape g wait g copy g wait reshape h");
    expectIntact(p, moved);
  });

  it("refuses what would free nothing", () => {
    const weights = program.params.filter((param) => param.name?.startsWith("w"));
    expect(() => moveValues(program, [weights[0]!], { device, host })).toThrow(/needed for the whole run/);
    const z = program.steps[0]!.writes;
    expect(() => moveValues(program, z, { device, host })).toThrow(/never unused for a step/);
  });
});
