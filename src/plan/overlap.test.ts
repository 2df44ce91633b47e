/** @file Collectives in flight: their places, their lifespans, and what checks and the validator refuse. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProgramBuilder, randomProgram } from "../../tests/support/plan-programs.ts";
import type { CostModel } from "../target/work.ts";
import { NO_WORK } from "../target/work.ts";
import { type NodeCosts, planMs } from "./cost/model.ts";
import { waitExchange } from "./exchange-step.ts";
import { type OverlapTimes, overlapExchanges } from "./overlap.ts";
import { planUnlimited } from "./plan.ts";
import { printPlan } from "./print.ts";
import type { Plan } from "./problem.ts";
import { checkProgram, type PlanStep, type Program } from "./program.ts";
import { validate } from "./validate.ts";

const LAYERS = 4;
const WIDTH = 256;

/** Backward steps that give a gradient each, which is reduced and then updates a weight: the order that takes least memory. */
function dataParallel(): Program {
  const b = new ProgramBuilder();
  const weights = Array.from({ length: LAYERS }, (_, i) => b.param(`w${i}`, [WIDTH]));
  let ct = b.param("x", [WIDTH]);
  const updated = weights.map((w, i) => {
    const own = b.call("gradient", [ct], { name: `g${i}` });
    ct = b.call("back", [ct, w], { name: `c${i}`, over: [ct] });
    const sum = b.call("all_reduce", [own], { name: `r${i}`, over: [own] });
    return b.call("update", [w, sum], { name: `n${i}`, over: [w] });
  });
  const donated = weights.map((w, i) => [w, i] as const);
  return b.finish("train", updated, { donated, persistent: weights });
}

/** Every step takes a millisecond, an exchange `ms` on the network. */
const timesOf = (ms: number): OverlapTimes => ({ stepMs: () => 1, networkMs: () => ms });

const overlapped = (program: Program, ms: number, limitBytes = Number.POSITIVE_INFINITY): Program =>
  overlapExchanges(program, { times: timesOf(ms), limitBytes, apart: new Set() }) as Program;

const texts = ({ steps }: Program): readonly string[] =>
  steps.map(({ node, exchange, writes }) => {
    const what = exchange?.flight ? `${exchange.kind} ${exchange.flight.writes[0]?.name}` : node.op.name;
    return exchange || !writes[0]?.name ? what : writes[0].name;
  });

/** The place of a step in the order. */
const placeOf = (program: Program, text: string): number => texts(program).indexOf(text);

describe("collectives in flight", () => {
  it("start where they were, and are waited for when they are done or needed", () => {
    const program = overlapped(dataParallel(), 2.5);
    checkProgram(program);
    expect(texts(program)).toMatchInlineSnapshot(`
      [
        "g0",
        "c0",
        "start r0",
        "g1",
        "test",
        "c1",
        "test",
        "start r1",
        "g2",
        "test",
        "wait r0",
        "n0",
        "test",
        "c2",
        "test",
        "wait r1",
        "n1",
        "start r2",
        "g3",
        "test",
        "c3",
        "test",
        "start r3",
        "wait r2",
        "n2",
        "test",
        "wait r3",
        "n3",
      ]
    `);
  });

  /** Layers whose parameters are gathered in front of each. */
  function gathering(): Program {
    const b = new ProgramBuilder();
    let x = b.param("x", [WIDTH]);
    for (let i = 0; i < LAYERS; i++) {
      const whole = b.call("all_reduce", [b.param(`p${i}`, [WIDTH])], { name: `w${i}` });
      const h = b.call("product", [x, whole], { name: `h${i}` });
      x = b.call("layer", [h], { name: `x${i}` });
    }
    return b.finish("forward", [x]);
  }

  it("start before their place by as much as they take, where what they read is there", () => {
    const options = { times: timesOf(2), limitBytes: Number.POSITIVE_INFINITY, apart: new Set<never>() };
    const early = overlapExchanges(gathering(), { ...options, early: true }) as Program;
    checkProgram(early);
    const started = (i: number): number => placeOf(early, `start w${i}`);
    // while the two steps of the layer before run, and no sooner
    for (let i = 1; i < LAYERS; i++) {
      expect(started(i)).toBeLessThan(placeOf(early, `h${i - 1}`));
      expect(placeOf(early, `wait w${i}`)).toBeGreaterThan(placeOf(early, `x${i - 1}`));
      if (i > 1) expect(started(i)).toBeGreaterThan(placeOf(early, `h${i - 2}`));
    }
  });

  it("are not waited for before a step needs them, though they may be done", () => {
    const b = new ProgramBuilder();
    const x = b.param("x", [WIDTH]);
    const sent = b.call("all_reduce", [x], { name: "sent" });
    let y = b.call("first", [x], { name: "y0" });
    for (let i = 1; i < 5; i++) y = b.call("next", [y], { name: `y${i}` });
    const end = b.call("last", [y, sent], { name: "end" });
    const program = overlapped(b.finish("late", [end]), 1.5);
    expect(texts(program).filter((text) => text !== "test")).toEqual(
      ["start sent", "y0", "y1", "y2", "y3", "y4", "wait sent", "end"], // biome-ignore format: one line
    );
  });

  it("end at once where nothing else is left, or nothing takes time on the network", () => {
    const program = overlapped(dataParallel(), 1e3);
    // nothing is computed twice or lost
    expect(
      texts(program)
        .filter((text) => /^[gcn]/.test(text))
        .sort(),
    ).toEqual(
      texts(dataParallel())
        .filter((text) => /^[gcn]/.test(text))
        .sort(),
    );
    expect(overlapExchanges(dataParallel(), { times: timesOf(0), limitBytes: 1e9, apart: new Set() })).toBeNull();
  });

  it("reduce a gradient in its own storage, which is live until the wait", () => {
    const plan = planUnlimited(overlapped(dataParallel(), 2.5), { keepOrder: true });
    expect(validate(plan.program, plan)).toEqual([]);
    for (const { exchange } of plan.program.steps) {
      if (exchange?.kind !== "start") continue;
      const [read, written] = [exchange.flight.reads[0]!, exchange.flight.writes[0]!];
      expect(plan.inPlace.get(written)).toBe(read);
      const { lifespan } = plan.problem.buffers[plan.bufferOf.get(written)!]!;
      const wait = plan.program.steps.findIndex(
        (s) => s.exchange?.kind === "wait" && s.exchange.flight === exchange.flight,
      );
      expect(lifespan.end).toBeGreaterThan(wait);
    }
    expect(printPlan(plan)).toMatch(/r0: +f32\[256\] += all_reduce\(g0\) +@ b\d+\[\d+:\d+\] over g0 queue 1/);
    expect(printPlan(plan)).toMatch(/\n {2}wait\(r0\)/);
  });

  it("hold the limit of bytes: less is put off where there is less room", () => {
    const tight = planUnlimited(dataParallel()).height;
    const far = planUnlimited(overlapped(dataParallel(), 4), { keepOrder: true }).height;
    const near = planUnlimited(overlapped(dataParallel(), 4, tight), { keepOrder: true });
    expect(far).toBeGreaterThan(tight);
    expect(near.height).toBeLessThanOrEqual(tight);
    expect(validate(near.program, near)).toEqual([]);
  });

  it("take no longer by prediction than one after the other, and overlap what they can", () => {
    const rates: CostModel = {
      ...{ name: "test", productRate: 1, arithmeticRate: 1000, byteRate: 1e30, callSeconds: 0 },
      ...{ networkRate: 1000, messageSeconds: 0 },
    };
    const costs: NodeCosts = {
      rates,
      key: "test",
      workOf: ({ op }) =>
        op.name === "all_reduce"
          ? { ...NO_WORK, sentBytes: 2.5, messages: 1 }
          : { ...NO_WORK, arithmetic: op.name === "test" ? 0 : 1 },
    };
    const given = planUnlimited(dataParallel(), { keepOrder: true });
    const flying = planUnlimited(overlapped(dataParallel(), 2.5), { keepOrder: true });
    expect(planMs(given, costs)).toBeCloseTo(LAYERS * (3 + 2.5), 6);
    // the last exchange starts at 10 behind one that takes until 10.5, and is done at 13; an update is left
    expect(planMs(flying, costs)).toBeCloseTo(LAYERS * 3 + 2, 6);
  });

  it("are valid plans for random programs", () => {
    fc.assert(
      fc.property(
        randomProgram,
        fc.constantFrom(0.5, 3, 50),
        fc.constantFrom(0, 500, 1e9),
        fc.boolean(),
        (...[program, ms, limitBytes, early]) => {
          const some = withExchanges(program);
          const flying = overlapExchanges(some, { times: timesOf(ms), limitBytes, apart: new Set(), early });
          if (!flying) return;
          checkProgram(flying);
          const kept = [...flying.steps].filter((step) => !step.exchange).length;
          expect(kept + flying.steps.filter(({ exchange }) => exchange?.kind === "start").length).toBe(
            some.steps.length,
          );
          const plan = planUnlimited(flying, { keepOrder: true });
          const isKept = flying.steps.every(
            (step) =>
              step.exchange?.kind !== "start" ||
              step.inPlace.length === 0 ||
              step.reads.every((v) => isOver(plan, step, v)),
          );
          // otherwise the operand has to stay, which the caller asks for (compiler/overlap.ts)
          if (isKept) expect(validate(flying, plan)).toEqual([]);
          else expect(validate(flying, plan)).not.toEqual([]);
        },
      ),
      { seed: 7, numRuns: 300 },
    );
  });
});

const isOver = (plan: Plan, { writes }: PlanStep, read: PlanStep["reads"][number]): boolean =>
  writes.some((value) => plan.inPlace.get(value) === read);

/** Every third step is an exchange, if it could be one. */
function withExchanges(program: Program): Program {
  const { steps } = dataParallel();
  const node = steps.find(({ node: { op } }) => op.name === "all_reduce")!.node;
  const made = program.steps.map((step, i): PlanStep => {
    if (i % 3 !== 0 || step.alias || step.scratch.length > 0 || step.reads.length === 0) return step;
    return { ...step, node: { ...step.node, op: node.op } };
  });
  return { ...program, steps: made };
}

describe("a plan is refused", () => {
  const program = overlapped(dataParallel(), 2.5);
  const plan = planUnlimited(program, { keepOrder: true });

  /** The plan with other steps, at the same addresses. */
  function mutated(change: (steps: PlanStep[]) => void): readonly string[] {
    const steps = [...plan.program.steps];
    change(steps);
    const scratch = steps.map((step) => plan.scratch[plan.program.steps.indexOf(step)] ?? []);
    const other: Plan = { ...plan, program: { ...plan.program, steps }, scratch };
    return validate(other.program, other).map(({ rule }) => rule);
  }
  const at = (text: string): number => placeOf(program, text);

  it("whose wait is missing, comes twice, or comes before its start", () => {
    expect(mutated((steps) => steps.splice(at("wait r0"), 1))).toContain("exchange");
    expect(mutated((steps) => steps.push(steps[at("wait r0")]!))).toContain("exchange");
    expect(
      mutated((steps) => {
        const [wait] = steps.splice(at("wait r0"), 1);
        steps.splice(at("start r0"), 0, wait!);
      }),
    ).toContain("exchange");
  });

  it("that reads a result before its wait", () => {
    const rules = mutated((steps) => {
      const [update] = steps.splice(at("n0"), 1);
      steps.splice(at("wait r0"), 0, update!);
    });
    expect(rules).toContain("read-before-wait");
  });

  it("that writes on what is in flight", () => {
    // the cotangent moves into the storage of the gradient that is being reduced
    const bufferOf = new Map(plan.bufferOf);
    const next = program.steps[at("start r0") + 1]!;
    expect(next.exchange).toBeUndefined();
    bufferOf.set(next.writes[0]!, bufferOf.get(program.steps[at("start r0")]!.writes[0]!)!);
    const rules = validate(program, { ...plan, bufferOf }).map(({ rule }) => rule);
    expect(rules).toContain("in-flight");
  });

  it("whose wait keeps less alive than the flight needs", () => {
    // not written over its operand, which is free after the start
    const steps = program.steps.map((step) => {
      if (step.exchange?.kind === "start") return { ...step, inPlace: [] };
      return step.exchange?.kind === "wait" ? waitExchange(step.exchange.flight, true, "forward") : step;
    });
    expect(() => planUnlimited({ ...program, steps }, { keepOrder: true })).toThrow(/a wait reads what is in flight/);
    const longer = program.steps.map((step) => (step.exchange?.kind === "start" ? { ...step, inPlace: [] } : step));
    expect(() => planUnlimited({ ...program, steps: longer }, { keepOrder: true })).toThrow(/a wait reads/);
  });

  it("whose test has operands, or whose start is another's", () => {
    const touched = program.steps.map((step) =>
      step.exchange?.kind === "test" ? { ...step, reads: [program.params[0]!] } : step,
    );
    if (program.steps.some((step) => step.exchange?.kind === "test"))
      expect(() => checkProgram({ ...program, steps: touched })).toThrow(/a test has no operands/);
    const starts = program.steps.filter((step) => step.exchange?.kind === "start");
    const swapped = program.steps.map((step) =>
      step === starts[0] ? { ...step, exchange: starts[1]!.exchange! } : step,
    );
    expect(() => checkProgram({ ...program, steps: swapped })).toThrow(/starts another collective/);
  });
});
