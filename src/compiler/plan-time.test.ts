/** @file Times are positive, never fall when work grows, and add up over a plan. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nativeDescription } from "../codegen/native/description.ts";
import { wasmDescription } from "../codegen/wasm/description.ts";
import { Build } from "../ir/build.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { tensorType } from "../ir/type.ts";
import { conv, convWeight } from "../ops/conv.ts";
import { add } from "../ops/elementwise.ts";
import { matmul } from "../ops/matmul.ts";
import { planMs } from "../plan/cost/model.ts";
import { planProgram } from "../plan/plan.ts";
import type { Plan } from "../plan/problem.ts";
import { memorySpace } from "../target/space.ts";
import { type CostModel, msOf, NO_WORK, type Work } from "../target/work.ts";
import { TargetCosts } from "./node-costs.ts";

const amount = fc.double({ min: 0, max: 1e15, noNaN: true });
const works = fc.record({ productFlops: amount, arithmetic: amount, bytes: amount, calls: fc.nat(1e6) });
const rate = fc.double({ min: 1e3, max: 1e14, noNaN: true });
const models = fc.record({
  name: fc.constant("any"),
  productRate: rate,
  arithmeticRate: rate,
  byteRate: rate,
  cachedByteRate: rate,
  cacheBytes: fc.nat(2 ** 30),
  callSeconds: fc.double({ min: 1e-12, max: 1e-2, noNaN: true }),
});
const SEEDED = { seed: 14, numRuns: 300 } as const;

describe("the time of a kernel", () => {
  it("is nothing for no work and positive for any", () => {
    fc.assert(
      fc.property(works, models, (work, model) => {
        const none = work.productFlops + work.arithmetic + work.bytes + work.calls === 0;
        const ms = msOf(work, model);
        expect(Number.isFinite(ms)).toBe(true);
        if (!none) expect(ms).toBeGreaterThan(0);
        expect(msOf(NO_WORK, model)).toBe(0);
      }),
      SEEDED,
    );
  });

  it("never falls when any part of the work grows", () => {
    const parts = fc.constantFrom("productFlops", "arithmetic", "bytes", "calls" as const);
    fc.assert(
      fc.property(works, models, parts, fc.nat(1e9), (work, model, part, more) => {
        const grown: Work = { ...work, [part]: work[part as "bytes"] + more };
        expect(msOf(grown, model)).toBeGreaterThanOrEqual(msOf(work, model));
      }),
      SEEDED,
    );
  });

  it("is by hand: computing or moving, whichever takes longer, and the calls", () => {
    const model: CostModel = {
      ...{ name: "round", productRate: 4e9, arithmeticRate: 1e9, byteRate: 1e9, cachedByteRate: 4e9 },
      ...{ cacheBytes: 4e6, callSeconds: 1e-3 },
    };
    expect(msOf({ productFlops: 8e6, arithmetic: 3e6, bytes: 1e6, calls: 2 }, model)).toBeCloseTo(2 + 3 + 2, 9);
    expect(msOf({ productFlops: 0, arithmetic: 0, bytes: 4e6, calls: 1 }, model)).toBeCloseTo(1 + 1, 9);
    expect(msOf({ productFlops: 0, arithmetic: 0, bytes: 9e6, calls: 1 }, model)).toBeCloseTo(1 + 5 + 1, 9);
  });

  it("takes memory as uncached where a model says nothing of caches", () => {
    const model: CostModel = { name: "plain", productRate: 1, arithmeticRate: 1, byteRate: 1e9, callSeconds: 1e-9 };
    expect(msOf({ ...NO_WORK, bytes: 2e6 }, model)).toBeCloseTo(2, 9);
  });

  it("of a convolution by Winograd's algorithm is within a quarter of what was measured", () => {
    const described = { lanes: 16, fma: true, threads: 1 } as const;
    const [fast, slow] = [nativeDescription({ ...described, winograd: "paying" }), nativeDescription(described)];
    const [costs, plain] = [new TargetCosts(fast, fast), new TargetCosts(slow, slow)];
    const msOn = (node: Node, of: TargetCosts): number => msOf(of.workOf(node), of.rates);
    // GFLOP/s forward and to the weights (docs/decisions/0024-native-products.md).
    const measured = [
      [8, 64, 56, 330, 342],
      [8, 128, 28, 331, 341],
      [8, 256, 14, 260, 237],
      [8, 512, 7, 234, 181],
    ] as const;
    for (const [n, c, extent, forward, weights] of measured) {
      const b = new Build("layer");
      const attrs = { ...{ stride: [1, 1], lo: [1, 1], hi: [1, 1], dilation: [1, 1], groups: 1 } };
      const x = b.param(tensorType("f32", [n, c, extent, extent]));
      b.call(conv, [x, b.param(tensorType("f32", [c, c, 3, 3]))], attrs);
      b.call(convWeight, [x, x], { ...attrs, kernel: [3, 3] });
      const flops = 2 * 9 * n * c * c * extent * extent;
      const speeds = b.nodes.map((node) => flops / msOn(node, costs) / 1e6);
      [forward, weights].forEach((want, i) => {
        expect(Math.abs((speeds[i] ?? 0) / want - 1), `${c} at ${extent}`).toBeLessThan(0.25);
      });
      for (const node of b.nodes) expect(msOn(node, plain)).toBeGreaterThan(msOn(node, costs));
    }
  });
});

/** (x·w + x)·w as a plan without fusion; x is kept between runs. */
function planned(): { readonly plan: Plan; readonly graph: Graph } {
  const b = new Build("f");
  const [x, w] = [b.param(tensorType("f32", [32, 32])), b.param(tensorType("f32", [32, 32]))];
  const y = b.call(add, [b.call(matmul, [x, w], { ta: false, tb: false }), x], {});
  const graph = b.finish([b.call(matmul, [y, w], { ta: false, tb: false })]);
  const steps = graph.nodes.map((node) => ({
    node,
    reads: node.inputs,
    writes: node.outputs,
    ...{ scratch: [], inPlace: [], alias: null },
  }));
  const { name, params, results } = graph;
  const program = {
    name,
    params,
    results,
    steps,
    donated: new Map(),
    persistent: new Set([x]),
    spaces: [memorySpace(64)] as const,
  };
  return { plan: planProgram(program), graph };
}

describe("the time of a plan", () => {
  const description = wasmDescription(false);
  const model = description.rates;
  const costs = new TargetCosts(description, description);

  it("is that of its steps and of the arguments that are written", () => {
    const { plan, graph } = planned();
    const steps = graph.nodes.reduce((ms, node) => ms + msOf(costs.workOf(node), model), 0);
    const written = msOf({ ...NO_WORK, bytes: 2 * 32 * 32 * 4, calls: 1 }, model);
    expect(planMs(plan, costs)).toBeCloseTo(steps + written, 12);
  });

  it("halves on a machine that is twice as fast", () => {
    const { plan } = planned();
    const twice: CostModel = {
      ...model,
      productRate: 2 * model.productRate,
      arithmeticRate: 2 * model.arithmeticRate,
      byteRate: 2 * model.byteRate,
      cachedByteRate: 2 * (model.cachedByteRate ?? 0),
      callSeconds: model.callSeconds / 2,
    };
    const halved = new TargetCosts(description, { rates: twice });
    expect(planMs(plan, halved)).toBeCloseTo(planMs(plan, costs) / 2, 12);
  });
});
