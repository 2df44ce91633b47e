/** @file Final copies happen in an order that loses nothing; the validator executes them. */
import { expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import { planProgram } from "./plan.ts";
import { validate } from "./validate.ts";

it("orders copies so that none overwrites what another one reads", () => {
  const b = new ProgramBuilder();
  const [p, q, r] = [b.param("p", [4]), b.param("q", [4]), b.param("r", [4])];
  // p ← q, q ← r: q must be read first
  const program = b.finish("shift", [r, q, p], {
    donated: [
      [p, 1],
      [q, 0],
    ],
    persistent: [p, q, r],
  });
  const plan = planProgram(program);
  expect(plan.copies.filter((c) => c.param).map((c) => [c.value, c.param])).toEqual([
    [q, p],
    [r, q],
  ]);
  expect(validate(program, plan)).toEqual([]);
});

it("swaps two parameters through storage put aside, and finds the results where they were copied to", () => {
  const b = new ProgramBuilder();
  const [p, q] = [b.param("p", [4]), b.param("q", [4])];
  const program = b.finish("swap", [q, p], {
    donated: [
      [p, 0],
      [q, 1],
    ],
    persistent: [p, q],
  });
  const plan = planProgram(program);
  expect(plan.copies.map((c) => c.param)).toEqual([null, p, q]);
  expect(plan.resultBuffers).toEqual([plan.bufferOf.get(p), plan.bufferOf.get(q)]);
  expect(validate(program, plan)).toEqual([]);
});

it("breaks a cycle of any length with one piece of storage", () => {
  const b = new ProgramBuilder();
  const [p, q, s] = [b.param("p", [4]), b.param("q", [4]), b.param("s", [4])];
  const [x, y, z] = [b.rename(p), b.rename(q), b.rename(s)];
  const program = b.finish("rotate", [y, z, x], {
    donated: [
      [p, 0],
      [q, 1],
      [s, 2],
    ],
    persistent: [p, q, s],
  });
  const plan = planProgram(program);
  expect(plan.copies.map((c) => c.param !== null)).toEqual([false, true, true, true]);
  expect(validate(program, plan)).toEqual([]);
});

it("puts the old state aside where it is a result besides being replaced", () => {
  const b = new ProgramBuilder();
  const p = b.param("p", [4]);
  const next = b.call("f", [p], { over: [p] });
  const program = b.finish("step", [next, p], { donated: [[p, 0]], persistent: [p] });
  const plan = planProgram(program);
  expect(plan.copies.map((c) => [c.value, c.param])).toEqual([
    [p, null],
    [next, p],
  ]);
  expect(plan.resultBuffers[1]).toBe(plan.copies[0]!.to);
  expect(validate(program, plan)).toEqual([]);
});
