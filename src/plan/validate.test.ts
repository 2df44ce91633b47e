/** @file The validator is silent on good plans and names the right rule on plans broken in each way. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProgramBuilder, randomProgram, trainingStep } from "../../tests/support/plan-programs.ts";
import type { Value } from "../ir/graph.ts";
import { planProgram } from "./plan.ts";
import { overlapInTime, type Plan } from "./problem.ts";
import type { Program } from "./program.ts";
import type { Rule } from "./rules.ts";
import { validate } from "./validate.ts";

const program = trainingStep(3);
const plan = planProgram(program);

function rules(p: Program, broken: Plan): readonly Rule[] {
  return [...new Set(validate(p, broken).map((v) => v.rule))];
}

function named(p: Plan, name: string): Value {
  return [...p.bufferOf.keys()].filter((v) => v.name === name).at(-1)!;
}

/** The plan with one buffer elsewhere. */
function moved(p: Plan, id: number, offset: number): Plan {
  return { ...p, offsets: p.offsets.map((o, i) => (i === id ? offset : o)) };
}

/** The plan with a value in another buffer. */
function rehomed(p: Plan, value: Value, id: number): Plan {
  return { ...p, bufferOf: new Map(p.bufferOf).set(value, id) };
}

describe("validate finds nothing wrong", () => {
  it("with a good plan", () => {
    expect(validate(program, plan)).toEqual([]);
  });

  it("with the plan of any program", () => {
    fc.assert(
      fc.property(randomProgram, (random) => {
        expect(validate(random, planProgram(random))).toEqual([]);
      }),
      { numRuns: 1000, seed: 21 },
    );
  });
});

describe("validate finds", () => {
  it("a buffer beyond the arena", () => {
    expect(rules(program, { ...plan, height: plan.height - 64 })).toContain("out-of-arena");
    expect(rules(program, moved(plan, 4, -64))).toContain("out-of-arena");
  });

  it("a misaligned buffer", () => {
    const loss = plan.bufferOf.get(named(plan, "loss"))!;
    expect(rules(program, { ...moved(plan, loss, plan.offsets[loss]! + 4), height: plan.height + 64 })).toEqual([
      "misaligned",
    ]);
  });

  it("an overlap, wherever two buffers share a step", () => {
    fc.assert(
      fc.property(randomProgram, fc.nat(), (random, pick) => {
        const good = planProgram(random);
        const full = good.problem.buffers.filter((b) => b.bytes > 0);
        const pairs = full.flatMap((a) =>
          full.filter((b) => a.id < b.id && overlapInTime(a.lifespan, b.lifespan)).map((b) => [a, b] as const),
        );
        fc.pre(pairs.length > 0);
        const [a, b] = pairs[pick % pairs.length]!;
        const found = rules(random, { ...moved(good, b.id, good.offsets[a.id]!), height: good.height + b.bytes });
        expect(found.includes("overlap") || found.includes("scratch-overlap")).toBe(true);
      }),
      { numRuns: 300, seed: 22 },
    );
  });

  it("workspace over an operand, by comparison and by execution", () => {
    const step = plan.scratch.findIndex((ids) => ids.length > 0);
    const operand = plan.bufferOf.get(plan.program.steps[step]!.reads[0]!)!;
    const broken = moved(plan, plan.scratch[step]![0]!, plan.offsets[operand]!);
    expect(rules(program, broken)).toContain("scratch-overlap");
    expect(validate(program, broken).some((v) => v.message.includes("has workspace there"))).toBe(true);
  });

  it("a value read before it is written", () => {
    const steps = [...plan.program.steps];
    [steps[0], steps[1]] = [steps[1]!, steps[0]!];
    expect(rules(program, { ...plan, program: { ...plan.program, steps } })).toContain("read-before-write");
  });

  it("a step that is missing, doubled or strange", () => {
    const steps = plan.program.steps;
    const change = (changed: typeof steps) => rules(program, { ...plan, program: { ...plan.program, steps: changed } });
    expect(change(steps.slice(0, -1))).toContain("schedule");
    expect(change([...steps, steps[0]!])).toContain("schedule");
    expect(rules(program, { ...plan, program: { ...plan.program, results: [] } })).toContain("schedule");
  });

  it("a value without a buffer, and a buffer that is too small", () => {
    const bufferOf = new Map(plan.bufferOf);
    bufferOf.delete(named(plan, "z1"));
    expect(rules(program, { ...plan, bufferOf })).toEqual(["no-storage"]);
    expect(rules(program, { ...plan, scratch: plan.scratch.map(() => []) })).toEqual(["no-storage"]);
    expect(rules(program, { ...plan, resultBuffers: [] })).toEqual(["no-storage"]);
    const buffers = plan.problem.buffers.map((b) => ({ ...b, bytes: Math.min(b.bytes, 2048) }));
    expect(rules(program, { ...plan, problem: { ...plan.problem, buffers } })).toContain("no-storage");
  });

  it("a buffer that ends before its values do", () => {
    const id = plan.bufferOf.get(named(plan, "h1"))!;
    const shorten = (by: number) =>
      plan.problem.buffers.map((b) =>
        b.id === id ? { ...b, lifespan: { ...b.lifespan, end: b.lifespan.end - by } } : b,
      );
    expect(rules(program, { ...plan, problem: { ...plan.problem, buffers: shorten(1) } })).toEqual(["lifespan"]);
    expect(rules(program, { ...plan, problem: { ...plan.problem, buffers: shorten(0) } })).toEqual([]);
  });

  it("a renamed value that is elsewhere", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [16]);
    const y = b.call("f", [x], { name: "y" });
    const name = b.rename(y, { name: "flat" });
    const z = b.call("f", [name], { name: "z" });
    const renaming = b.finish("p", [z]);
    const good = planProgram(renaming);
    expect(rules(renaming, rehomed(good, name, good.bufferOf.get(z)!))).toContain("alias");
  });

  it("an in-place write that the step does not allow, or over what is still needed", () => {
    const b = new ProgramBuilder();
    const x = b.call("f", [], { name: "x", shape: [16] });
    const y = b.call("f", [x], { name: "y" });
    const z = b.call("f", [y], { name: "z", over: [y] });
    const w = b.call("f", [x, z], { name: "w" });
    const strict = b.finish("p", [w]);
    const good = planProgram(strict);
    expect(validate(strict, good)).toEqual([]);
    const needed = validate(strict, rehomed(good, z, good.bufferOf.get(x)!));
    expect(needed.map((v) => v.rule)).toEqual(expect.arrayContaining(["in-place", "execution"]));
    expect(validate(strict, rehomed(good, w, good.bufferOf.get(x)!)).map((v) => v.rule)).toContain("in-place");
  });

  it("an in-place write whose operand is read under another name that may not be written over", () => {
    const b = new ProgramBuilder();
    const x = b.call("f", [], { name: "x", shape: [16] });
    const name = b.rename(x);
    const y = b.call("f", [x, name], { name: "y", over: [x] });
    const strict = b.finish("p", [y]);
    const good = planProgram(strict);
    expect(rules(strict, rehomed(good, y, good.bufferOf.get(x)!))).toContain("in-place");
  });

  it("a persistent parameter that is overwritten without being donated", () => {
    const undonated: Program = { ...program, donated: new Map() };
    const broken: Plan = { ...plan, program: { ...plan.program, donated: new Map() } };
    expect(rules(undonated, broken)).toContain("persistent-overwritten");
    expect(validate(undonated, broken).some((v) => v.message.includes("the next run reads it"))).toBe(true);
  });

  it("a result that is never written, or overwritten before the end", () => {
    const stranger = new ProgramBuilder().param("stranger", [4]);
    const results = [...plan.program.results, stranger];
    expect(rules(program, { ...plan, program: { ...plan.program, results } })).toContain("result-missing");
    const wrong = plan.resultBuffers.map(() => 0);
    expect(rules(program, { ...plan, resultBuffers: wrong })).toContain("result-missing");
  });

  it("a donated parameter that does not end with its replacement", () => {
    const b = new ProgramBuilder();
    const p = b.param("p", [16]);
    const next = b.call("f", [p], { name: "next" });
    const step = b.finish("p", [next], { donated: [[p, 0]], persistent: [p] });
    const good = planProgram(step);
    expect(good.copies).toHaveLength(1);
    expect(rules(step, good)).toEqual([]);
    expect(rules(step, { ...good, copies: [] })).toEqual(["donated-slot"]);
  });

  it("a final copy that reads what an earlier one has overwritten", () => {
    const b = new ProgramBuilder();
    const [p, q, r] = [b.param("p", [16]), b.param("q", [16]), b.param("r", [16])];
    const shift = b.finish("shift", [q, r], {
      donated: [
        [p, 0],
        [q, 1],
      ],
      persistent: [p, q, r],
    });
    const good = planProgram(shift);
    const inOrder = good.copies
      .filter((c) => c.param !== null)
      .map((c) => ({ ...c, from: good.bufferOf.get(c.value)! }));
    expect(rules(shift, { ...good, copies: [...inOrder].reverse() })).toContain("execution");
  });

  it("the two lifetimes of one address mixed up, with nothing but the execution to notice", () => {
    // Lifespans lie consistently: every buffer claims to live at one step of its own only.
    const buffers = plan.problem.buffers.map((b) => ({ ...b, lifespan: { start: b.id, end: b.id + 1 } }));
    const broken = { ...plan, problem: { ...plan.problem, buffers }, offsets: plan.offsets.map(() => 0) };
    expect(rules(program, broken)).toEqual(expect.arrayContaining(["execution", "lifespan"]));
  });
});
