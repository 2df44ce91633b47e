/** @file Slices and replays on graphs that are small enough to read, and on random ones. */
import { describe, expect, it } from "vitest";
import { randomGraph, randomInputs } from "../../../tests/support/random-graph.ts";
import { wasmDescription } from "../../codegen/wasm/description.ts";
import { Assembler } from "../../compiler/assembler.ts";
import { TargetCosts } from "../../compiler/node-costs.ts";
import { Build } from "../../ir/build.ts";
import { evaluate } from "../../ir/evaluate.ts";
import type { Graph } from "../../ir/graph.ts";
import { print } from "../../ir/print.ts";
import { tensorType } from "../../ir/type.ts";
import { violations } from "../../ir/verify.ts";
import { tanh } from "../../ops/math.ts";
import { matmul } from "../../ops/matmul.ts";
import { fuse } from "../../passes/fuse.ts";
import { pipeline, runPasses } from "../../passes/pipeline.ts";
import { baseSequence } from "../recompute/problem.ts";
import { simulate } from "../recompute/simulate.ts";
import { planRecompute } from "../recompute/strategies.ts";
import { replayGraph } from "./replay.ts";
import { liveBytes, type SlicedProgram, sliceProgram } from "./slices.ts";

function sliced(graph: Graph): SlicedProgram & { readonly height: number } {
  const before = runPasses(graph, pipeline);
  const description = wasmDescription();
  const { plan } = new Assembler(description, {}).make(before, [fuse]);
  return { ...sliceProgram(before, plan, new TargetCosts(description, description)), height: plan.height };
}

/** y = tanh(x w); z = y w; result z + tanh'(…): one kernel stores both the product and its tanh. */
function twoOutputs(): Graph {
  const b = new Build("two");
  const [x, w] = [b.param(tensorType("f32", [64, 64]), "x"), b.param(tensorType("f32", [64, 64]), "w")];
  const h = b.call(matmul, [x, w], { ta: false, tb: false }, { name: "h" });
  const g = b.call(tanh, [h], {}, { name: "g" });
  const z = b.call(matmul, [g, w], { ta: false, tb: false }, { name: "z" });
  const back = b.call(matmul, [z, h], { ta: false, tb: false }, { name: "back", phase: "backward" });
  return b.finish([back, b.call(matmul, [back, g], { ta: false, tb: false }, { name: "last", phase: "backward" })]);
}

describe("slices", () => {
  it("compute one of a kernel's values from another that is kept", () => {
    const { problem, slices } = sliced(twoOutputs());
    const op = (name: string): number => problem.ops.findIndex((o) => o.name === name);
    const [h, g] = [op("h"), op("g")];
    expect(slices[g]?.step).toBe(slices[h]?.step);
    expect(problem.ops[g]?.inputs).toEqual(problem.ops[h]?.outputs);
    expect(slices[g]?.nodes.length).toBe(1);
    expect(problem.ops[g]?.cost).toBeLessThan(problem.ops[h]?.cost as number);
  });

  it("count the plan's bytes at every operation when nothing is recomputed", () => {
    for (let seed = 0; seed < 60; seed++) {
      const program = sliced(randomGraph(seed));
      const { problem, height, floorBytes } = program;
      if (problem.ops.length === 0) continue;
      expect(simulate(problem, baseSequence(problem)).violations).toEqual([]);
      expect(simulate(problem, baseSequence(problem)).peakBytes).toBeLessThanOrEqual(height);
      expect(floorBytes).toBeLessThanOrEqual(height);
    }
  });
});

describe("replays", () => {
  it("read the latest computation, and print as such", () => {
    const program = sliced(twoOutputs());
    const op = (name: string): number => program.problem.ops.findIndex((o) => o.name === name);
    const order = baseSequence(program.problem);
    const at = order.indexOf(op("last"));
    const { graph } = replayGraph(program, [...order.slice(0, at), op("g"), ...order.slice(at)]);
    const text = print(graph);
    expect(text).toMatch(/g_re: f32\[64,64\] = tanh\(h\) ~1/);
    expect(text).toMatch(/last: f32\[64,64\] = matmul\(back, g_re\)/);
    expect(violations(graph)).toEqual([]);
  });

  it("of every operation, wherever it is valid, keep the meaning of random graphs", () => {
    for (let seed = 0; seed < 60; seed++) {
      const graph = randomGraph(seed);
      const program = sliced(graph);
      const { problem } = program;
      if (problem.ops.length < 2) continue;
      const { sequence } = planRecompute(problem, Number.POSITIVE_INFINITY, "recompute-all", { effort: 0 });
      const again = replayGraph(program, sequence).graph;
      expect(violations(again)).toEqual([]);
      const inputs = randomInputs(graph, seed, {});
      const [expected, actual] = [graph, again].map((g) => evaluate(g, inputs, { round: true }).map((v) => [...v]));
      expect(actual).toEqual(expected);
    }
  });

  it("of one value free its bytes in between", () => {
    const before = runPasses(twoOutputs(), pipeline);
    const assembler = new Assembler(wasmDescription(), {});
    const program = sliced(twoOutputs());
    const order = baseSequence(program.problem);
    const g = program.problem.ops.findIndex((o) => o.name === "g");
    const { graph } = replayGraph(program, [...order.slice(0, -1), g, order.at(-1) as number]);
    const live = (made: Graph): number => {
      const { plan } = assembler.make(made, [fuse], { budgetBytes: Number.MAX_SAFE_INTEGER });
      const step = plan.program.steps.findIndex(({ writes }) => writes.some(({ name }) => name === "back"));
      return liveBytes(plan)[step] as number;
    };
    expect(live(graph)).toBeLessThan(live(before));
  });
});
