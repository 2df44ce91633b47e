/** @file Updates run early, nothing needs more memory than before, and every order is a valid one. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProgramBuilder, randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { orderSteps } from "./order.ts";
import { checkProgram, type Program } from "./program.ts";

const maxLive = (program: Program) => boundOf(assignBuffers(program).problem).bytes;
const names = (program: Program) => program.steps.map((s) => s.writes.map((v) => v.name).join());

describe("orderSteps", () => {
  it("runs updates as soon as their gradient is whole and nobody else reads the weight", () => {
    const program = trainingStep(3);
    expect(names(program).slice(7)).toEqual(["d_h", "d_w2", "d_h2", "d_w1", "d_h1", "d_w0", "w0", "w1", "w2"]);
    const ordered = orderSteps(program);
    expect(names(ordered).slice(7)).toEqual(["d_h", "d_w2", "d_h2", "w2", "d_w1", "d_h1", "w1", "d_w0", "w0"]);
    expect(maxLive(ordered)).toBeLessThan(maxLive(program));
  });

  it("lets an update wait for the other readers of its weight, even for later ones", () => {
    const b = new ProgramBuilder();
    const [w, x] = [b.param("w", [64]), b.param("x", [64])];
    const g = b.call("grad", [x], { name: "g" });
    const next = b.call("sgd", [w, g], { name: "next", over: [w] });
    const y = b.call("use", [w, x], { name: "y", shape: [1] });
    const program = b.finish("p", [next, y], { donated: [[w, 0]], persistent: [w] });
    expect(names(orderSteps(program))).toEqual(["g", "y", "next"]);
    expect(assignBuffers(program).copies).toHaveLength(1);
    expect(assignBuffers(orderSteps(program)).copies).toHaveLength(0);
  });

  it("does not wait for a reader that needs the update's outcome", () => {
    const b = new ProgramBuilder();
    const w = b.param("w", [64]);
    const next = b.call("sgd", [w], { name: "next", over: [w] });
    const y = b.call("difference", [w, next], { name: "y" });
    const program = b.finish("p", [next, y], { donated: [[w, 0]], persistent: [w] });
    expect(names(orderSteps(program))).toEqual(["next", "y"]);
  });

  it("gets by when two updates would wait for each other", () => {
    const b = new ProgramBuilder();
    const [p, q] = [b.param("p", [64]), b.param("q", [64])];
    const nextP = b.call("f", [p, q], { name: "next_p", over: [p] });
    const nextQ = b.call("f", [q, p], { name: "next_q", over: [q] });
    const program = b.finish("p", [nextP, nextQ], {
      donated: [
        [p, 0],
        [q, 1],
      ],
      persistent: [p, q],
    });
    expect(() => checkProgram(orderSteps(program))).not.toThrow();
  });

  it("keeps program order where nothing is gained", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [4]);
    const [y, z] = [b.call("f", [x]), b.call("f", [x])];
    const program = b.finish("p", [y, z]);
    expect(orderSteps(program)).toBe(program);
  });

  it("returns all steps of any program in an order that defines before it uses, and needs no more than before", () => {
    fc.assert(
      fc.property(randomProgram, (program) => {
        const ordered = orderSteps(program);
        checkProgram(ordered);
        expect(new Set(ordered.steps)).toEqual(new Set(program.steps));
        expect(maxLive(ordered)).toBeLessThanOrEqual(maxLive(program));
      }),
      { numRuns: 500, seed: 5 },
    );
  });
});
