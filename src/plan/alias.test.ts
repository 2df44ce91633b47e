/** @file Buffers are shared where they may be and nowhere else; slots of donated parameters are filled in place where possible. */
import { describe, expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import type { Value } from "../ir/graph.ts";
import { assignBuffers } from "./alias.ts";
import type { Program } from "./program.ts";

/** Whether two values ended up in the same buffer. */
function together(program: Program, a: Value, b: Value): boolean {
  const { bufferOf } = assignBuffers(program);
  return bufferOf.get(a) === bufferOf.get(b);
}

describe("a written value takes over the storage of an operand", () => {
  it("at its last use, where the step allows it", () => {
    const b = new ProgramBuilder();
    const x = b.call("f", [], { shape: [4] });
    const y = b.call("f", [x], { over: [x] });
    const z = b.call("f", [y]);
    const program = b.finish("p", [z]);
    expect(together(program, x, y)).toBe(true);
    expect(together(program, y, z)).toBe(false);
    expect(assignBuffers(program).inPlace.get(y)).toBe(x);
  });

  it("not while a later step reads it, nor if it is a result", () => {
    const b = new ProgramBuilder();
    const x = b.call("f", [], { shape: [4] });
    const y = b.call("f", [x], { over: [x] });
    const z = b.call("f", [x, y], { over: [y] });
    const program = b.finish("p", [y, z]);
    expect(together(program, x, y)).toBe(false);
    expect(together(program, y, z)).toBe(false);
  });

  it("not while another name of it is read later", () => {
    const b = new ProgramBuilder();
    const x = b.call("f", [], { shape: [4] });
    const name = b.rename(x);
    const y = b.call("f", [x], { over: [x] });
    const z = b.call("f", [y, name]);
    expect(together(b.finish("p", [z]), x, y)).toBe(false);
  });

  it("not if the same step reads it under another name that it may not write over", () => {
    const b = new ProgramBuilder();
    const x = b.call("f", [], { shape: [4] });
    const name = b.rename(x);
    const y = b.call("f", [x, name], { over: [x] });
    const z = b.call("f", [y]);
    expect(together(b.finish("p", [z]), x, y)).toBe(false);
  });

  it("once only: a second result of the step goes elsewhere", () => {
    const b = new ProgramBuilder();
    const x = b.call("f", [], { shape: [4] });
    const [y, z] = [b.call("tmp", [x]), b.call("tmp", [x])];
    const program = b.finish("p", [y, z]);
    const [first] = program.steps;
    const both = {
      ...program.steps[1]!,
      writes: [y, z],
      inPlace: [
        [x, y],
        [x, z],
      ] as const,
    };
    const joint = { ...program, steps: [first!, both] };
    expect(together(joint, x, y)).toBe(true);
    expect(together(joint, y, z)).toBe(false);
  });

  it("if it is an input, but not if it is persistent and not donated", () => {
    const b = new ProgramBuilder();
    const [input, kept] = [b.param("input", [4]), b.param("kept", [4])];
    const y = b.call("f", [input], { over: [input] });
    const z = b.call("f", [kept], { over: [kept] });
    const program = b.finish("p", [y, z], { persistent: [kept] });
    expect(together(program, input, y)).toBe(true);
    expect(together(program, kept, z)).toBe(false);
    expect(together({ ...program, donated: new Map([[kept, -1]]) }, kept, z)).toBe(true);
  });
});

describe("the replacement of a donated parameter", () => {
  it("is written over it where the step allows it, rather than over the gradient", () => {
    const b = new ProgramBuilder();
    const [p, x] = [b.param("p", [4]), b.param("x", [4])];
    const g = b.call("grad", [p, x]);
    const next = b.call("sgd", [g, p], { over: [g, p] });
    const program = b.finish("p", [next], { donated: [[p, 0]], persistent: [p] });
    const { bufferOf, copies, resultBuffers, problem } = assignBuffers(program);
    expect(bufferOf.get(next)).toBe(bufferOf.get(p));
    expect(copies).toEqual([]);
    expect(resultBuffers).toEqual([0]);
    expect(problem.buffers[0]).toMatchObject({
      kind: "persistent",
      fixedAt: 0,
      lifespan: { start: 0, end: 3 },
      values: [p, next],
    });
  });

  it("needs no permission once the parameter is dead, and the way there may be in the slot too", () => {
    const b = new ProgramBuilder();
    const p = b.param("p", [4]);
    const t = b.call("f", [p], { over: [p] });
    const u = b.call("g", [t]);
    const next = b.call("f", [u], { over: [u] });
    const program = b.finish("p", [next], { donated: [[p, 0]], persistent: [p] });
    expect(together(program, p, t)).toBe(true);
    expect(together(program, p, next)).toBe(true);
    expect(together(program, u, next)).toBe(false); // u is written while t, in the slot, is read
    expect(assignBuffers(program).copies).toEqual([]);
  });

  it("may be another name of what was written over it", () => {
    const b = new ProgramBuilder();
    const p = b.param("p", [4]);
    const t = b.call("f", [p], { over: [p] });
    const next = b.rename(t);
    const program = b.finish("p", [next], { donated: [[p, 0]], persistent: [p] });
    expect(together(program, p, next)).toBe(true);
  });

  it("is copied at the end where the step forbids it or the parameter is read later", () => {
    const b = new ProgramBuilder();
    const [p, q] = [b.param("p", [4]), b.param("q", [4])];
    const nextP = b.call("f", [p]);
    const nextQ = b.call("f", [q], { over: [q] });
    const late = b.call("f", [q]);
    const program = b.finish("p", [nextP, nextQ, late], {
      donated: [
        [p, 0],
        [q, 1],
      ],
      persistent: [p, q],
    });
    const { bufferOf, copies } = assignBuffers(program);
    expect(copies).toEqual([
      { value: nextP, from: bufferOf.get(nextP), to: bufferOf.get(p), param: p },
      { value: nextQ, from: bufferOf.get(nextQ), to: bufferOf.get(q), param: q },
    ]);
  });

  it("is laid over one parameter and copied to the other where it replaces two", () => {
    const b = new ProgramBuilder();
    const [p, q] = [b.param("p", [4]), b.param("q", [4])];
    const next = b.call("f", [p, q], { over: [p, q] });
    const program = b.finish("p", [next, next], {
      donated: [
        [p, 0],
        [q, 1],
      ],
      persistent: [p, q],
    });
    const { bufferOf, copies } = assignBuffers(program);
    expect(bufferOf.get(next)).toBe(bufferOf.get(p));
    expect(copies.map((c) => c.param)).toEqual([q]);
  });

  it("is nothing to do if the parameter replaces itself", () => {
    const b = new ProgramBuilder();
    const p = b.param("p", [4]);
    const name = b.rename(p);
    const program = b.finish("p", [name], { donated: [[p, 0]], persistent: [p] });
    expect(assignBuffers(program).copies).toEqual([]);
  });
});

it("keeps results out of a slot that a final copy fills", () => {
  const b = new ProgramBuilder();
  const p = b.param("p", [4]);
  const next = b.call("f", [p], { name: "next" });
  const other = b.call("f", [p], { name: "other", over: [p] });
  const passing = b.call("f", [other], { name: "passing" });
  const finish = (results: readonly Value[]) => b.finish("p", results, { donated: [[p, 0]], persistent: [p] });
  expect(together(finish([next, passing]), p, other)).toBe(true);
  expect(together(finish([next, other]), p, other)).toBe(false);
  expect(assignBuffers(finish([next, other])).copies).toHaveLength(1);
});

it("gives values of no bytes a buffer of no bytes", () => {
  const b = new ProgramBuilder();
  const x = b.param("x", [0, 4]);
  const y = b.call("f", [x]);
  const { problem } = assignBuffers(b.finish("p", [y]));
  expect(problem.buffers.map((buffer) => buffer.bytes)).toEqual([0, 0]);
});

it("numbers persistent buffers first, lays them out in order, and tells kinds by phase", () => {
  const b = new ProgramBuilder();
  const x = b.param("x", [4]);
  const w = b.param("w", [5]);
  const c = b.param("c", [4]);
  const y = b.call("f", [x, w], { scratch: [100] });
  const d = b.call("g", [y, c], { phase: "backward" });
  const u = b.call("g", [d], { phase: "update" });
  const r = b.call("g", [u]);
  const { problem, scratch } = assignBuffers(b.finish("p", [r], { persistent: [w, c] }), 4096);
  expect(problem.buffers.map((buffer) => buffer.kind)).toEqual([
    "persistent",
    "persistent",
    "input",
    "activation",
    "scratch",
    "gradient",
    "update",
    "result",
  ]);
  expect(problem.buffers.map((buffer) => buffer.fixedAt)).toEqual([0, 64, ...new Array(6).fill(undefined)]);
  expect(scratch).toEqual([[4], [], [], []]);
  expect(problem.spaces[0].capacity).toBe(4096);
});
