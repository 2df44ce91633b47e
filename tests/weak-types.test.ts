/**
 * @file Constants that are made from plain numbers without an element type take the float type of the tensor that they meet, with
 * all their digits; everything else is an error that names both types.
 */
import { describe, expect, test } from "vitest";
import {
  compile,
  eye,
  full,
  grad,
  linspace,
  ones,
  random,
  type Tensor,
  tensor,
  where,
  zeros,
} from "../src/api/index.ts";

const f64 = (...values: number[]): Tensor => tensor(values, { dtype: "f64" });
const x = f64(1, 2, 3);

describe("a constant without an element type", () => {
  const cases: Readonly<Record<string, readonly [() => Tensor, readonly number[]]>> = {
    "tensor of numbers": [() => tensor([0.1, 0.2, 0.3]), [0.1, 0.2, 0.3]],
    "tensor of a number": [() => tensor(0.1), [0.1, 0.1, 0.1]],
    full: [() => full([3], 0.1), [0.1, 0.1, 0.1]],
    zeros: [() => zeros([3]), [0, 0, 0]],
    ones: [() => ones([3]), [1, 1, 1]],
    linspace: [() => linspace(0, 0.3, 3), [0, 0.15, 0.3]],
  };
  test.each(Object.entries(cases))("%s takes f64 from what it meets, with all digits", (_, [make, numbers]) => {
    const want = [1, 2, 3].map((n, i) => n + (numbers[i] as number));
    const f = (v: Tensor): Tensor[] => [v.add(make()), make().add(v)];
    for (const sums of [f(x), compile(f)(x)]) {
      for (const sum of sums) {
        expect(sum.dtype).toBe("f64");
        expect(sum.toArray()).toEqual(want);
      }
    }
    // made before the function is traced
    const made = make();
    expect(compile((v: Tensor) => v.add(made))(x).toArray()).toEqual(want);
    // and alone it is f32
    expect(make().dtype).toBe("f32");
    expect(make().add(make()).dtype).toBe("f32");
  });

  test("meets in products, choices and gradients", () => {
    const m = f64(1, 2, 3, 4).reshape([2, 2]);
    for (const run of [(f: (v: Tensor) => Tensor) => f(m), (f: (v: Tensor) => Tensor) => compile(f)(m)]) {
      expect(run((v) => v.matmul(eye(2))).toArray()).toEqual([
        [1, 2],
        [3, 4],
      ]);
      expect(run((v) => tensor([[0.1, 0]]).matmul(v)).toArray()).toEqual([[0.1 * 1, 0.1 * 2]]);
      expect(run((v) => where(v.greater(2), v, zeros([2, 2]))).toArray()).toEqual([
        [0, 0],
        [3, 4],
      ]);
      expect(run((v) => grad((w: Tensor) => w.mul(full([2, 2], 0.1)).sum())(v)).toArray()).toEqual([
        [0.1, 0.1],
        [0.1, 0.1],
      ]);
    }
  });

  test("that was changed in place has the type that it was changed in", () => {
    const f = (v: Tensor): Tensor => {
      const buffer = zeros([3]);
      buffer.setAt(0, 5);
      return buffer.add(v);
    };
    expect(() => compile(f)(x)).toThrow(/element types differ: f32\[3\], f64\[3\]/);
    expect(compile((v: Tensor) => f(v.cast("f32")))(x).toArray()).toEqual([6, 2, 3]);
  });

  test("keeps its numbers, whatever becomes of the array that it was made from", () => {
    const numbers = [0.1, 0.2, 0.3];
    const made = tensor(numbers);
    numbers[0] = 9;
    expect(x.add(made).toArray()).toEqual([1.1, 2.2, 3.3]);
  });
});

describe("types that differ are an error that names both and the fix", () => {
  const mismatch =
    /DtypeMismatch: add: element types differ: f64\[3\], f32\[3\][\s\S]*help: convert one side: cast\(x, "f32"\)/;
  test.each<readonly [string, () => Tensor]>([
    ["a type that was asked for", () => tensor([1, 2, 3], { dtype: "f32" })],
    ["a typed array", () => tensor(new Float32Array(3))],
    ["random numbers", () => random.normal(random.key(0), [3])],
    ["something computed", () => tensor([1, 2, 3]).mul(2)],
  ])("%s", (_, make) => {
    expect(() => x.add(make())).toThrow(mismatch);
    expect(() => compile((v: Tensor) => v.add(make()))(x)).toThrow(mismatch);
  });

  test("integers", () => {
    expect(() => x.add(tensor([1, 2, 3], { dtype: "i32" }))).toThrow(/element types differ: f64\[3\], i32\[3\]/);
    expect(() => tensor([1, 2, 3], { dtype: "i32" }).add(ones([3]))).toThrow(
      /element types differ: i32\[3\], f32\[3\]/,
    );
  });
});
