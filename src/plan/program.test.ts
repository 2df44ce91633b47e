/** @file What is a program and what is not. */
import { describe, expect, it } from "vitest";
import { ProgramBuilder, trainingStep } from "../../tests/support/plan-programs.ts";
import { checkProgram, needsSlot, type Program, replacementOf, returnStepOf } from "./program.ts";
import { memorySpace } from "./space.ts";

describe("checkProgram", () => {
  it("accepts a training step", () => {
    expect(() => checkProgram(trainingStep())).not.toThrow();
  });

  it("refuses what is not a program and says which step is wrong", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [4]);
    const y = b.call("f", [x], { name: "y" });
    const z = b.call("f", [y], { name: "z", shape: [8] });
    const program = b.finish("p", [z]);
    const [first, second] = program.steps;
    const wrong = (change: Partial<Program>) => () => checkProgram({ ...program, ...change });
    expect(wrong({ steps: [second!, first!] })).toThrow(/step 0 reads y#\d+ before it is written/);
    expect(wrong({ steps: [first!, first!, second!] })).toThrow(/step 1 writes y#\d+, which exists already/);
    expect(wrong({ steps: [first!] })).toThrow(/result z#\d+ is never written/);
    expect(wrong({ steps: [first!, { ...second!, inPlace: [[y, z]] }] })).toThrow(/step 1 \(f\).*different sizes/);
    expect(wrong({ steps: [{ ...first!, inPlace: [[z, y]] }, second!] })).toThrow(/does not touch/);
    expect(wrong({ steps: [{ ...first!, alias: [x, y], scratch: [8] }, second!] })).toThrow(/needs no workspace/);
    expect(wrong({ persistent: new Set([y]) })).toThrow(/persistent y#\d+ is not a parameter/);
    expect(wrong({ donated: new Map([[y, -1]]) })).toThrow(/donated y#\d+ is not a parameter/);
    expect(wrong({ donated: new Map([[x, 3]]) })).toThrow(/result 3, which does not exist/);
    expect(wrong({ donated: new Map([[x, 0]]) })).toThrow(/of another size/);
    expect(wrong({ params: [x, x] })).toThrow(/listed twice/);
    expect(wrong({ spaces: [memorySpace(0)] })).toThrow(/alignment 0/);
  });
});

describe("donated parameters", () => {
  it("have a replacement unless their index is -1, and then need a slot for the whole run", () => {
    const b = new ProgramBuilder();
    const [p, q, r] = [b.param("p", [4]), b.param("q", [4]), b.param("r", [4])];
    const y = b.call("f", [p, q]);
    const program = b.finish("p", [y], {
      donated: [
        [p, 0],
        [q, -1],
      ],
      persistent: [r],
    });
    expect([p, q, r].map((v) => replacementOf(program, v))).toEqual([y, undefined, undefined]);
    expect([p, q, r].map((v) => needsSlot(program, v))).toEqual([true, false, true]);
    expect(returnStepOf(program)).toBe(1);
  });
});
