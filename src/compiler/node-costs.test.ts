/** @file What kernels are counted to do: exactly where the count is plain, and relations where it is a weight. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wasmDescription } from "../codegen/wasm/description.ts";
import { Build } from "../ir/build.ts";
import type { Node, Value } from "../ir/graph.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import { broadcast, sum } from "../ops/broadcast.ts";
import { call } from "../ops/control.ts";
import { conv, convInput } from "../ops/conv.ts";
import { add, div, relu } from "../ops/elementwise.ts";
import { exp, tanh } from "../ops/math.ts";
import { matmul } from "../ops/matmul.ts";
import { reshape, transpose } from "../ops/movement.ts";
import { fusedPipeline, runPasses } from "../passes/pipeline.ts";
import { addWork, NO_WORK, type Work } from "../target/work.ts";
import { TargetCosts } from "./node-costs.ts";

const description = wasmDescription(false);
const costs = new TargetCosts(description, description);

const f32 = (...shape: number[]): TensorType => tensorType("f32", shape);
const plain = { ta: false, tb: false };

/** The only node of what a body becomes after all passes. */
function fusedNode(types: readonly TensorType[], body: (b: Build, x: readonly Value[]) => Value): Node {
  const graph = fusedGraph(types, body);
  expect(graph.nodes).toHaveLength(1);
  return graph.nodes[0] as Node;
}

function fusedGraph(types: readonly TensorType[], body: (b: Build, x: readonly Value[]) => Value) {
  const b = new Build("f");
  const params = types.map((type) => b.param(type));
  return runPasses(b.finish([body(b, params)]), fusedPipeline);
}

function lone(types: readonly TensorType[], body: (b: Build, x: readonly Value[]) => Value): Work {
  const b = new Build("f");
  body(
    b,
    types.map((type) => b.param(type)),
  );
  return costs.workOf(b.nodes.at(-1) as Node);
}

it("targets without a key are told apart", () => {
  const keyOf = (target: typeof description): string => new TargetCosts(target, target).key;
  const one = { ...description, key: undefined };
  expect(keyOf(one)).toBe(keyOf(one));
  expect(keyOf(one)).not.toBe(keyOf({ ...one }));
});

describe("the work of a node", () => {
  it("is nothing for a view", () => {
    expect(lone([f32(4, 6)], (b, [x]) => b.call(reshape, [x as Value], { shape: [24] }))).toEqual(NO_WORK);
  });

  it("reads operands and writes results once, in one call", () => {
    const work = lone([f32(8, 16), f32(8, 16)], (b, [x, y]) => b.call(add, [x as Value, y as Value], {}));
    expect(work).toMatchObject({ productFlops: 0, bytes: 3 * 8 * 16 * 4, calls: 1 });
    expect(work.arithmetic).toBeGreaterThan(8 * 16);
  });

  it("has the flops of a product, its sides rounded up to the tile", () => {
    const product = (m: number, n: number, k: number): Work =>
      lone([f32(m, k), f32(k, n)], (b, [x, w]) => b.call(matmul, [x as Value, w as Value], plain));
    expect(product(8, 16, 10).productFlops).toBe(2 * 8 * 16 * 10);
    // 5 rows are two tiles of 3, 9 columns two of 8
    expect(product(5, 9, 10).productFlops).toBe(2 * 6 * 16 * 10);
    expect(product(8, 16, 10).bytes).toBe(4 * (80 + 160 + 128));
  });

  it("counts a product with one column as the sum that it is", () => {
    const work = lone([f32(64, 32), f32(32, 1)], (b, [x, w]) => b.call(matmul, [x as Value, w as Value], plain));
    expect(work.productFlops).toBe(0);
    expect(work.arithmetic).toBeGreaterThan(64 * 32);
  });

  it("counts no bytes for what stays inside a fused kernel", () => {
    const node = fusedNode([f32(64, 32), f32(32, 48), f32(48)], (b, [x, w, bias]) => {
      const y = b.call(matmul, [b.call(relu, [x as Value], {}), w as Value], plain);
      const wide = b.call(broadcast, [bias as Value], { shape: [64, 48], axes: [1] });
      return b.call(tanh, [b.call(add, [y, wide], {})], {});
    });
    expect(costs.workOf(node)).toMatchObject({ productFlops: 2 * 64 * 48 * 32, calls: 1 });
    expect(costs.workOf(node).bytes).toBe(4 * (64 * 32 + 32 * 48 + 48 + 64 * 48));
  });

  it("is less for a fused kernel than for its parts one by one", () => {
    const body = (b: Build, [x]: readonly Value[]): Value => {
      const y = b.call(exp, [b.call(add, [x as Value, x as Value], {})], {});
      return b.call(sum, [b.call(relu, [y], {})], { axes: [1] });
    };
    const b = new Build("f");
    const parts = costs.workOfGraph(b.finish([body(b, [b.param(f32(40, 64))])]));
    const whole = costs.workOf(fusedNode([f32(40, 64)], body));
    for (const key of ["arithmetic", "bytes", "calls"] as const) expect(whole[key]).toBeLessThan(parts[key]);
  });

  it("weighs functions by what they are made of", () => {
    const unary = (op: typeof relu): number => lone([f32(32, 32)], (b, [x]) => b.call(op, [x as Value], {})).arithmetic;
    const quotient = lone([f32(32, 32)], (b, [x]) => b.call(div, [x as Value, x as Value], {})).arithmetic;
    const total = lone([f32(32, 32)], (b, [x]) => b.call(add, [x as Value, x as Value], {})).arithmetic;
    expect(quotient).toBeGreaterThan(total);
    expect(unary(exp)).toBeGreaterThan(3 * quotient);
    expect(unary(tanh)).toBeGreaterThan(3 * quotient);
  });

  it("is twice as much for numbers of 64 bits", () => {
    const product = (dtype: "f32" | "f64"): Work =>
      lone([tensorType(dtype, [8, 8]), tensorType(dtype, [8, 8])], (b, [x, w]) =>
        b.call(matmul, [x as Value, w as Value], plain),
      );
    expect(product("f64").productFlops).toBe(2 * product("f32").productFlops);
    expect(product("f64").bytes).toBe(2 * product("f32").bytes);
  });

  it("knows that reading across memory takes longer", () => {
    const square = f32(64, 64);
    const turned = lone([square], (b, [x]) => b.call(transpose, [x as Value], { perm: [1, 0] }));
    const straight = lone([square], (b, [x]) => b.call(relu, [x as Value], {}));
    expect(turned.bytes).toBe(straight.bytes);
    expect(turned.arithmetic).toBeGreaterThan(straight.arithmetic);
  });

  it("counts no zeros between strides in the input gradient of a convolution", () => {
    const [x, w] = [f32(1, 8, 16, 16), f32(8, 8, 2, 2)];
    const window = { stride: [2, 2], lo: [0, 0], hi: [0, 0], dilation: [1, 1], groups: 1 };
    const forward = lone([x, w], (b, [image, kernel]) => b.call(conv, [image as Value, kernel as Value], window));
    const backward = lone([f32(1, 8, 8, 8), w], (b, [ct, kernel]) =>
      b.call(convInput, [ct as Value, kernel as Value], { ...window, size: [16, 16] }),
    );
    expect(backward.productFlops).toBe(forward.productFlops);
  });

  it("of a call is that of what it calls", () => {
    const inner = new Build("inner");
    const x = inner.param(f32(16, 16));
    const y = inner.call(matmul, [x, x], plain);
    const body = inner.finish([inner.call(matmul, [y, x], plain)]);
    const b = new Build("f");
    b.call(call, [b.param(f32(16, 16))], { checkpoint: false, name: "" }, { regions: [body] });
    expect(costs.workOf(b.nodes[0] as Node)).toEqual(costs.workOfGraph(body));
    expect(costs.workOfGraph(body)).toMatchObject({ productFlops: 4 * 16 ** 3, calls: 2 });
  });

  it("does not shrink when a tensor grows", () => {
    const extent = fc.integer({ min: 1, max: 40 });
    const cases = fc.tuple(extent, extent, extent, fc.integer({ min: 1, max: 3 }));
    fc.assert(
      fc.property(cases, ([m, n, k, more]) => {
        // by whole registers: an element more may well be cheaper than the single ones it completes
        const product = (rows: number): Work =>
          lone([f32(rows, k), f32(k, 2 * n)], (b, [x, w]) => b.call(matmul, [x as Value, w as Value], plain));
        const [less, greater] = [product(4 * m), product(4 * (m + more))];
        for (const key of ["productFlops", "arithmetic", "bytes"] as const) {
          expect(greater[key]).toBeGreaterThanOrEqual(less[key]);
        }
      }),
      { seed: 14, numRuns: 60 },
    );
  });

  it("adds up part by part", () => {
    const work: Work = { productFlops: 1, arithmetic: 2, bytes: 3, calls: 4 };
    expect(addWork(work, work)).toEqual({ productFlops: 2, arithmetic: 4, bytes: 6, calls: 8 });
    expect(addWork(work, NO_WORK)).toEqual(work);
  });
});
