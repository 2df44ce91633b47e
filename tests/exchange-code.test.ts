/** @file Collectives as C: what the text says of them, which thread calls them, and where they are for messages. Nothing runs. */
import { describe, expect, it } from "vitest";
import { grad, scan, type Tensor, zeros } from "../src/api/index.ts";
import { traceProgram } from "../src/api/traced-program.ts";
import { nativeDescription } from "../src/codegen/native/description.ts";
import { exchangePlaces, groupsIn } from "../src/codegen/native/exchange.ts";
import type { NativeEmitOptions } from "../src/codegen/native/options.ts";
import { emitNativeProgram } from "../src/codegen/native/program.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { assemble } from "../src/compiler/assemble.ts";
import { NO_HOST, type PlannerHost } from "../src/compiler/host.ts";
import { overlappedPlan } from "../src/compiler/overlap.ts";
import { allReduce, deviceIndex, mesh, permute, shard } from "../src/parallel/index.ts";
import { planJson } from "../src/plan/json.ts";
import { readPlanJson } from "../src/plan/read-json.ts";
import { reportText } from "../src/plan/report.ts";
import { validate } from "../src/plan/validate.ts";
import { exchangeText } from "../src/runtime/communicator.ts";
import { wasmCode } from "../src/runtime/wasm-code.ts";
import { type AnyFunction, flattenArguments } from "../src/trace/function.ts";

const MESH = mesh({ data: 2, tensor: 2 });

interface PlacedOptions {
  readonly threads?: number;
  readonly budgetBytes?: number;
  readonly host?: PlannerHost;
}

const HOST: PlannerHost = { ...NO_HOST, overlappedPlan };

function placedOf(fn: AnyFunction, args: readonly Tensor[], how: PlacedOptions = {}) {
  const { threads = 1, budgetBytes, host = HOST } = how;
  const options: NativeEmitOptions = { lanes: 4, fma: false, threads };
  const { graph } = traceProgram(fn, flattenArguments(fn, args), {});
  const placed = assemble({ graph }, nativeDescription(options), { memory: { budgetBytes } }, host);
  return { placed, text: emitNativeProgram(placed.kernels, placed.copies, options).text };
}

const sharded = (fn: (x: Tensor) => Tensor, out: readonly string[] = []): AnyFunction =>
  shard(fn, { mesh: MESH, in: [["data", "tensor"]], out }) as AnyFunction;

describe("a program with collectives", () => {
  it("names its groups once, and calls the functions of the host", () => {
    const fn = sharded((x) => allReduce(allReduce(x, { over: "data" }).sum(), { over: "tensor" }));
    const { text } = placedOf(fn, [zeros([8])]);
    expect(groupsIn(text)).toEqual([
      { mesh: [["data", 2], ["tensor", 2]], over: ["data"] }, // biome-ignore format: one line
      { mesh: [["data", 2], ["tensor", 2]], over: ["tensor"] }, // biome-ignore format: one line
    ]);
    expect(text).toContain('"0: all_reduce of 8 f32 over data of data=2,tensor=2"');
    expect(text).toMatch(/mpi->start\(&tide_exchange_1, groups\[1\], .*, -1\);/);
    // no header of MPI: the object is the same wherever it is compiled
    expect(text).not.toContain("mpi.h");
  });

  it("has none where a group is one device", () => {
    const one = shard((x: Tensor) => allReduce(x, { over: "data" }), {
      mesh: mesh({ data: 1 }),
      in: ["data"],
      out: [],
    }) as AnyFunction;
    const { text } = placedOf(one, [zeros([8])]);
    expect(groupsIn(text)).toEqual([]);
    expect(text).not.toContain("mpi");
  });

  it("calls them from the first thread alone, with the other threads behind it", () => {
    const fn = sharded((x) => allReduce(x.mul(2), { over: ["data", "tensor"] }).mul(3));
    const { text } = placedOf(fn, [zeros([1 << 18])], { threads: 2 });
    expect(text).toMatch(
      /if \(TAKE_FIRST\(\)\) \{\n\s+mpi->start\(.*-1\);\n\s+DONE_ALL\(\);|if \(thread == 0\) mpi->start/,
    );
    expect(text).toContain("if (thread == 0) return take(team, call, 0);");
  });

  it("has them in loops too", () => {
    const fn = sharded(
      (x) =>
        scan(
          (c: Tensor, row: Tensor) => [c.add(allReduce(row, { over: "data" })), c],
          x.slice([0]).mul(0),
          x,
        )[0] as Tensor,
      ["data", "tensor"],
    );
    const { text, placed } = placedOf(fn, [zeros([5, 8])]);
    expect(text).toContain("0: all_reduce of 8 f32");
    expect(exchangePlaces(placed)).toHaveLength(1);
  });

  it("says where each of them is: the step of the plan, and the user's line", () => {
    const fn = sharded(
      (x) => {
        const sum = allReduce(x.mul(x), { over: "data" });
        return permute(sum, { over: "tensor", shift: 1 }).add(deviceIndex({ over: "tensor" }).cast("f32"));
      },
      ["tensor"],
    );
    const { placed } = placedOf(fn, [zeros([8])]);
    const places = exchangePlaces(placed);
    expect(places).toHaveLength(2);
    for (const place of places) expect(place).toMatch(/^step \d+ at .*exchange-code\.test\.ts:\d+:\d+/);
  });
});

describe("a plan with collectives in flight", () => {
  const fn = sharded((w) => {
    const x = w.reshape([128, 128]);
    const loss = (v: Tensor): Tensor => allReduce(x.matmul(v).tanh().matmul(v).tanh().sum(), { over: ["data", "tensor"] });
    return grad(loss)(x.mul(2)).add(allReduce(x.tanh(), { over: "data" })).add(x.matmul(x).matmul(x));
  }, ["data", "tensor"]); // biome-ignore format: a loss in few lines

  it("is a file that is read again, with both halves", () => {
    const { placed } = placedOf(fn, [zeros([128 * 128])]);
    const json = planJson(placed.plan);
    const halves = json.steps.flatMap(({ exchange }, i) => (exchange ? [{ ...exchange, i }] : []));
    const start = halves.find(({ kind }) => kind === "start");
    expect(start).toBeDefined();
    expect(halves.find(({ i }) => i === start?.other)).toMatchObject({ kind: "wait", other: start?.i, over: "data" });
    expect(start?.bytes).toBe(4 * 128 * 128);
    const text = JSON.stringify(json);
    expect(readPlanJson(text)).toEqual(JSON.parse(text));
    const other = JSON.stringify({
      ...json,
      steps: json.steps.map((step, i) =>
        i === start?.i ? { ...step, exchange: { ...step.exchange, other: 0 } } : step,
      ),
    });
    expect(() => readPlanJson(other)).toThrow(/is not the other half of this collective/);
    expect(reportText(placed.plan)).toMatch(
      /exchanges: \d+ collectives? of [\d,]+ bytes, [1-9]\d* in flight beside other steps/,
    );
  });

  it("keeps to the budget, with less in flight where there is less room", () => {
    const args = [zeros([128 * 128])];
    const { height } = placedOf(fn, args, { host: NO_HOST }).placed.plan;
    const inFlight = ({ plan }: ReturnType<typeof placedOf>["placed"]): number =>
      plan.program.steps.filter(({ exchange }) => exchange?.kind === "start").length;
    expect(inFlight(placedOf(fn, args, { host: NO_HOST }).placed)).toBe(0);
    for (const budgetBytes of [height, height + 4 * 128 * 128, 4 * height]) {
      const { placed } = placedOf(fn, args, { budgetBytes });
      expect(placed.plan.height).toBeLessThanOrEqual(budgetBytes);
      expect(validate(placed.plan.program, placed.plan)).toEqual([]);
    }
    expect(inFlight(placedOf(fn, args, { budgetBytes: 4 * height }).placed)).toBeGreaterThan(0);
  });

  it("is predicted to take no longer than with every collective done when its step is", () => {
    const args = [zeros([128 * 128])];
    const flying = placedOf(fn, args).placed.predictedMs;
    expect(flying).toBeLessThan(placedOf(fn, args, { host: NO_HOST }).placed.predictedMs);
  });
});

interface ModuleReader {
  readonly Module: { imports(module: WebAssembly.Module): readonly { readonly name: string }[] };
}

describe("a program with collectives on WebAssembly", () => {
  const wasmOf = (fn: AnyFunction, threads = 1) => {
    const { graph } = traceProgram(fn, flattenArguments(fn, [zeros([8])]), {});
    const placed = assemble({ graph }, wasmDescription(false, { threads }), {}, HOST);
    const code = wasmCode(placed, { fma: false, threads, stepwise: false, sharesMemory: true });
    const { Module } = WebAssembly as unknown as ModuleReader;
    const imports = Module.imports(new WebAssembly.Module(code.bytes)).map(({ name }) => name);
    return { ...code, imports };
  };

  it("calls the host, and says what each call means and where it is", () => {
    const fn = sharded((x) => allReduce(allReduce(x, { over: "data" }).sum(), { over: "tensor" }));
    const { exchanges, imports } = wasmOf(fn);
    expect(imports).toEqual(["exchange", "memory"]);
    expect(wasmOf(fn, 2).imports).toEqual(["exchange", "check", "memory"]);
    expect(exchanges.map(exchangeText)).toEqual([
      expect.stringMatching(/^all_reduce of 8 f32 over data of data=2,tensor=2, step \d+ at exchange-code\.test\.ts/),
      expect.stringMatching(/^all_reduce of 1 f32 over tensor of data=2,tensor=2, step \d+ at exchange-code\.test\.ts/),
    ]);
  });

  it("has one call in a loop, and none where a group is one device", () => {
    const loop = sharded(
      (x) => scan((s: Tensor) => [allReduce(s, { over: "data" }).add(x), []], x, null, { length: 5 })[0] as Tensor,
      ["data", "tensor"],
    );
    expect(wasmOf(loop).exchanges).toHaveLength(1);
    const alone = shard((x: Tensor) => x.add(deviceIndex({ over: "data" }).cast("f32")), {
      mesh: mesh({ data: 1 }),
      in: ["data"],
      out: "data",
    }) as AnyFunction;
    expect(wasmOf(alone)).toMatchObject({ exchanges: [], imports: ["memory"] });
  });
});
