/** @file Long sums: the same bits as the interpreter's, and errors that do not grow with their length. */
import { expect, test } from "vitest";
import { compile, full, tensor } from "../src/api/index.ts";
import { hostRandom } from "../src/base/random.ts";
import { isKernel } from "../src/codegen/placed.ts";
import { wasmDescription } from "../src/codegen/wasm/description.ts";
import { assemble } from "../src/compiler/assemble.ts";
import { interpretKernel } from "../src/kernel/interpret.ts";
import { Executable } from "../src/runtime/executable.ts";
import { wasmTarget } from "../src/runtime/wasm-target.ts";
import { traceFunction } from "../src/trace/function.ts";
import type { Tensor } from "../src/trace/tensor.ts";

function bitsOfBoth(fn: (...args: Tensor[]) => Tensor, args: readonly Tensor[]): readonly [Float32Array, Float32Array] {
  const { graph } = traceFunction(fn as never, args);
  const executable = new Executable(assemble({ graph }, wasmDescription(false)), wasmTarget(false));
  const { params, results, kernels, plan } = executable.placed;
  const arena = new ArrayBuffer(plan.height + 64);
  for (const [i, arg] of args.entries()) {
    const data = arg.data() as Float32Array;
    executable.write(arg, params[i] as number, data);
    new Float32Array(arena, params[i], data.length).set(data);
  }
  executable.run();
  for (const { kernel, addresses } of kernels.filter(isKernel)) {
    interpretKernel(
      kernel,
      kernel.operands.map((o, i) => new Float32Array(arena, addresses[i], o.elements)),
    );
  }
  const [result] = graph.results;
  if (!result) throw new Error("no result");
  const elements = result.type.shape.reduce((n, e) => n * e, 1);
  return [
    executable.read(result.type, results[0] as number) as Float32Array,
    new Float32Array(arena, results[0], elements).slice(),
  ];
}

function noise(...shape: number[]): Tensor {
  const random = hostRandom(3);
  return tensor(
    Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => random.next() - 0.4),
    { shape },
  );
}

test.each([
  ["a row of several folds", (x: Tensor) => x.sum(), [noise(3 * 4096 + 77)]],
  ["a row of whole folds", (x: Tensor) => x.sum(), [noise(2 * 4096)]],
  ["many rows", (x: Tensor) => x.sum(1), [noise(3, 5000)]],
  ["columns", (x: Tensor) => x.sum(0), [noise(700, 37)]],
  ["columns of one", (x: Tensor) => x.sum(0), [noise(1500, 1)]],
  ["two axes apart", (x: Tensor) => x.sum([0, 2]), [noise(40, 3, 300)]],
  ["an outer axis of two", (x: Tensor) => x.sum([0, 1]), [noise(3, 400, 21)]],
  ["more folds than a middle sum takes", (x: Tensor) => x.sum(0), [noise(256 * 256 + 300, 1)]],
  ["a mean of squares", (x: Tensor) => x.square().mean(), [noise(9001)]],
  ["a deep product", (x: Tensor, y: Tensor) => x.matmul(y), [noise(5, 1300), noise(1300, 9)]],
] as const)("%s has the interpreter's bits", (_, fn, args) => {
  const [wasm, plain] = bitsOfBoth(fn as never, args);
  expect(wasm).toEqual(plain);
});

test("a constant summed two million times keeps five digits", () => {
  const n = 2_000_000;
  const total = n * Math.fround(0.1);
  const relative = (x: Tensor): number => Math.abs(x.item() / total - 1);
  const one = tensor(1);
  expect(relative(compile((x) => full([n], 0.1).mul(x).sum())(one))).toBeLessThan(1e-5);
  expect(relative(compile((x) => full([n, 1], 0.1).mul(x).sum(0).reshape([]))(one))).toBeLessThan(1e-5);
  const product = compile((x) =>
    full([1, n], 0.1)
      .mul(x)
      .matmul(full([n, 1], 1))
      .reshape([]),
  );
  expect(relative(product(one))).toBeLessThan(5e-5);
});

test("a sum of forty million ones counts them all", () => {
  expect(compile((x) => full([40_000_000], 1).mul(x).sum())(tensor(1)).item()).toBe(40_000_000);
});
