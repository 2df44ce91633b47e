/**
 * @file Convolutions whose image is packed along rows of places, since work was fused in front of it or it is too large to be
 * copied: the bits of WebAssembly, which packs place by place.
 */

import { describe, expect, it } from "vitest";
import { plainTargets } from "../../../tests/support/targets.ts";
import { loadGraph } from "../../api/load-graph.ts";
import { at } from "../../base/invariant.ts";
import { hostRandom } from "../../base/random.ts";
import { Build } from "../../ir/build.ts";
import type { Graph } from "../../ir/graph.ts";
import { elementsOf, type TensorType, tensorType } from "../../ir/type.ts";
import type { ContractNest } from "../../kernel/loops.ts";
import { lowerNode } from "../../lower/lower.ts";
import { type ConvAttrs, conv, convInput } from "../../ops/conv.ts";
import { mul, relu } from "../../ops/elementwise.ts";
import type { Target } from "../../runtime/device.ts";
import type { Elements } from "../../runtime/executable.ts";
import { PLAIN_LOWERING } from "../../target/plain.ts";
import { planProduct } from "./contract-plan.ts";
import { columnsOf } from "./contract-window.ts";

const plain = (changes: Partial<ConvAttrs> = {}): ConvAttrs => ({
  ...{ stride: [1, 1], lo: [1, 1], hi: [1, 1], dilation: [1, 1], groups: 1 },
  ...changes,
});

/** Shapes of x and w, and attributes; with work in front or without. */
const CASES = [
  { x: [2, 3, 7, 5], w: [4, 3, 3, 3], attrs: plain(), fused: true, dtype: "f32" },
  {
    x: [1, 4, 20, 37],
    w: [6, 2, 3, 5],
    attrs: plain({ lo: [0, 2], hi: [2, 1], groups: 2 }),
    fused: true,
    dtype: "f32",
  },
  { x: [2, 5, 6, 33], w: [3, 5, 3, 3], attrs: plain({ lo: [0, 0], hi: [0, 0] }), fused: true, dtype: "f32" },
  { x: [1, 3, 9, 18], w: [5, 3, 3, 3], attrs: plain(), fused: true, dtype: "f64" },
  { x: [1, 16, 130, 131], w: [3, 16, 3, 3], attrs: plain(), fused: false, dtype: "f32" },
] as const;

/** Forward and back to the input, side by side. */
function graphOf(cases: readonly (typeof CASES)[number][]): Graph {
  const b = new Build("windows");
  const results = cases.flatMap(({ x, w, attrs, fused, dtype }) => {
    const side = (type: TensorType) => {
      const [p, q] = [b.param(type), b.param(type)];
      return fused ? b.call(relu, [b.call(mul, [p, q], {})], {}) : p;
    };
    const weights = b.param(tensorType(dtype, w));
    const y = b.call(conv, [side(tensorType(dtype, x)), weights], attrs);
    return [y, b.call(convInput, [side(y.type), weights], { ...attrs, size: x.slice(2) })];
  });
  return b.finish(results);
}

function run(target: Target, graph: Graph): readonly Elements[] {
  const executable = loadGraph(graph, { target });
  executable.poison();
  const random = hostRandom(9);
  graph.params.forEach(({ type }, i) => {
    const data = Float32Array.from({ length: elementsOf(type.shape) }, () => random.next() - 0.5);
    executable.write(type, at(executable.placed.params, i), data);
  });
  executable.run();
  return graph.results.map(({ type }, i) => executable.read(type, at(executable.placed.results, i)));
}

describe.skipIf(at(plainTargets, 1).missing)("windows packed along their places", () => {
  it("have the bits of WebAssembly, on one thread and on three", () => {
    const graph = graphOf(CASES);
    const want = run(at(plainTargets, 0).target(), graph);
    for (const native of plainTargets.slice(1, 3)) expect(run(native.target(), graph), native.name).toEqual(want);
  });

  it("are those whose image is too large for a copy", () => {
    const b = new Build("one");
    b.call(conv, [b.param(tensorType("f32", [1, 64, 128, 128])), b.param(tensorType("f32", [64, 64, 5, 5]))], plain());
    const { kernel } = lowerNode(at(b.nodes, 0), PLAIN_LOWERING);
    const nest = at(kernel.nests, 0) as ContractNest;
    const { s, v, swapped } = planProduct(nest, kernel.operands, { lanes: 16, fma: true, threads: 1 });
    expect([swapped ? s.kind : v.kind, columnsOf(nest, nest.cols)]).toEqual(["depth-major", 126]);
  });
});
