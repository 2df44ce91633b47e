/**
 * @file Collectives in flight, in loops and outside: results have the bits of a program that waits for every one, whether the network reads
 * what is sent at once or at the last moment; plans are within their budgets; and the validator refuses bodies that touch what is in flight.
 */
import { describe, expect, it } from "vitest";
import { cond, random, scan, type Tensor, whileLoop, zeros } from "../src/api/index.ts";
import { traceProgram } from "../src/api/traced-program.ts";
import { at } from "../src/base/invariant.ts";
import { NATIVE_RATES, nativeDescription } from "../src/codegen/native/description.ts";
import { emitNativeProgram } from "../src/codegen/native/program.ts";
import type { PlacedProgram } from "../src/codegen/placed.ts";
import { assemble } from "../src/compiler/assemble.ts";
import { NO_HOST } from "../src/compiler/host.ts";
import { overlappedPlan } from "../src/compiler/overlap.ts";
import { bytesOf } from "../src/kernel/dtype.ts";
import { sgd } from "../src/optim/index.ts";
import {
  allGather,
  allReduce,
  dataParallel,
  deviceIndex,
  mesh,
  permute,
  pipeline,
  shard,
  vary,
} from "../src/parallel/index.ts";
import { SCHEDULES } from "../src/parallel/pipeline/schedule.ts";
import { planJson } from "../src/plan/json.ts";
import { printPlan } from "../src/plan/print.ts";
import type { Plan } from "../src/plan/problem.ts";
import type { PlanStep } from "../src/plan/program.ts";
import { readPlanJson } from "../src/plan/read-json.ts";
import { reportText } from "../src/plan/report.ts";
import { validate } from "../src/plan/validate.ts";
import { type AnyFunction, flattenArguments, traceFunction } from "../src/trace/function.ts";
import { storageOf } from "../src/trace/tensor.ts";
import { flatten, unflatten } from "../src/trace/tree.ts";
import { FlightMachine } from "./support/flight-machine.ts";

const OPTIONS = { lanes: 4, fma: false, threads: 2 } as const;
/** Even small messages are worth a start and a wait. */
const COSTS = { ...NATIVE_RATES, networkRate: 1e7 };

interface Made {
  readonly placed: PlacedProgram;
  readonly params: readonly Uint8Array[];
}

/** The program of one device for native code, with its arguments. */
function made(fn: AnyFunction, args: readonly unknown[], overlaps: boolean, budgetBytes?: number): Made {
  const { graph, traced } = traceProgram(fn, flattenArguments(fn, args), {});
  const host = overlaps ? { ...NO_HOST, overlappedPlan } : NO_HOST;
  const request = { memory: { budgetBytes }, costs: COSTS };
  const placed = assemble({ graph }, nativeDescription(OPTIONS), request, host);
  const leaves = [...args.flatMap((arg) => flatten(arg, "argument").leaves), ...traced.captures.map((c) => c.tensor)];
  const params = leaves.map((leaf) => {
    const data = storageOf(leaf).read() as Float32Array;
    return new Uint8Array(data.buffer, data.byteOffset, leaf.elements * bytesOf(leaf.dtype)).slice();
  });
  return { placed, params };
}

/** Starts, by the depth of the loops and branches that they are in. */
function startsIn({ program }: Plan, depth = 0): readonly number[] {
  return program.steps.flatMap(({ exchange, bodies = [] }) => [
    ...(exchange?.kind === "start" ? [depth] : []),
    ...bodies.flatMap((body) => startsIn(body, depth + 1)),
  ]);
}

/** Fails unless both plans have the same results, and gives the number of collectives that were in flight. */
function compared(fn: AnyFunction, args: readonly unknown[], devices: number): number {
  const [blocking, flying] = [made(fn, args, false), made(fn, args, true)];
  expect(startsIn(blocking.placed.plan)).toEqual([]);
  expect(validate(flying.placed.plan.program, flying.placed.plan)).toEqual([]);
  let flights = 0;
  for (let index = 0; index < devices; index++) {
    const wanted = new FlightMachine(blocking.placed, index, "at start").run(blocking.params);
    for (const reading of ["at start", "at wait"] as const) {
      const machine = new FlightMachine(flying.placed, index, reading);
      expect(machine.run(flying.params)).toEqual(wanted);
      ({ flights } = machine);
    }
  }
  return flights;
}

const MESH = mesh({ data: 2 });
const draw = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), shape);
const sharded = (fn: (...xs: Tensor[]) => Tensor): AnyFunction =>
  shard(fn as never, { mesh: MESH, in: ["data", "data"], out: ["data"] }) as unknown as AnyFunction;

/** A loop whose rows are exchanged while others are multiplied, with a loop in it that runs as often as the device's number says. */
const looped = sharded((x, w) => {
  const times = deviceIndex({ over: "data" });
  const body = (h: Tensor, row: Tensor): readonly [Tensor, Tensor] => {
    const sent = permute(h.mul(0.5), { over: "data", shift: 1 });
    const all = allGather(row, { over: "data", axis: 0 }).sum(0).mul(0.25);
    const powers = whileLoop(
      ([i]: [Tensor, Tensor]) => i.less(times.add(1)),
      ([i, y]: [Tensor, Tensor]): [Tensor, Tensor] => [i.add(1), y.matmul(w).tanh()],
      [times.mul(0), h] as [Tensor, Tensor],
    )[1];
    // written over what it adds up
    const total = allReduce(h.tanh(), { over: "data" });
    return [powers.add(sent).add(total), powers.matmul(w).add(all).add(sent)];
  };
  const [end, rows] = scan(body, x.slice([0]), x);
  return rows
    .sum(0)
    .add(end)
    .add(allReduce(x.sum(0), { over: "data" }));
});
const LOOPED = [draw(1, [3, 16, 16]), draw(2, [16, 16])];

function pipelined(schedule: (typeof SCHEDULES)[number]) {
  const [width, stages, microbatches] = [8, 2, 4];
  const chunks = schedule === "interleaved" ? 2 : 1;
  const model = {
    first: (_: Tensor, x: Tensor) => x.mul(0.5),
    stage: (w: Tensor, x: Tensor) => x.add(x.matmul(w).tanh()),
    last: (out: Tensor, y: Tensor) => y.matmul(out).square().mean(),
  };
  const loss = pipeline(model, { over: "pipeline", microbatches, schedule, ...(chunks > 1 ? { chunks } : {}) });
  const options = {
    mesh: mesh({ data: 1, pipeline: stages }),
    over: "data",
    params: { shared: [], stages: "pipeline" },
  };
  const train = dataParallel(loss, sgd({ lr: 0.1 }), options);
  const own = Array.from({ length: chunks }, (_, c) => draw(3 + c, [width, width]));
  const params = { shared: draw(9, [width, 2]), stages: own };
  const { graph, resultTree } = traceFunction(train.init as never, [params]);
  const leaves = flatten(params, "params").leaves;
  // sgd keeps nothing but parameters and the number of the step
  const state = unflatten(
    resultTree,
    graph.results.map(
      ({ type }) => leaves.find((x) => x.shape.join() === type.shape.join()) ?? zeros(type.shape, type.dtype),
    ),
  );
  return { step: train.step as unknown as AnyFunction, args: [state, draw(5, [4 * microbatches, width])] };
}

describe("collectives in flight in a loop", () => {
  it("have the bits of a loop that waits for each, whenever the network reads", () => {
    // the permutation, the gather and the sum of three rows, and the sum outside
    expect(compared(looped, LOOPED, 2)).toBe(10);
  });

  it.each(SCHEDULES)("of a %s pipeline have, too", (schedule) => {
    const { step, args } = pipelined(schedule);
    expect(compared(step, args, 2)).toBeGreaterThan(8);
  });

  it("send results while a slot's backward half runs, and cotangents while the next forward half does", () => {
    const { step, args } = pipelined("1f1b");
    const { plan } = made(step, args, true).placed;
    const body = at(
      plan.program.steps.flatMap(({ bodies = [] }) => bodies),
      0,
    );
    const names = body.program.steps.flatMap(({ node, exchange, bodies }) => {
      if (exchange?.flight) return [`${exchange.kind} ${exchange.flight.node.attrs.pairs}`];
      return bodies && node.op.name === "while" ? [""] : [];
    });
    const sent = names.filter((name) => name !== "");
    // each is waited for after loops of other work
    for (const start of sent.filter((name) => name.startsWith("start")).slice(0, 3)) {
      const [from, to] = [names.indexOf(start), names.indexOf(start.replace("start", "wait"))];
      expect(names.slice(from, to), start).toContain("");
    }
    expect(sent).toHaveLength(8);
  });

  it("are so in the branch that all devices take, and in a loop in a loop", () => {
    const branching = sharded((x, w) => {
      const rows = allReduce(x.sum(0), { over: "data" });
      const within = (h: Tensor): readonly [Tensor, Tensor] => {
        const sent = permute(h, { over: "data", shift: 1 });
        return [h.matmul(w).tanh().add(sent), h];
      };
      const long = (h: Tensor): Tensor => {
        const sent = permute(h, { over: "data", shift: 1 });
        return h.matmul(w).tanh().matmul(w).add(sent);
      };
      const body = (h: Tensor): readonly [Tensor, Tensor] => [scan(within, h, null, { length: 2 })[0] as Tensor, h];
      const chosen = cond(rows.sum().less(1e9), long, (h: Tensor) => h, vary(rows, { over: "data" }));
      return (scan(body, x.slice([0]), null, { length: 3 })[0] as Tensor).add(chosen);
    });
    const { plan } = made(branching, LOOPED, true).placed;
    expect([...startsIn(plan)].sort()).toEqual([0, 1, 2]);
    // one outside, six of the inner loop, one of the branch
    expect(compared(branching, LOOPED, 1)).toBe(8);
  });

  it("are other slots of the library than what is in flight around the loop", () => {
    const around = sharded((x, w) => {
      const sum = allReduce(x.sum(0), { over: "data" });
      const body = (h: Tensor): readonly [Tensor, Tensor] => {
        const sent = permute(h, { over: "data", shift: 1 });
        return [h.matmul(w).tanh().add(sent), h];
      };
      const [end] = scan(body, x.slice([0]), null, { length: 2 });
      return end.add(sum);
    });
    const { placed } = made(around, LOOPED, true);
    expect(startsIn(placed.plan)).toEqual([0, 1]);
    const { text } = emitNativeProgram(placed.kernels, placed.copies, OPTIONS);
    const slots = [...text.matchAll(/mpi->start\(&tide_exchange_(\d), .*, (-?\d)\);/g)].map(([, n, slot]) => [n, slot]);
    expect(slots).toEqual([["0", "0"], ["1", "1"]]); // biome-ignore format: one line
    expect(text).toMatch(/for \(;;\)[\s\S]*mpi->wait\(1\)[\s\S]*mpi->wait\(0\)/);
    expect(compared(around, LOOPED, 1)).toBe(3);
  });

  it("make progress in loops that run meanwhile, whose bodies are planned without tests", () => {
    const long = (steps: number): AnyFunction =>
      sharded((x, w) => {
        const sum = allReduce(x.sum(0), { over: "data" });
        const [end] = scan((h: Tensor) => [h.matmul(w).tanh(), []] as const, x.slice([0]), null, { length: steps });
        return end.add(sum);
      });
    const big = [draw(1, [3, 128, 128]), draw(2, [128, 128])];
    const { kernels, copies, plan } = made(long(50), big, true).placed;
    expect(
      plan.program.steps
        .flatMap(({ bodies = [] }) => bodies)
        .some(({ program }) => program.steps.some((s) => s.exchange)),
    ).toBe(false);
    const { text } = emitNativeProgram(kernels, copies, { ...OPTIONS, threads: 1 });
    const loop = text.slice(text.indexOf("for (;;)", text.indexOf("mpi->start(")), text.indexOf("mpi->wait(0)"));
    expect(loop).toContain("mpi->test();");
  });

  it("keep to the budget", () => {
    const { height } = made(looped, LOOPED, false).placed.plan;
    for (const budgetBytes of [height, height + 1024, height + 2048, 4 * height]) {
      const { plan } = made(looped, LOOPED, true, budgetBytes).placed;
      expect(plan.height).toBeLessThanOrEqual(budgetBytes);
      expect(validate(plan.program, plan)).toEqual([]);
    }
    expect(startsIn(made(looped, LOOPED, true, 4 * height).placed.plan).filter((depth) => depth > 0)).toHaveLength(3);
  });

  it("are in the plan's text and file", () => {
    const { plan } = made(looped, LOOPED, true).placed;
    expect(printPlan(plan)).toMatch(/ {4}\w[^\n]* = permute\([^\n]* queue 1\n[\s\S]*? {4}wait\(/);
    expect(reportText(plan)).toMatch(
      /\n {2}exchanges in loops and branches: 3 collectives of [\d,]+ bytes, 3 in flight beside/,
    );
    const text = JSON.stringify(planJson(plan));
    expect(readPlanJson(text)).toEqual(JSON.parse(text));
    const body = planJson(plan)
      .steps.flatMap(({ bodies = [] }) => bodies)
      .find((one) => one.steps.some((s) => s.exchange));
    expect(
      body?.steps.filter(({ exchange }) => exchange?.kind === "start").map(({ exchange }) => exchange?.over),
    ).toEqual(["data", "data", "data"]);
  });
});

describe("the plan of a loop is refused", () => {
  const { plan } = made(looped, LOOPED, true).placed;
  const loop = plan.program.steps.findIndex(({ bodies }) => bodies !== undefined);
  const body = at(at(plan.program.steps, loop).bodies ?? [], 0);

  /** The rules that the plan breaks with another body; each message says in which body. */
  function rulesWith(other: Plan): readonly string[] {
    const steps = plan.program.steps.map((step, i) => (i === loop ? { ...step, bodies: [other] } : step));
    const program = { ...plan.program, steps };
    return validate(program, { ...plan, program }).map(({ rule, message }) => {
      expect(message).toContain(`of step ${loop}: `);
      return rule;
    });
  }
  /** The body with other steps, at the same addresses. */
  function withSteps(change: (steps: PlanStep[]) => void): readonly string[] {
    const steps = [...body.program.steps];
    change(steps);
    const scratch = steps.map((step) => body.scratch[body.program.steps.indexOf(step)] ?? []);
    return rulesWith({ ...body, program: { ...body.program, steps }, scratch });
  }
  const half = (kind: "start" | "wait"): number =>
    body.program.steps.findIndex(({ exchange }) => exchange?.kind === kind);

  it("whose wait is missing, comes twice, or in another iteration", () => {
    expect(rulesWith(body)).toEqual([]);
    expect(withSteps((steps) => steps.splice(half("wait"), 1))).toContain("exchange");
    expect(withSteps((steps) => steps.push(at(steps, half("wait"))))).toContain("exchange");
    // the wait for what the iteration before started
    expect(withSteps((steps) => steps.unshift(...steps.splice(half("wait"), 1)))).toContain("exchange");
  });

  it("that reads a result before its wait", () => {
    const { flight } = at(body.program.steps, half("wait")).exchange ?? {};
    const reader = body.program.steps.findIndex(
      ({ exchange, reads }) => !exchange && flight?.writes.some((v) => reads.includes(v)),
    );
    expect(reader).toBeGreaterThan(half("wait"));
    const rules = withSteps((steps) => steps.splice(half("wait"), 0, ...steps.splice(reader, 1)));
    expect(rules).toContain("read-before-wait");
  });

  it("that writes on what is sent or received, with a step or with the workspace of one", () => {
    const start = half("start");
    const { flight } = at(body.program.steps, start).exchange ?? {};
    const end = body.program.steps.findIndex(({ exchange }) => exchange?.kind === "wait" && exchange.flight === flight);
    const between = body.program.steps.slice(start + 1, end);
    const writer = between.find(({ writes, exchange, alias }) => writes.length > 0 && !exchange && !alias);
    const worker = body.program.steps.findIndex(
      ({ scratch }, i) => i > start && i < end && scratch.some((bytes) => bytes > 0),
    );
    expect(worker).toBeGreaterThan(start);
    for (const value of [...(flight?.writes ?? []), ...(flight?.reads ?? [])]) {
      const home = body.offsets[body.bufferOf.get(value) ?? -1] ?? 0;
      const moved = (id: number | undefined): Plan => ({
        ...body,
        offsets: body.offsets.map((offset, i) => (i === id ? home : offset)),
      });
      expect(rulesWith(moved(body.bufferOf.get(writer?.writes[0] as never)))).toContain("in-flight");
      expect(rulesWith(moved(at(body.scratch, worker)[0]))).toContain("in-flight");
    }
  });
});
