/** @file Programs that once went wrong, each as small as it could be made. */
import { expect, test } from "vitest";
import "./support/host.ts";
import {
  checkpoint,
  compile,
  concat,
  full,
  grad,
  ones,
  random,
  stack,
  type Tensor,
  tensor,
  valueAndGrad,
} from "../src/api/index.ts";

const first = tensor([0], { dtype: "i32" });
const hundred = tensor([[100, 100]]);
const square = tensor([
  [1, 2],
  [3, 4],
]);

test("a scatter into a view does not write over what it is a view of", () => {
  const scatter = (x: Tensor): Tensor => x.transpose().scatterAdd(first, hundred);
  expect(compile(scatter)(square).toArray()).toEqual([
    [101, 103],
    [2, 4],
  ]);
  expect(grad((x) => scatter(x).square().sum())(square).toArray()).toEqual([
    [202, 4],
    [206, 8],
  ]);
  expect(compile((x) => x.flip(0).scatterAdd(first, hundred))(square).toArray()).toEqual([
    [103, 104],
    [1, 2],
  ]);
});

test("a scatter into part of a tensor compiles", () => {
  const f = compile((x) => x.slice([[0, 2]]).scatterAdd(first, ones([1, 3])));
  expect(f(ones([4, 3])).toArray()).toEqual([
    [2, 2, 2],
    [1, 1, 1],
  ]);
});

test("a checkpointed normalisation with a scale is fused without a cycle", () => {
  const norm = (x: Tensor, s: Tensor): Tensor => {
    const d = x.sub(x.mean(0));
    return d.mul(d.square().mean(0).add(1).rsqrt()).mul(s);
  };
  const x = random.normal(random.key(0), [4, 3]);
  const loss = (f: typeof norm) =>
    valueAndGrad((v: Tensor, s: Tensor) => f(v, s).square().sum(), { argnums: [0, 1] })(x, ones([3]));
  const text = (result: unknown): string => JSON.stringify(result, (_, v) => (v?.toArray ? v.toArray() : v));
  expect(text(loss(checkpoint(norm)))).toBe(text(loss(norm)));
});

test("more parts than a function may have parameters can be put together", () => {
  const parts = Array.from({ length: 1500 }, (_, i) => tensor([i]));
  expect(concat(parts).sum().item()).toBe((1500 * 1499) / 2);
  const many = compile((x) => stack(Array.from({ length: 600 }, (_, i) => x.mul(i))).sum());
  expect(many(tensor([1, 2])).item()).toBe(3 * 300 * 599);
});

test("a tensor with more elements than can be numbered is refused", () => {
  const f = compile((x) => full([65536, 32768], 1).mul(x).sum());
  expect(() => f(tensor(1))).toThrow(/ShapeMismatch: full: .*\[65536,32768\] would have 2,147,483,648 elements/);
});

test.each(["wasm", "native"] as const)("columns at other distances have code of their own on %s", (target) => {
  const rows = 9;
  const x = random.normal(random.key(0), [rows, 3], { dtype: "f64" });
  const pair = (v: Tensor, i: number, j: number): Tensor => v.slice([null, i]).add(v.slice([null, j]).mul(2));
  const both = compile((v: Tensor, w: Tensor) => [pair(v, 0, 1), pair(w, 0, 2), pair(w, 2, 1)], { target });
  const table = x.toArray() as number[][];
  const wanted = ([i, j]: readonly [number, number]): number[] =>
    table.map((row) => (row[i] ?? Number.NaN) + 2 * (row[j] ?? Number.NaN));
  expect(both(x, x.add(0)).map((y) => y.toArray())).toEqual(
    (
      [
        [0, 1],
        [0, 2],
        [2, 1],
      ] as const
    ).map(wanted),
  );
});
