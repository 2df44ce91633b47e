/**
 * @file How close plans come to their lower bound, over a thousand random programs: graphs and gradients of graphs of all
 * sizes, fused and placed as for a run. The median is the bound itself, and nobody is further than two percent from it.
 */
import { expect, test } from "vitest";
import { vjp } from "../src/autodiff/vjp.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { assemble } from "../src/compiler/assemble.ts";
import type { Graph } from "../src/ir/graph.ts";
import { isFloat } from "../src/kernel/dtype.ts";
import { randomGraph } from "./support/random-graph.ts";

const PROGRAMS = 1000;
const WORST = 1.02;

/** Every other one is a gradient. */
function program(seed: number): Graph {
  const nodes = 5 + (seed % 60);
  if (seed % 2 === 0) return randomGraph(seed, { nodes });
  const scalar = randomGraph(seed, { nodes, smooth: true, scalar: true, regions: false });
  return vjp(
    scalar,
    scalar.params.map((p) => isFloat(p.type.dtype)),
  );
}

test("arenas of random programs are as large as their lower bound", () => {
  const ratios = Array.from({ length: PROGRAMS }, (_, seed) => {
    const { plan } = assemble({ graph: program(seed) }, wasmDescription(false));
    return { seed, ratio: plan.bound.bytes === 0 ? 1 : plan.height / plan.bound.bytes };
  });
  const sorted = ratios.map(({ ratio }) => ratio).sort((a, b) => a - b);
  expect(sorted[0]).toBeGreaterThanOrEqual(1);
  expect(sorted[PROGRAMS / 2]).toBe(1);
  expect(ratios.filter(({ ratio }) => ratio > WORST)).toEqual([]);
});
