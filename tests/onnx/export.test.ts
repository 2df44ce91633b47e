/** @file Functions as ONNX models and back: every operation on its samples, random programs, programs of this project, refusals. */
import { describe, expect, it } from "vitest";
import { applyGraph } from "../../src/api/apply.ts";
import {
  checkpoint,
  cond,
  gelu,
  maxPool2d,
  random,
  scan,
  spec,
  type Tensor,
  tensor,
  whileLoop,
} from "../../src/api/index.ts";
import { at } from "../../src/base/invariant.ts";
import { exportOnnx, readOnnx } from "../../src/exchange/onnx/index.ts";
import { Build } from "../../src/ir/build.ts";
import { evaluate } from "../../src/ir/evaluate.ts";
import type { Graph } from "../../src/ir/graph.ts";
import type { AnyOp, Reference, Sample } from "../../src/ir/op.ts";
import { typeText } from "../../src/ir/type.ts";
import type { DType } from "../../src/kernel/dtype.ts";
import * as nn from "../../src/nn/index.ts";
import { allOps } from "../../src/ops/all.ts";
import { traceFunction } from "../../src/trace/function.ts";
import { elementsFor } from "../support/onnx-samples.ts";
import { randomGraph, randomInputs } from "../support/random-graph.ts";

/** Operations that no forward program of a network has, or that ONNX has no form of. */
const WITHOUT: ReadonlySet<string> = new Set(
  (
    "atan2 erfinv lgamma polygamma shift_left shift_right pack_bits unpack_bits linear_scan cummax cummin searchsorted " +
    "cholesky triangular_solve solve inverse determinant qr eigh svd pinv matrix_exp fft rfft irfft " +
    "scatter_max scatter_min scatter_mul scatter_max_along scatter_min_along scatter_mul_along " +
    "dynamic_slice dynamic_update fold conv_weight matmul_onto grouped_matmul grouped_outer permute_rows " +
    "vary shard_in shard_out all_reduce all_reduce_max all_gather reduce_scatter all_to_all permute broadcast_from device_index " +
    "keep_short kept_in pack_codes unpack_codes dynamic_code dynamic_value group_min group_max pack_groups unpack_groups " +
    "random_bits random_uniform random_normal random_integer random_bernoulli shuffle attend_backward " +
    "record rewind fused"
  ).split(" "),
);

/** Read back and evaluated as a graph again. */
function again(file: Uint8Array, inputs: readonly Reference[]): readonly Reference[] {
  const model = readOnnx(file, { parameters: () => false });
  expect(model.inputs).toHaveLength(inputs.length);
  const apply = (...args: Tensor[]): readonly Tensor[] => Object.values(model.apply(model.params, args));
  const { graph, captures } = traceFunction(
    apply as never,
    model.inputs.map(({ dtype, shape }) => spec(shape as number[], dtype)),
  );
  return evaluate(graph, [...inputs, ...captures.map(({ tensor: own }) => Float64Array.from(own.data()))]);
}

const exported = (graph: Graph): Uint8Array =>
  exportOnnx(
    (...args: Tensor[]) => applyGraph(graph, args),
    ...graph.params.map(({ type }) => spec(type.shape, type.dtype)),
  );

/** Of what is computed in several operations, which are rounded one by one, relative to the largest element. */
const TOLERANCE: Readonly<Partial<Record<DType, number>>> = { bf16: 2 ** -6, f16: 2 ** -9 };

function expectClose(found: readonly Reference[], wanted: readonly Reference[], what: string, tolerance = 3e-6): void {
  expect(found.length).toBe(wanted.length);
  wanted.forEach((values, r) => {
    const largest = values.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 1e-3);
    values.forEach((x, i) => {
      const y = at(at(found, r) as readonly number[] & Reference, i);
      if (Object.is(x, y) || x === y) return;
      if (!(Math.abs(x - y) <= tolerance * largest))
        throw new Error(`${what}: result ${r}, element ${i}: ${y}, not ${x}`);
    });
  });
}

function expectRoundTrip(graph: Graph, inputs: readonly Reference[], what: string): void {
  expectClose(again(exported(graph), inputs), evaluate(graph, inputs), what);
}

function graphOf(op: AnyOp, sample: Sample<unknown>): Graph {
  const b = new Build(op.name);
  return b.finish(
    b.callAll(
      op,
      sample.inputs.map((type) => b.param(type)),
      sample.attrs as never,
    ),
  );
}

describe("operations", () => {
  const tested = allOps.filter((op) => op.samples().length > 0 && !WITHOUT.has(op.name));

  it.each(tested.map((op) => [op.name, op] as const))("%s", (name, op) => {
    let written = 0;
    for (const sample of op.samples() as readonly Sample<unknown>[]) {
      const { axis = -1 } = sample.attrs as { readonly axis?: number };
      // every index into nothing is out of range
      if (name.startsWith("take") || name.startsWith("gather")) if (sample.inputs[0]?.shape[axis] === 0) continue;
      const graph = graphOf(op, sample);
      let file: Uint8Array;
      try {
        file = exported(graph);
      } catch (error) {
        // some have a form for some element types or attributes; the error says so
        expect(String(error)).toContain("exportOnnx: operations without a form: ");
        continue;
      }
      const inputs = elementsFor(sample);
      const tolerances = graph.params.map(({ type }) => TOLERANCE[type.dtype] ?? 3e-6);
      expectClose(
        again(file, inputs),
        evaluate(graph, inputs),
        `${name} of ${sample.inputs.map(typeText).join(", ")} ${JSON.stringify(sample.attrs)}`,
        Math.max(3e-6, ...tolerances),
      );
      written++;
    }
    expect(written).toBeGreaterThan(0);
  });

  it("refuses the others by name, all at once", () => {
    const fn = (x: Tensor): readonly Tensor[] => [x.erfinv(), random.normal(random.key(0), [3]).add(x)];
    expect(() => exportOnnx(fn, spec([3]))).toThrow(
      /operations without a form: erfinv \(has no form in ONNX\), random_normal \(has no form in ONNX\)/,
    );
    for (const name of WITHOUT) expect(allOps.map((op) => op.name)).toContain(name);
  });
});

describe("programs", () => {
  it.each([1, 2, 3, 4, 5, 6])("random ones of seed %i come back", (seed) => {
    const graph = randomGraph(seed);
    try {
      expectRoundTrip(graph, randomInputs(graph, seed), `seed ${seed}`);
    } catch (error) {
      expect(String(error)).toContain("operations without a form");
    }
  });

  it("keep names of the user's tree, calls, attention, pooling, loops and branches", () => {
    const model = nn.module(
      { table: nn.embedding(7, 8), blocks: nn.transformerBlock(8, { heads: 2, causal: true }), head: nn.linear(8, 3) },
      ({ table, blocks, head }, ids) => head(blocks(table(ids))),
    );
    const params = model.init(0);
    const ids = tensor([[1, 2, 6, 0]], { dtype: "i32" });
    const file = exportOnnx(
      (p: typeof params, x: Tensor) => ({ scores: model.apply(p, x) }),
      params,
      spec([1, 4], "i32"),
    );
    const back = readOnnx(file);
    expect(back.outputs).toEqual(["scores"]);
    expect(back.inputs).toEqual([{ name: "x", dtype: "i32", shape: [1, 4] }]);
    expect(Object.keys(back.params)).toContain("blocks.attention.qkv.w");
    expect(back.params["head.w"]?.toArray()).toEqual(params.head.w.toArray());
    const difference = (a: Tensor | undefined, b: Tensor): number => (a as Tensor).sub(b).abs().max().item();
    expect(difference(back.apply(back.params, [ids]).scores, model.apply(params, ids))).toBeLessThan(1e-6);

    const image = random.normal(random.key(1), [1, 2, 6, 6]);
    const conv = nn.conv2d(2, 3, 3, { padding: 1 });
    const own = conv.init(0);
    const see = checkpoint((v: Tensor) => maxPool2d(gelu(conv.apply(own, v)), 2));
    const pooled = readOnnx(exportOnnx(see, spec([1, 2, 6, 6])));
    expect(difference(pooled.apply(pooled.params, [image]).result, see(image))).toBeLessThan(1e-6);

    const loops = (x: Tensor): readonly Tensor[] => {
      const [last, rows] = scan(
        (carry: Tensor, row: Tensor) => [carry.add(row).tanh(), carry.mul(2)] as const,
        x.slice([0]),
        x,
      );
      const halved = whileLoop(
        (v: Tensor) => v.sum().greater(1),
        (v: Tensor) => v.mul(0.5),
        last.abs(),
      );
      return [
        last,
        rows,
        halved,
        cond(
          x.sum().greater(0),
          (v: Tensor) => v.mul(2),
          (v: Tensor) => v.sub(1),
          x,
        ),
      ];
    };
    const looped = readOnnx(exportOnnx(loops, spec([70, 2])));
    const given = random.normal(random.key(2), [70, 2]);
    const results = Object.values(looped.apply(looped.params, [given]));
    loops(given).forEach((wanted, i) => void expect(difference(results[i], wanted)).toBeLessThan(1e-6));
  });

  it("write parameters that are tensors, inputs that are specs, and what is closed over", () => {
    const scale = tensor([2, 3]);
    const file = exportOnnx(
      (p: { layers: readonly Tensor[] }, x: Tensor) => x.mul(p.layers[0] as Tensor).add(scale),
      { layers: [tensor([4, 5])] },
      spec([2]),
    );
    const model = readOnnx(file);
    expect(Object.keys(model.params)).toEqual(["layers.0", "constant"]);
    expect(model.apply(model.params, { x: tensor([1, 1]) }).result?.toArray()).toEqual([6, 8]);
    expect(() => exportOnnx(3 as never)).toThrow("exportOnnx");
  });
});
