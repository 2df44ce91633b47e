/** @file Products on tensor cores on the device at hand, against products in f32 (cuda-device.ts). */
import { at } from "../../src/base/invariant.ts";
import { hostRandom } from "../../src/base/random.ts";
import { Build } from "../../src/ir/build.ts";
import type { Graph, Value } from "../../src/ir/graph.ts";
import { elementsOf, tensorType } from "../../src/ir/type.ts";
import { type DType, type TypedArray, typeOf as typeFacts } from "../../src/kernel/dtype.ts";
import { cudaTarget } from "../../src/node/cuda/target.ts";
import { add } from "../../src/ops/elementwise.ts";
import { matmul } from "../../src/ops/matmul.ts";
import { slice } from "../../src/ops/slice.ts";
import type { Target, TargetAnswer } from "../../src/runtime/device.ts";
import { type DeviceReport, difference } from "./device-report.ts";
import { runGraph } from "./run-graph.ts";

export function found(answer: TargetAnswer): Target {
  if (typeof answer !== "string") return answer;
  console.error(answer);
  process.exit(1);
}

/** [batch, rows, columns, depth], and which sides are transposed. */
const PRODUCTS = [
  [[1, 128, 192, 64], false, false],
  [[1, 300, 500, 200], false, true],
  [[1, 300, 500, 200], true, false],
  [[1, 101, 67, 77], false, false],
  [[1, 101, 67, 77], true, true],
  [[5, 130, 200, 96], false, false],
  [[3, 64, 1000, 1000], false, true],
  [[1, 768, 768, 4096], true, false],
  [[1, 257, 129, 5001], false, false],
  [[1, 2048, 1536, 512], false, true],
] as const;

/** x · w + bias, a second result of it, and a side that is computed on the way in. */
function productGraph([batch, m, n, k]: readonly number[], ta: boolean, tb: boolean, dtype: DType = "f32"): Graph {
  const b = new Build("product");
  const typeOf = (...shape: readonly (number | undefined)[]) =>
    tensorType(dtype, (batch === 1 ? shape : [batch, ...shape]) as number[]);
  const x = b.param(ta ? typeOf(k, m) : typeOf(m, k));
  const w = b.param(tb ? typeOf(n, k) : typeOf(k, n));
  const bias = b.param(typeOf(m, n));
  const y = b.call(add, [b.call(matmul, [x, w], { ta, tb }), bias], {});
  return b.finish([y, b.call(add, [y, y], {}), b.call(matmul, [b.call(add, [x, x], {}), w], { ta, tb })]);
}

/** Whole numbers, whose products and sums are exact in every type: bits are compared with those of f32. */
export function tensorProducts(report: DeviceReport): void {
  const [target, plain] = [found(cudaTarget({ products: "tf32" })), found(cudaTarget())];
  const wrong = PRODUCTS.flatMap(([shape, ta, tb]) => {
    const random = hostRandom(5);
    const whole = (n: number): Float64Array =>
      Float64Array.from({ length: n }, () => Math.floor(random.next() * 9) - 4);
    const graph = productGraph(shape, ta, tb);
    const inputs = graph.params.map(({ type }) => whole(elementsOf(type.shape)));
    const [got, want] = [target, plain].map((on) => runGraph(on, graph, (_, i) => at(inputs, i)));
    const bad = (want ?? []).map((expected, i) => difference(at(got ?? [], i), expected));
    return bad.every((e) => e < 0) ? [] : [`${shape.join("x")} ${ta} ${tb}: elements ${bad.join(", ")}`];
  });
  report.compared("products on tensor cores", wrong, PRODUCTS.length);
  tiles(report);
}

/** Numbers that have to be rounded: tiles change no bit, and the error is that of eleven significant bits. */
function tiles(report: DeviceReport): void {
  const targets = ([64, 128, 192, 256] as const).map((tileCols) => found(cudaTarget({ products: "tf32", tileCols })));
  const plain = found(cudaTarget());
  let most = 0;
  const wrong = PRODUCTS.flatMap(([shape, ta, tb]) => {
    const random = hostRandom(6);
    const graph = productGraph(shape, ta, tb);
    const inputs = graph.params.map(({ type }) =>
      Float64Array.from({ length: elementsOf(type.shape) }, () => Math.fround(random.next() - 0.5)),
    );
    const run = (on: Target) => runGraph(on, graph, (_, i) => at(inputs, i));
    const [first, ...others] = targets.map(run);
    const exact = run(plain);
    (first ?? []).forEach((got, i) => {
      most = Math.max(most, relativeError(got, at(exact, i)));
    });
    return others.every((other) => other.every((got, i) => difference(got, at(first ?? [], i)) < 0))
      ? []
      : [`${shape}`];
  });
  report.compared("products with other tiles", wrong, PRODUCTS.length);
  console.log(`  relative error against f32 at most ${most.toExponential(1)}`);
  if (!(most < 5e-4)) report.failures += 1;
}

function relativeError(got: TypedArray, want: TypedArray): number {
  let [difference, size] = [0, 0];
  for (let i = 0; i < got.length; i++) {
    difference += ((got[i] ?? 0) - (want[i] ?? 0)) ** 2;
    size += (want[i] ?? 0) ** 2;
  }
  return Math.sqrt(difference / size);
}

// ---- bf16 and f16 -------------------------------------------------------------------------------------------------

/** Whole numbers, then the same matrices brought in all ways, with tiles of all widths. */
export function halfProducts(report: DeviceReport): void {
  const [target, plain] = [found(cudaTarget({ products: "tf32" })), found(cudaTarget())];
  const random = hostRandom(5);
  const whole = (n: number): Float64Array => Float64Array.from({ length: n }, () => Math.floor(random.next() * 9) - 4);
  for (const dtype of ["bf16", "f16"] as const) {
    const some = dtype === "bf16" ? PRODUCTS : PRODUCTS.slice(1, 3);
    const wrong = some.flatMap(([shape, ta, tb]) => {
      const graph = productGraph(shape, ta, tb, dtype);
      const inputs = graph.params.map(({ type }) => encoded(dtype, whole(elementsOf(type.shape))));
      const [got, want] = [target, plain].map((on) => runGraph(on, graph, (_, i) => at(inputs, i)));
      const bad = (want ?? []).map((expected, i) => difference(at(got ?? [], i), expected));
      return bad.every((e) => e < 0) ? [] : [`${shape.join("x")} ${ta} ${tb}: elements ${bad.join(", ")}`];
    });
    report.compared(`products of ${dtype}`, wrong, some.length);
  }
  sameWays(report, [264, 520, 1096]);
  sameWays(report, [768, 1536, 4096]);
}

/** Numbers as memory has them. */
const encoded = (dtype: "bf16" | "f16", data: Float64Array): Float64Array =>
  data.map((x) => typeFacts(dtype).encoding?.write(x) ?? Number.NaN);

/** A matrix with its rows and columns exchanged, or with one more element in each row. */
const turned = (data: Float64Array, cols: number): Float64Array => {
  const rows = data.length / cols;
  return data.map((_, i) => at(data, (i % rows) * cols + Math.floor(i / rows)));
};
/** 65,536 in bf16. */
const FILLER = 0x4780;
const oddRows = (data: Float64Array, cols: number): Float64Array =>
  Float64Array.from({ length: (data.length / cols) * (cols + 1) }, (_, i) =>
    i % (cols + 1) === cols ? FILLER : at(data, Math.floor(i / (cols + 1)) * cols + (i % (cols + 1))),
  );

/**
 * One product of random numbers, its matrices as they are, transposed, and with rows at odd distances, which threads bring and
 * not the copy engine: all have the same bits. Products of bf16 are exact in f32, so that only the order of sums differs from f32.
 */
function sameWays(report: DeviceReport, [m, n, k]: readonly [number, number, number]): void {
  const b = new Build("ways");
  const param = (...shape: number[]): Value => b.param(tensorType("bf16", shape));
  const [x, w, xt, wt, xOdd, wOdd] = [
    ...[param(m, k), param(k, n), param(k, m), param(n, k)],
    ...[param(m, k + 1), param(k, n + 1)],
  ] as [Value, Value, Value, Value, Value, Value];
  const part = (v: Value, limit: readonly number[]): Value =>
    b.call(slice, [v], { start: [0, 0], limit, stride: [1, 1] });
  const product = (left: Value, right: Value, ta: boolean, tb: boolean): Value =>
    b.call(matmul, [left, right], { ta, tb, wide: true });
  const graph = b.finish([
    product(x, w, false, false),
    product(xt, w, true, false),
    product(x, wt, false, true),
    product(xt, wt, true, true),
    product(part(xOdd, [m, k]), part(wOdd, [k, n]), false, false),
    product(xt, part(wOdd, [k, n]), true, false),
  ]);
  const random = hostRandom(6);
  const drawn = (count: number): Float64Array =>
    encoded(
      "bf16",
      Float64Array.from({ length: count }, () => random.next() - 0.5),
    );
  const [left, right] = [drawn(m * k), drawn(k * n)];
  const inputs = [left, right, turned(left, k), turned(right, n), oddRows(left, k), oddRows(right, n)];
  const run = (on: Target) => runGraph(on, graph, (_, i) => at(inputs, i));
  const [want] = run(found(cudaTarget()));
  const all = ([64, 128, 192, 256] as const).flatMap((tileCols) =>
    run(found(cudaTarget({ products: "tf32", tileCols }))),
  );
  const wrong = all.flatMap((got, i) => {
    const e = difference(got, at(all, 0));
    return e < 0 ? [] : [`way ${i % 6}, tile ${Math.floor(i / 6)}: element ${e} is ${got[e]}, not ${at(all, 0)[e]}`];
  });
  report.compared(`one product of bf16 in all ways, ${m} x ${n} x ${k}`, wrong, all.length);
  const error = relativeError(at(all, 0), want as TypedArray);
  console.log(`  relative error against f32 ${error.toExponential(1)}`);
  if (!(error < 1e-5)) report.failures += 1;
}
