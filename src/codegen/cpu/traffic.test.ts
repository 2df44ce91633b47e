/** @file Bytes moved: counted by hand where one can, and never fewer than every operand once. */
import { describe, expect, it } from "vitest";
import { invariant } from "../../base/invariant.ts";
import { planTraffic } from "../../cli/plan-traffic.ts";
import { TargetCosts } from "../../compiler/node-costs.ts";
import { Build } from "../../ir/build.ts";
import type { Node } from "../../ir/graph.ts";
import type { OpDef } from "../../ir/op.ts";
import { type TensorType, tensorType } from "../../ir/type.ts";
import { allOps } from "../../ops/all.ts";
import { add, relu } from "../../ops/elementwise.ts";
import { scatterAdd } from "../../ops/indexing.ts";
import { matmul } from "../../ops/matmul.ts";
import { planProgram } from "../../plan/plan.ts";
import { memorySpace } from "../../target/space.ts";
import { wasmDescription } from "../wasm/description.ts";
import { type KernelTraffic, kernelTraffic } from "./traffic.ts";

const description = wasmDescription(false);
const costs = new TargetCosts(description, description);

const f32 = (...shape: number[]): TensorType => tensorType("f32", shape);

function nodeOf<A>(op: OpDef<A>, inputs: readonly TensorType[], attrs: A): Node {
  const b = new Build("f");
  b.callAll(
    op,
    inputs.map((type) => b.param(type)),
    attrs,
  );
  const [node] = b.nodes;
  invariant(node, () => "no node");
  return node;
}

function traffic(node: Node): KernelTraffic {
  const kernel = costs.kernelOf(node);
  invariant(kernel, () => "no kernel");
  return kernelTraffic(kernel, kernel.nests);
}

describe("what a kernel moves", () => {
  it("is every operand once where it has one nest", () => {
    const bytes = 4 * 3 * 8 * 16;
    expect(traffic(nodeOf(add, [f32(8, 16), f32(8, 16)], {}))).toEqual({ moved: bytes, least: bytes });
  });

  it("is a result twice where it is cleared first and added to then", () => {
    const [table, rows] = [4 * 100 * 8, 4 * 20 * 8];
    const node = nodeOf(scatterAdd, [f32(100, 8), tensorType("i32", [20]), f32(20, 8)], { axis: 0 });
    const { moved, least } = traffic(node);
    // the table is read and written; rows and their numbers are read
    expect(least).toBe(2 * table + rows + 4 * 20);
    expect(moved).toBeGreaterThan(least);
  });

  it("is at least what is counted for the time of every operation", () => {
    let kernels = 0;
    for (const op of allOps as readonly OpDef<unknown>[]) {
      for (const { inputs, attrs } of op.samples()) {
        if (op.alias !== null || op.lower.kind === "region" || op.lower.kind === "control") continue;
        const node = nodeOf(op, inputs, attrs);
        const { moved, least } = traffic(node);
        expect(moved, op.name).toBeGreaterThanOrEqual(least);
        expect(least, op.name).toBe(costs.workOf(node).bytes);
        kernels++;
      }
    }
    expect(kernels).toBeGreaterThan(100);
  });
});

describe("what a plan moves", () => {
  it("is what its kernels move, beside inputs and results once", () => {
    const b = new Build("f");
    const [x, w] = [b.param(f32(32, 48)), b.param(f32(48, 16))];
    const y = b.call(matmul, [x, w], { ta: false, tb: false });
    const graph = b.finish([b.call(relu, [y], {})]);
    const steps = graph.nodes.map((node) => {
      return { node, reads: node.inputs, writes: node.outputs, scratch: [], inPlace: [], alias: null };
    });
    const { name, params, results } = graph;
    const plan = planProgram({
      ...{
        name,
        params,
        results,
        steps,
        donated: new Map(),
        persistent: new Set([w]),
        spaces: [memorySpace(64)] as const,
      },
    });
    const [inputs, result] = [4 * (32 * 48 + 48 * 16), 4 * 32 * 16];
    const { movedBytes, kernelBytes, leastBytes } = planTraffic(plan, costs);
    expect(leastBytes).toBe(inputs + result);
    // the product is written and read between
    expect(kernelBytes).toBe(inputs + 3 * result);
    expect(movedBytes).toBe(kernelBytes);
  });
});
