/**
 * @file Whole programs: random graphs and their gradients through passes, fusion, plan and WebAssembly. Fused equals
 * unfused to the last bit, both agree with the reference, the validator is clean, and nothing depends on what an arena
 * held before.
 */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loadGraph } from "../src/api/load-graph.ts";
import { jvp } from "../src/autodiff/jvp.ts";
import { vjp } from "../src/autodiff/vjp.ts";
import { isKernel } from "../src/codegen/placed.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { assemble } from "../src/compiler/assemble.ts";
import { evaluate } from "../src/ir/evaluate.ts";
import type { Graph, Value } from "../src/ir/graph.ts";
import type { Reference } from "../src/ir/op.ts";
import { print } from "../src/ir/print.ts";
import { elementsOf } from "../src/ir/type.ts";
import { allNodes } from "../src/ir/walk.ts";
import { type DType, elementsIn, elementWriter, isFloat } from "../src/kernel/dtype.ts";
import { interpretKernel } from "../src/kernel/interpret.ts";
import { pipeline } from "../src/passes/pipeline.ts";
import { validate } from "../src/plan/validate.ts";
import { type Elements, Executable } from "../src/runtime/executable.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { randomGraph, randomInputs } from "./support/random-graph.ts";

function load(executable: Executable, graph: Graph, inputs: readonly Reference[]): void {
  graph.params.forEach((param, i) => {
    const elements = (inputs[i] as Reference).map(elementWriter(param.type.dtype));
    executable.write(param.type, executable.placed.params[i] as number, elements);
  });
}

function results(executable: Executable, graph: Graph): Elements[] {
  return graph.results.map((value, i) => executable.read(value.type, executable.placed.results[i] as number));
}

function runOn(executable: Executable, graph: Graph, inputs: readonly Reference[]): Elements[] {
  load(executable, graph, inputs);
  executable.run();
  return results(executable, graph);
}

function expectClose(
  graph: Graph,
  got: readonly Elements[],
  want: readonly Reference[],
  tolerance: Record<string, number>,
): void {
  graph.results.forEach((value, i) => {
    const [a, b] = [got[i] as Elements, want[i] as Reference];
    // Sizes of whole tensors set the scale: cancellation makes single elements arbitrarily small.
    const scale = b.reduce((m, x) => (Number.isFinite(x) ? Math.max(m, Math.abs(x)) : m), 1);
    for (let e = 0; e < b.length; e++) {
      const [x, y] = [a[e] as number, b[e] as number];
      if (Object.is(x, y) || x === y) continue;
      if (!Number.isFinite(y) && !Number.isFinite(x)) continue;
      if (!(Math.abs(x - y) <= (tolerance[value.type.dtype] as number) * scale)) {
        expect(x, `result ${i}, element ${e} of\n${print(graph)}`).toBe(y);
      }
    }
  });
}

/** Whether anything in the graph is rounded to f32, results of type f64 included. */
function usesF32(graph: Graph): boolean {
  return [...allNodes(graph)].some((node) => [...node.inputs, ...node.outputs].some((v) => v.type.dtype === "f32"));
}

const tolerances = (graph: Graph): Record<string, number> => ({
  f32: 2e-3,
  f64: usesF32(graph) ? 2e-3 : 1e-9,
  i32: 0,
  bool: 0,
});

/** The same placed kernels, interpreted over a plain buffer. */
function interpret(executable: Executable, graph: Graph, inputs: readonly Reference[]): Elements[] {
  const { kernels, copies, plan, params, results: outputs } = executable.placed;
  const arena = new ArrayBuffer(plan.height + 64);
  const view = (dtype: DType, elements: number, at: number): Elements => elementsIn(dtype, arena, at, elements);
  const viewOf = (v: Value, at: number): Elements => view(v.type.dtype, elementsOf(v.type.shape), at);
  for (const [i, param] of graph.params.entries()) {
    const elementOf = elementWriter(param.type.dtype);
    viewOf(param, params[i] as number).set((inputs[i] as Reference).map(elementOf));
  }
  for (const { kernel, addresses } of kernels.filter(isKernel)) {
    interpretKernel(
      kernel,
      kernel.operands.map((o, i) => view(o.dtype, o.elements, addresses[i] as number)),
    );
  }
  for (const { from, to, bytes } of copies) new Uint8Array(arena).copyWithin(to, from, from + bytes);
  return graph.results.map((value, i) => viewOf(value, outputs[i] as number).slice());
}

function checkProgram(graph: Graph, seed: number, reference: boolean, special = false): void {
  const inputs = randomInputs(graph, seed, { special });
  // Without fused multiply-add, which the interpreter does not have.
  const fused = new Executable(assemble({ graph }, wasmDescription(false), { validate: true }), wasmTarget(false));
  const plain = new Executable(assemble({ graph }, wasmDescription(false), { passes: pipeline }), wasmTarget(false));
  for (const executable of [fused, plain]) {
    const { plan } = executable.placed;
    expect(validate(plan.program, plan), print(graph)).toEqual([]);
    expect(plan.height).toBeGreaterThanOrEqual(plan.bound.bytes);
  }
  const first = runOn(fused, graph, inputs);
  expect(runOn(plain, graph, inputs), `fusion changed bits of\n${print(graph)}`).toEqual(first);
  fused.poison();
  expect(runOn(fused, graph, inputs), `an earlier run shows in\n${print(graph)}`).toEqual(first);
  expect(interpret(fused, graph, inputs), `WebAssembly differs from the interpreter on\n${print(graph)}`).toEqual(
    first,
  );
  if (reference) expectClose(graph, first, evaluate(graph, inputs, { round: true }), tolerances(graph));
}

const seeds = fc.integer({ min: 0, max: 1_000_000 });

describe("random programs", () => {
  test("run alike fused, unfused, poisoned and interpreted", () => {
    fc.assert(
      fc.property(seeds, (seed) => checkProgram(randomGraph(seed, { nodes: 5 + (seed % 30) }), seed, false)),
      { numRuns: 150, seed: 1 },
    );
  });

  test("agree with the reference where no jump can hide a rounding error", () => {
    fc.assert(
      fc.property(seeds, (seed) =>
        checkProgram(randomGraph(seed, { nodes: 5 + (seed % 30), smooth: true }), seed, true),
      ),
      { numRuns: 100, seed: 3 },
    );
  });

  test("of all types, and gradients of all floats, run alike fused, unfused, poisoned and interpreted", () => {
    const floats = ["bf16", "f32", "f16", "f64"] as const;
    const wholes = ["i32", "i64", "i8", "u8"] as const;
    fc.assert(
      fc.property(seeds, (seed) => {
        const size = { nodes: 5 + (seed % 25), dtypes: floats };
        checkProgram(randomGraph(seed, { ...size, casts: [...floats, ...wholes, "bool"] }), seed, false, true);
        const graph = randomGraph(seed, { ...size, smooth: true, scalar: true, casts: floats });
        const active = graph.params.map((p) => isFloat(p.type.dtype));
        checkProgram(vjp(graph, active), seed, false);
      }),
      { numRuns: 30, seed: 4 },
    );
  });

  test("have gradients that run alike, and reverse mode agrees with forward mode and differences", () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const graph = randomGraph(seed, {
          nodes: 4 + (seed % 20),
          smooth: true,
          scalar: true,
          regions: false,
          dtypes: ["f64"],
        });
        const active = graph.params.map((p) => isFloat(p.type.dtype));
        const backward = vjp(graph, active);
        checkProgram(backward, seed, true);
        checkDirections(graph, active, seed);
      }),
      { numRuns: 100, seed: 2 },
    );
  });
});

/** Along a random direction t: Σ gradient · t = jvp(t) = (f(x + h t) - f(x - h t)) / 2h. */
function checkDirections(graph: Graph, active: readonly boolean[], seed: number): void {
  const x = randomInputs(graph, seed);
  const t = randomInputs(graph, seed + 1);
  const ones = graph.results
    .filter((r) => isFloat(r.type.dtype))
    .map((r) => new Float64Array(r.type.shape.reduce((n, e) => n * e, 1)).fill(1));
  const floatResults = graph.results.flatMap((r, i) => (isFloat(r.type.dtype) ? [i] : []));
  const backward = runOn(loadGraph(vjp(graph, active)), vjp(graph, active), [...x, ...ones]);
  const gradients = backward.slice(graph.results.length);
  const directions = t.filter((_, i) => active[i]);
  const reverse = gradients.reduce((sum, g, i) => sum + dot(g, directions[i] as Reference), 0);
  const forwardGraph = jvp(graph, [...active]);
  const forward = runOn(loadGraph(forwardGraph), forwardGraph, [...x, ...directions]);
  const tangents = forward.slice(graph.results.length);
  const forwardSum = tangents.reduce((sum, v) => sum + dot(v, new Float64Array(v.length).fill(1)), 0);
  const h = 1e-5;
  const shifted = (sign: number): number => {
    const moved = x.map((v, i) => (active[i] ? v.map((e, j) => e + sign * h * (t[i] as Reference)[j]!) : v));
    const out = evaluate(graph, moved);
    return floatResults.reduce((sum, r) => sum + (out[r] as Reference).reduce((s, e) => s + e, 0), 0);
  };
  const differences = (shifted(1) - shifted(-1)) / (2 * h);
  const scale = Math.max(1, Math.abs(reverse), Math.abs(forwardSum));
  expect(
    Math.abs(reverse - forwardSum) / scale,
    `reverse ${reverse}, forward ${forwardSum}\n${print(graph)}`,
  ).toBeLessThan(usesF32(graph) ? 1e-4 : 1e-9);
  expect(
    Math.abs(reverse - differences) / scale,
    `reverse ${reverse}, differences ${differences}\n${print(graph)}`,
  ).toBeLessThan(1e-4);
}

function dot(a: Elements, b: Reference | Elements): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}
