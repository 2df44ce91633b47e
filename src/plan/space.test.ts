/** @file How a plan with two memory spaces is measured, refused and shown. */
import { describe, expect, it } from "vitest";
import { ProgramBuilder } from "../../tests/support/plan-programs.ts";
import { faultsOfRun } from "../../tests/support/run-plan.ts";
import { newValue } from "../ir/graph.ts";
import { startStep, waitStep } from "./copy-step.ts";
import { parseCsv, printCsv } from "./csv.ts";
import { explainText } from "./explain.ts";
import { planJson } from "./json.ts";
import { liveness } from "./liveness.ts";
import { memoryChart } from "./memory-chart.ts";
import { memoryMap } from "./memory-map.ts";
import { moveValues } from "./move.ts";
import { planAsPlaced, planProgram } from "./plan.ts";
import type { Program } from "./program.ts";
import { readPlanJson } from "./read-json.ts";
import { reportPlan, reportText } from "./report.ts";
import { type MemorySpace, memorySpace } from "./space.ts";
import { validate } from "./validate.ts";

/** h0 is on the host while h2 to h4 are computed. */
function moved(deviceLimits: Partial<MemorySpace> = {}, hostLimits: Partial<MemorySpace> = {}): Program {
  const b = new ProgramBuilder();
  const w = b.param("w", [16]);
  const h0 = b.call("f", [b.param("x", [32]), w], { name: "h0" });
  let last = h0;
  for (let i = 1; i < 6; i++) last = b.call("f", [last], { name: `h${i}`, scratch: i === 2 ? [64] : [] });
  const program = b.finish("chain", [b.call("g", [last, h0], { name: "y" })], { persistent: [w] });
  const device = memorySpace(64, { name: "device", ...deviceLimits });
  return moveValues(program, [h0], { device, host: memorySpace(256, { name: "host", ...hostLimits }), flightSteps: 1 });
}

const program = moved();
const plan = planProgram(program);

describe("a plan with two memory spaces", () => {
  it("keeps both ends of a copy alive until it is waited for", () => {
    const spans = liveness(program);
    program.steps.forEach(({ copy }, wait) => {
      if (copy?.kind !== "wait") return;
      const start = program.steps.findIndex((step) => step.copy?.kind === "start" && step.copy.to === copy.to);
      expect(spans.get(copy.to)!.start).toBe(start);
      expect(spans.get(copy.to)!.end).toBeGreaterThan(wait);
      expect(spans.get(copy.from)!.end).toBeGreaterThan(wait);
    });
  });

  it("is placed space by space, each with its own alignment and bound", () => {
    expect(plan.others.map(({ height, bound }) => [height, bound.bytes])).toEqual([[256, 256]]);
    expect(plan.others[0]!.bound.live).toEqual(plan.problem.buffers.filter((b) => b.space === 1).map((b) => b.id));
    expect(planAsPlaced(program, plan)).toMatchObject({ height: plan.height, others: [{ height: 256 }] });
  });

  it("has parameters that stay on the host between runs and are brought in where they are used", () => {
    const b = new ProgramBuilder();
    const [kept, w1, w2] = [b.param("kept", [16]), b.param("w1", [100]), b.param("w2", [16])];
    const inner = b.call("f", [b.param("x", [16]), kept], { name: "h" });
    const bare = b.finish("host", [], { persistent: [kept, w1, w2] });
    const copies = [w1, w2].map((from) => ({ from, to: newValue(from.type, `${from.name}_in`), queue: 1 }));
    const calls = copies.map(({ to }, i) => {
      const node = { ...bare.steps[0]!.node, inputs: [inner, to], outputs: [newValue(inner.type, `y${i}`)] };
      return { node, reads: node.inputs, writes: node.outputs, scratch: [], inPlace: [], alias: null };
    });
    const steps = [
      startStep(copies[0]!, "forward"),
      startStep(copies[1]!, "forward"),
      ...bare.steps,
      ...copies.flatMap((copy, i) => [waitStep(copy, "forward"), calls[i]!]),
    ];
    const spaces = [memorySpace(64, { name: "device" }), memorySpace(256, { name: "host" })] as const;
    const spaceOf = new Map([w1, w2].map((w) => [w, 1]));
    const streamed = { ...bare, steps, results: calls.flatMap((step) => step.writes), spaces, spaceOf };
    const placed = planProgram(streamed);
    expect(validate(streamed, placed)).toEqual([]);
    expect([kept, w1, w2].map((v) => placed.offsets[placed.bufferOf.get(v)!])).toEqual([0, 0, 512]);
    expect(placed.others[0]!.height).toBe(768);
    for (const pace of ["start", "wait", 9] as const) expect(faultsOfRun(placed, pace)).toEqual([]);
  });

  it("is refused with the space that is too small and its numbers", () => {
    expect(() => planProgram(moved({ capacity: 256 }))).toThrowErrorMatchingInlineSnapshot(`
      [TidemarkError: PlanInfeasible: chain needs 448 bytes of device, which has 256
        tightest at step 8, h5 = f(h4):
          b8   h4    128  read here
          b9   h0_1  128  in flight until step 9
          b10  h5    128  written here
          b0   w      64  persistent
        128 of 448 bytes are held there for later steps or for the caller
        help: raise device to 448, use smaller batches, or recompute values held for later (checkpoint)]
    `);
    expect(() => planProgram(moved({}, { capacity: 100 }))).toThrowErrorMatchingInlineSnapshot(`
      [TidemarkError: PlanInfeasible: chain needs 256 bytes of host, which has 100
        tightest at step 1, h0_host = copy(h0):
          b3  h0_host  256  written here
        only this step's operands and persistent storage are live there
        help: raise host to 256, use smaller batches, or split this step]
    `);
    expect(() => planProgram(moved(), { budgetBytes: 300 })).toThrow(/needs 448 bytes of device, which has 300/);
    expect(planProgram(moved({ capacity: 448 }), { budgetBytes: 1000 }).problem.spaces[0].capacity).toBe(448);
    expect(() => planProgram(moved({}, { largestAllocation: 64 }))).toThrow(
      /b\d+ \(h0_host\) has 128 bytes, a buffer of host at most 64/,
    );
  });

  it("is drawn space by space", () => {
    expect(memoryMap(plan)).toMatchInlineSnapshot(`
      "device, 448 bytes
      0x00180 |.   .   .   .   .   b7──────.   b10─────────.   |
      0x00140 |.   .   .   .   b6──b7──────.   b10─────────.   |
      0x000c0 |b1──.   b4──────────.   b8──────────.   b11─────|
      0x00040 |b2──────────────b5──────.   b9──────────────.   |
      0x00000 |b0──────────────────────────────────────────────|
         step  0   1   2   3   4   5   6   7   8   9   10  11

      host, 256 bytes
      0x00000 |.   b3──────────────────────────────────.   .   |
         step  0   1   2   3   4   5   6   7   8   9   10  11
      "
    `);
    expect(memoryChart(plan, { height: 4 })).toMatchInlineSnapshot(`
      "device, 448 bytes
         448 |        a a | peak, bound
             |a aaaaaaaaa |
             |IaaaaaaaaaRR|
             |PPPPPPPPPPPP|
        step  0         11
              P persistent, I input, R result, a activation, s scratch

      host, 256 bytes
         256 | aaaaaaaaa  | peak, bound
             | aaaaaaaaa  |
             | aaaaaaaaa  |
             | aaaaaaaaa  |
        step  0         11
              a activation
      "
    `);
    expect(
      memoryMap(plan, { width: 40 })
        .split("\n")
        .filter((line) => /^(device|host), /.test(line)),
    ).toHaveLength(2);
  });

  it("is reported and explained", () => {
    expect(reportText(plan, 2)).toMatchInlineSnapshot(`
      "chain: 11 steps, 11 values in 12 buffers, 0 in place, 0 renamed, 0 copied at the end
        peak             448  1.000 × bound, by bytes/first-fit
        bound            448  most bytes live at once
        budget          none
        persistent        64  kept between runs
        ephemeral        384
        without reuse  1,280  2.86 × peak
        space   capacity  peak  bound  persistent  buffers  copies in  bytes in
        device      none   448    448          64       11          1       128
        host        none   256    256           0        1          1       128
        kind        buffers  bytes  at peak
        persistent        1     64       64
        input             1    128        0
        result            1    128        0
        activation        7    896      384
        scratch           1     64        0
        tightest at step 8, h5 = f(h4):
          b8  h4    128  read here
          b9  h0_1  128  in flight until step 9
          … 2 more
      "
    `);
    expect(reportPlan(plan).spaces[1]).toMatchObject({ name: "host", peakBytes: 256, copiesIn: 1, copiedInBytes: 128 });
    expect(explainText(plan, "h0_host")).toMatchInlineSnapshot(`
      "h0_host: f32[32] is at host:b3[0:128], 128 bytes
        it is written at step 1, h0_host = copy(h0)
        its last of 3 readers is step 9, wait(h0_1)
        from step 4 on it waits 3 steps for step 7, h0_1 = copy(h0_host)
        it is a copy of h0 in device: from step 1 to step 3, on queue 1
        it is copied to h0_1 in device: from step 7 to step 9, on queue 2
        nothing else uses its place
      "
    `);
    expect(explainText(plan, "h0_1")).toContain("it is a copy of h0_host in host: from step");
    expect(explainText(plan, `b${plan.bufferOf.get(program.steps[1]!.writes[0]!)}`)).toContain("of host, 128 bytes");
  });
});

describe("files of such a plan", () => {
  const json = planJson(plan);

  it("have spaces, queues and copies, and are read back", () => {
    expect(json.spaces?.map(({ name, heightBytes }) => [name, heightBytes])).toEqual([
      ["device", plan.height],
      ["host", 256],
    ]);
    expect(json.spaces?.[1]).toMatchObject({ alignment: 256, capacityBytes: null, largestAllocationBytes: null });
    const halves = json.steps.flatMap(({ copy, queue }, i) => (copy ? [[i, copy.kind, copy.other, queue ?? 0]] : []));
    expect(halves).toEqual([
      [1, "start", 3, 1],
      [3, "wait", 1, 0],
      [7, "start", 9, 2],
      [9, "wait", 7, 0],
    ]);
    expect(readPlanJson(JSON.stringify(json))).toEqual(json);
  });

  it("have none of it where there is one space, and are read without", () => {
    const one = JSON.stringify(planJson(planProgram(new ProgramBuilder().finish("nothing", []))));
    expect(one).not.toMatch(/space|queue|copy"/);
    expect(readPlanJson(one).spaces).toBeUndefined();
  });

  it("are refused where spaces, queues or copies are wrong", () => {
    type Fields = Record<string | number, unknown>;
    const edited = (path: readonly (string | number)[], value: unknown) => () => {
      const file = JSON.parse(JSON.stringify(json)) as Fields;
      const last = path.at(-1)!;
      const inner = path.slice(0, -1).reduce((fields, key) => fields[key] as Fields, file);
      inner[last] = value;
      return readPlanJson(JSON.stringify(file));
    };
    const wrong: readonly [readonly (string | number)[], unknown, RegExp][] = [
      [["spaces"], 3, /spaces: 3 is not a list/],
      [["spaces"], [], /the first space has no bytes/],
      [["spaces", 0, "heightBytes"], 512, /the first space has 512 bytes, the plan 448/],
      [["spaces", 1, "alignment"], 0, /spaces\[1\].alignment: is 0/],
      [["spaces", 1, "capacityBytes"], -1, /spaces\[1\].capacityBytes: -1 is not/],
      [["spaces", 1, "hostVisible"], 1, /spaces\[1\].hostVisible: is neither/],
      [["spaces", 1, "boundStep"], 99, /spaces\[1\].boundStep: 99 is not an index/],
      [["spaces", 1, "heightBytes"], 64, /ends at 128, above the arena's 64/],
      [["buffers", 0, "space"], 2, /buffers\[0\].space: 2 is not an index below 2/],
      [["steps", 0, "queue"], "1", /steps\[0\].queue: "1" is not/],
      [["steps", 1, "copy"], 1, /steps\[1\].copy: 1 is not an object/],
      [["steps", 1, "copy", "kind"], "stop", /steps\[1\].copy.kind: "stop" is not start or wait/],
      [["steps", 1, "copy", "to"], 99, /steps\[1\].copy.to: 99 is not an index/],
      [["steps", 1, "copy", "other"], 7, /steps\[1\].copy.other: step 7 is not the other half/],
      [["steps", 1, "copy", "from"], 0, /steps\[1\].copy.other: step 3 is not the other half/],
      [["steps", 3, "copy"], undefined, /steps\[1\].copy.other: step 3 is not the other half/],
    ];
    for (const [path, value, message] of wrong) expect(edited(path, value)).toThrow(message);
  });

  it("are tables with a column for the space, which are placed one space at a time", () => {
    const table = printCsv(plan.problem, plan.offsets);
    expect(table.split("\n")[0]).toBe("id,lower,upper,size,offset,space");
    expect(() => parseCsv(table)).toThrow(/buffers of 2 memory spaces: device, host/);
    const lines = table.split("\n").filter((line) => /space$|host$/.test(line));
    expect(parseCsv(lines.join("\n")).problem.buffers).toHaveLength(1);
  });
});
