/** @file The validator names the right rule for plans with memory spaces and copies that are broken in each way. */
import { describe, expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import { faultsOfRun } from "../../tests/support/run-plan.ts";
import type { Value } from "../ir/graph.ts";
import { checkCopies } from "./check-copies.ts";
import { moveValues } from "./move.ts";
import { planProgram } from "./plan.ts";
import type { Plan, ProgramBuffer } from "./problem.ts";
import { checkProgram, type PlanStep, type Program } from "./program.ts";
import type { Rule } from "./rules.ts";
import { type MemorySpace, memorySpace, type Spaces } from "./space.ts";
import { validate } from "./validate.ts";

const device = memorySpace(64, { name: "device", hostVisible: false });
const host = memorySpace(256, { name: "host" });

/** Two values that wait while others are computed. */
function chain(): Program {
  const b = new ProgramBuilder();
  let last = b.param("x", [64]);
  const saved: Value[] = [];
  for (let i = 0; i < 6; i++) {
    last = b.call("f", [last], { name: `h${i}`, scratch: i === 5 ? [256] : [] });
    if (i < 2) saved.push(last);
  }
  const back = b.call("g", [last, saved[1]!], { name: "d1", phase: "backward" });
  return b.finish("chain", [b.call("g", [back, saved[0]!], { name: "d0", phase: "backward" })]);
}

const program = (() => {
  const plain = chain();
  const saved = plain.steps.slice(0, 2).map(({ writes }) => writes[0]!);
  return moveValues(plain, saved, { device, host });
})();
const plan = planProgram(program);

function rules(broken: Plan, given: Program = broken.program): readonly Rule[] {
  return [...new Set(validate(given, broken).map((v) => v.rule))];
}

const named = (name: string, nth = 0): Value => [...plan.bufferOf.keys()].filter((v) => v.name === name)[nth]!;
const bufferOf = (value: Value): number => plan.bufferOf.get(value)!;
const stepThat = (kind: "start" | "wait", to: Value): number =>
  program.steps.findIndex(({ copy }) => copy?.kind === kind && copy.to === to);

function withSteps(steps: readonly PlanStep[]): Plan {
  return { ...plan, program: { ...program, steps } };
}

function moved(id: number, offset: number, room: number = 1 << 20): Plan {
  const offsets = plan.offsets.map((o, i) => (i === id ? offset : o));
  const others = plan.others.map((layout) => ({ ...layout, height: layout.height + room }));
  return { ...plan, offsets, others, height: plan.height + room };
}

function withBuffer(id: number, change: Partial<ProgramBuffer>): Plan {
  const buffers = plan.problem.buffers.map((b) => (b.id === id ? { ...b, ...change } : b));
  return { ...plan, problem: { ...plan.problem, buffers } };
}

function withSpace(index: number, change: Partial<MemorySpace>): Plan {
  const spaces = program.spaces.map((s, i) => (i === index ? { ...s, ...change } : s)) as unknown as Spaces;
  return { ...plan, program: { ...program, spaces }, problem: { ...plan.problem, spaces } };
}

/** The steps with one elsewhere. */
function reordered(from: number, to: number): readonly PlanStep[] {
  const steps = [...program.steps];
  steps.splice(to, 0, ...steps.splice(from, 1));
  return steps;
}

const h0 = named("h0");
const h0Host = named("h0_host");
const h0Back = named("h0", 1);

describe("validate", () => {
  it("finds nothing wrong with the plan, which runs", () => {
    expect(validate(program, plan)).toEqual([]);
    expect(faultsOfRun(plan, 3)).toEqual([]);
  });

  it("finds a read before the wait", () => {
    const reader = program.steps.findIndex(({ reads, copy }) => !copy && reads.includes(h0Back));
    const wait = stepThat("wait", h0Back);
    expect(reader).toBeGreaterThan(wait);
    const broken = withSteps(reordered(wait, reader));
    expect(rules(broken, program)).toContain("read-before-wait");
    expect(faultsOfRun(broken, "wait").length).toBeGreaterThan(0);
  });

  it("finds a source that is overwritten in flight", () => {
    const [start, wait] = [stepThat("start", h0Host), stepThat("wait", h0Host)];
    const between = program.steps.slice(start + 1, wait).find(({ copy }) => !copy)!;
    const over = { ...plan, bufferOf: new Map(plan.bufferOf).set(between.writes[0]!, bufferOf(h0)) };
    expect(rules(over)).toContain("in-flight");
    expect(faultsOfRun(over, "wait").length).toBeGreaterThan(0);
  });

  it("finds a destination that is overwritten in flight, by a kernel and by another copy", () => {
    const [start, wait] = [stepThat("start", h0Back), stepThat("wait", h0Back)];
    const between = program.steps.slice(start + 1, wait).find(({ copy }) => !copy)!;
    expect(rules(moved(bufferOf(between.writes[0]!), plan.offsets[bufferOf(h0Back)]!))).toContain("in-flight");
    // workspace leaves nothing behind that could be told from what is not copied yet
    const worker = program.steps.findIndex(({ scratch }) => scratch.length > 0);
    expect([start < worker, worker < wait]).toEqual([true, true]);
    const workspace = moved(plan.scratch[worker]![0]!, plan.offsets[bufferOf(h0Back)]!);
    const found = validate(program, workspace).find(({ rule }) => rule === "in-flight");
    expect(found?.message).toMatch(new RegExp(`^step ${worker} writes on the copy of h0_host#\\d+ to h0#\\d+`));
    const other = named("h1_host");
    expect(stepThat("start", other)).toBeLessThan(stepThat("wait", h0Host));
    expect(rules(moved(bufferOf(other), plan.offsets[bufferOf(h0Host)]!))).toEqual(
      expect.arrayContaining(["overlap", "in-flight"]),
    );
  });

  it("finds values in the wrong space and readers that cannot reach them", () => {
    expect(rules(withBuffer(bufferOf(named("h3")), { space: 1 }))).toContain("wrong-space");
    const reading = program.steps.map((step) =>
      step.copy ? step : { ...step, reads: step.reads.map((v) => (v === h0Back ? h0Host : v)) },
    );
    expect(rules(withSteps(reading))).toContain("wrong-space");
  });

  it("finds what is misaligned, outside, over capacity or too large in its own space", () => {
    const id = bufferOf(h0Host);
    expect(rules(moved(id, plan.others[0]!.height + 64, 1024))).toEqual(["misaligned"]);
    expect(rules(moved(id, plan.others[0]!.height, 0))).toEqual(["out-of-arena"]);
    expect(rules(withSpace(1, { capacity: 256 }))).toEqual(["over-capacity"]);
    expect(rules(withSpace(0, { capacity: plan.height - 64 }))).toEqual(["over-capacity"]);
    expect(rules(withSpace(0, { capacity: plan.height }))).toEqual([]);
    expect(rules(withSpace(1, { largestAllocation: 255 }))).toEqual(["largest-allocation"]);
    expect(rules(withSpace(1, { alignment: 512 }))).toEqual(["misaligned"]);
  });

  it("finds buffers that end before the copy is done", () => {
    for (const value of [h0, h0Host]) {
      const id = bufferOf(value);
      const { start } = plan.problem.buffers[id]!.lifespan;
      const end = stepThat("wait", h0Host);
      expect(rules(withBuffer(id, { lifespan: { start, end } }))).toContain("lifespan");
    }
  });

  it("finds copies that are not whole", () => {
    const wait = stepThat("wait", h0Back);
    expect(rules(withSteps(program.steps.filter((_, i) => i !== wait)))).toContain("copy");
    expect(rules(withSteps(reordered(stepThat("wait", h0Host), stepThat("start", h0Host))))).toContain("copy");
    const away = bufferOf(h0Host);
    expect(rules(withBuffer(away, { space: 0 }))).toEqual(expect.arrayContaining(["copy", "wrong-space"]));
  });

  it("compares buffers of one space alone: equal offsets in two spaces are no overlap", () => {
    expect(plan.offsets[bufferOf(h0Host)]).toBe(0);
    expect(plan.problem.buffers.some((b) => b.space === 0 && plan.offsets[b.id] === 0)).toBe(true);
    expect(rules(moved(bufferOf(named("h1_host")), 0))).toContain("overlap");
  });
});

describe("checkProgram refuses", () => {
  const refused = (change: Partial<Program>) => () => checkProgram({ ...program, ...change });
  const start = stepThat("start", h0Host);
  const wait = stepThat("wait", h0Host);

  it("copies without a wait, waits without a start, reads in between", () => {
    expect(refused({ steps: program.steps.filter((_, i) => i !== stepThat("wait", h0Back)) })).toThrow(
      /reads h0, whose copy is not waited for/,
    );
    expect(refused({ steps: reordered(wait, start) })).toThrow(/reads h0_host#\d+ before it is written/);
    const twice = [...program.steps];
    twice.splice(wait, 0, program.steps[wait]!);
    expect(refused({ steps: twice })).toThrow(/waits for a copy that was not started/);
    expect(() => checkCopies({ ...program, steps: program.steps.slice(0, start + 1) })).toThrow(/never waited for/);
  });

  it("copies within a space, kernels in another or on another queue", () => {
    expect(refused({ spaceOf: new Map() })).toThrow(/stays in its memory space/);
    expect(refused({ spaceOf: new Map([...program.spaceOf!, [named("h3"), 1]]) })).toThrow(/not in the first memory/);
    expect(refused({ spaceOf: new Map([...program.spaceOf!, [h0Host, 2]]) })).toThrow(/no memory space 2/);
    const queued = program.steps.map((step) => (step.copy ? step : { ...step, queue: 1 }));
    expect(refused({ steps: queued })).toThrow(/only copies and collectives run on queue 1/);
  });
});
