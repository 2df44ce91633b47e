/**
 * @file First derivatives of every API function on every smooth sample: forward mode equals central differences, reverse
 * mode is its transpose, and both run on WebAssembly as they are interpreted.
 */

import { describe, expect, test } from "vitest";
import { loadGraph } from "../../src/api/load-graph.ts";
import { jvp } from "../../src/autodiff/jvp.ts";
import { vjp } from "../../src/autodiff/vjp.ts";
import { evaluate } from "../../src/ir/evaluate.ts";
import type { Graph } from "../../src/ir/graph.ts";
import { verify } from "../../src/ir/verify.ts";
import { expectClose, TOLERANCE } from "./compare.ts";
import { type Data, differentiable, floatType, traceSample } from "./differentiable.ts";
import { draw, type FunctionSample, labelOf } from "./sample.ts";

function runOnWasm(graph: Graph, inputs: Data): Data {
  const executable = loadGraph(graph, { validate: true });
  const { params, results } = executable.placed;
  graph.params.forEach(({ type }, i) => {
    executable.write(type, params[i]!, inputs[i]!);
  });
  executable.run();
  return graph.results.map(({ type }, i) => Float64Array.from(executable.read(type, results[i]!)));
}

function expectSameOnWasm(graph: Graph, inputs: Data, label: string): Data {
  const interpreted = evaluate(graph, inputs);
  const ran = runOnWasm(graph, inputs);
  graph.results.forEach(({ type }, i) => {
    expectClose(ran[i]!, interpreted[i]!, TOLERANCE[type.dtype], `${label}, result ${i} on WebAssembly`);
  });
  return interpreted;
}

/** (f(x + h t) - f(x - h t)) / 2h for every float result. */
function differences(graph: Graph, x: Data, t: readonly (Float64Array | null)[], h: number): Data {
  const at = (by: number): Data =>
    evaluate(
      graph,
      x.map((v, i) => v.map((e, k) => e + by * (t[i]?.[k] ?? 0))),
    );
  const [up, down] = [at(h), at(-h)];
  return graph.results.flatMap(({ type }, i) =>
    floatType(type) ? [up[i]!.map((e, k) => (e - down[i]![k]!) / (2 * h))] : [],
  );
}

const dot = (a: Data, b: Data): number => a.reduce((s, v, i) => s + v.reduce((r, e, k) => r + e * b[i]![k]!, 0), 0);

function checkFirst(sample: FunctionSample, label: string): void {
  const { graph, inputs } = traceSample(sample);
  const t = graph.params.map(({ type }, i) => (floatType(type) ? draw(type, 31 + i, [-1, 1]) : null));
  const active = t.map((v) => v !== null);
  const tangents = t.filter((v) => v !== null);
  const [forward, backward] = [jvp(graph, active), vjp(graph, active)];
  verify(forward);
  verify(backward);
  const floats = graph.results.filter(({ type }) => floatType(type));
  const pushed = expectSameOnWasm(forward, [...inputs, ...tangents], `${label}, forward mode`);
  const along = pushed.slice(graph.results.length);
  const cts = floats.map(({ type }, i) => draw(type, 70 + i, [-1, 1]));
  const pulled = expectSameOnWasm(backward, [...inputs, ...cts], `${label}, reverse mode`).slice(graph.results.length);
  if (sample.inputs.some(({ dtype }) => dtype === "f32")) return;
  differences(graph, inputs, t, 1e-5).forEach((numeric, i) => {
    expectClose(along[i]!, numeric, 1e-6, `${label}, derivative of result ${i} against differences`);
  });
  // ⟨ct, J·t⟩ = ⟨Jᵀ·ct, t⟩
  const [left, right] = [dot(cts, along), dot(tangents, pulled)];
  expect(Math.abs(left - right), `${label}: ${left} and ${right}`).toBeLessThanOrEqual(1e-10 * (1 + Math.abs(left)));
}

describe("first derivatives agree", () => {
  for (const t of ["f64", "f32"] as const) {
    for (const [name, samples] of differentiable(t)) {
      test(`of ${name}, ${t}`, () => {
        samples.forEach((sample, i) => {
          checkFirst(sample, labelOf(sample, i));
        });
      });
    }
  }
});
