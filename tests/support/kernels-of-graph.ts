/** @file The kernels that a graph becomes, and what they compute as the interpreter runs them. */

import { at, invariant } from "../../src/base/invariant.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import type { Reference } from "../../src/ir/op.ts";
import { elementsOf } from "../../src/ir/type.ts";
import { interpretKernel, type TypedArray } from "../../src/kernel/interpret.ts";
import { type Lowered, lowerNode } from "../../src/lower/lower.ts";
import { fusedPipeline, runPasses } from "../../src/passes/pipeline.ts";
import type { LoweringTarget } from "../../src/target/description.ts";
import { PLAIN_LOWERING } from "../../src/target/plain.ts";
import { typedArray } from "./lowering.ts";

export interface GraphKernels {
  /** After all passes. */
  readonly graph: Graph;
  /** In order; names of storage that exists are none. */
  readonly kernels: readonly Lowered[];
}

export function kernelsOfGraph(graph: Graph, target: LoweringTarget = PLAIN_LOWERING): GraphKernels {
  const fused = runPasses(graph, fusedPipeline);
  return { graph: fused, kernels: fused.nodes.filter(isKernel).map((node) => lowerNode(node, target)) };
}

const isKernel = (node: Graph["nodes"][number]): boolean => node.op.alias === null;

/** The results of a graph, kernel by kernel. */
export function interpretGraph(graph: Graph, inputs: readonly Reference[]): readonly TypedArray[] {
  const fused = runPasses(graph, fusedPipeline);
  const arrays = new Map<Value, TypedArray>();
  fused.params.forEach((param, i) => {
    arrays.set(param, typedArray(param.type.dtype, at(inputs, i)));
  });
  const known = (value: Value): TypedArray => {
    const array = arrays.get(value);
    invariant(array, () => `${value.name ?? value.id} has no elements yet`);
    return array;
  };
  for (const node of fused.nodes) {
    if (!isKernel(node)) {
      arrays.set(at(node.outputs, 0), known(at(node.inputs, node.op.alias ?? 0)));
      continue;
    }
    for (const value of node.outputs) {
      const { dtype, shape } = value.type;
      arrays.set(value, typedArray(dtype, new Float64Array(elementsOf(shape))));
    }
    const { kernel, values } = lowerNode(node, PLAIN_LOWERING);
    interpretKernel(
      kernel,
      values.map((value) => (value ? known(value) : new Float64Array(0))),
    );
  }
  return fused.results.map(known);
}
