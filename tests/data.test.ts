/** @file Data from JavaScript: typed arrays of every kind, element types by name or among options, methods that do not exist. */
import { describe, expect, it } from "vitest";
import { arange, eye, full, linspace, oneHot, ones, random, spec, tensor, zeros } from "../src/api/index.ts";

describe("typed arrays", () => {
  it("of whole numbers become i32, bytes too, and floats stay floats", () => {
    const arrays = [
      new Int8Array([-1, 2]),
      new Uint8Array([0, 255]),
      new Uint8ClampedArray([0, 255]),
      new Int16Array([-5, 6]),
      new Uint16Array([0, 65535]),
      new Int32Array([-7, 8]),
      new Uint32Array([0, 9]),
      new BigInt64Array([-3n, 4n]),
      new BigUint64Array([3n, 4n]),
    ];
    for (const array of arrays) {
      const x = tensor(array);
      expect([x.dtype, x.toArray()]).toEqual(["i32", Array.from(array as ArrayLike<number>, Number)]);
    }
    expect(tensor(new Float32Array([0.5])).dtype).toBe("f32");
    expect(tensor(new Float64Array([0.1])).dtype).toBe("f64");
    expect(tensor(new Uint8Array([0, 128]), { dtype: "f32" }).toArray()).toEqual([0, 128]);
    expect(tensor(new Uint8Array([0, 1]), "bool").toArray()).toEqual([false, true]);
  });

  it("are refused where a number does not fit", () => {
    expect(() => tensor(new Uint32Array([2 ** 31]))).toThrow("2147483648");
    expect(() => tensor(new BigInt64Array([1n << 40n]))).toThrow("1099511627776");
    expect(() => tensor(new DataView(new ArrayBuffer(4)) as unknown as Uint8Array)).toThrow("not an array of numbers");
  });
});

describe("the element type", () => {
  it("is given by its name or among options, to every function that makes tensors", () => {
    const key = random.key(1);
    const both = (make: (type: "f64" | { dtype: "f64" }) => { dtype: string }) => [
      make("f64").dtype,
      make({ dtype: "f64" }).dtype,
    ];
    for (const make of [
      (type: "f64" | { dtype: "f64" }) => tensor([1], type),
      (type: "f64" | { dtype: "f64" }) => zeros([2], type),
      (type: "f64" | { dtype: "f64" }) => ones([2], type),
      (type: "f64" | { dtype: "f64" }) => full([2], 3, type),
      (type: "f64" | { dtype: "f64" }) => spec([2], type),
      (type: "f64" | { dtype: "f64" }) => arange(3, type),
      (type: "f64" | { dtype: "f64" }) => arange(0, 3, 1, type),
      (type: "f64" | { dtype: "f64" }) => linspace(0, 1, 3, type),
      (type: "f64" | { dtype: "f64" }) => eye(2, type),
      (type: "f64" | { dtype: "f64" }) => eye(2, 3, type),
      (type: "f64" | { dtype: "f64" }) => oneHot(tensor([1], "i32"), 2, type),
      (type: "f64" | { dtype: "f64" }) => random.normal(key, [2], type),
      (type: "f64" | { dtype: "f64" }) => random.uniform(key, [2], type),
    ]) {
      expect(both(make)).toEqual(["f64", "f64"]);
    }
    expect(arange(2, 8, 2).toArray()).toEqual([2, 4, 6]);
    expect(() => zeros([2], { dtyp: "f64" } as object)).toThrow("did you mean dtype");
    expect(() => zeros([2], "f65" as "f64")).toThrow("f65");
  });
});

describe("a method that does not exist", () => {
  const x = tensor([[1, 2]]) as unknown as Record<string, (...args: unknown[]) => unknown>;

  it("says which one is meant", () => {
    expect(() => x.gellu?.()).toThrow("tensors have no method gellu");
    expect(() => x.det?.()).toThrow("use linalg.det(x), a function");
    expect(() => x.gellu?.()).toThrow("did you mean gelu");
    expect(() => x.astype?.("f64")).toThrow("use cast(dtype)");
    expect(() => x.multiply?.(2)).toThrow("use mul(y)");
    expect(() => x.view?.(2)).toThrow("x.reshape([2, -1])");
  });

  it("is undefined where nothing is near, and to those who ask what an object is", async () => {
    expect(x.frobnicate).toBeUndefined();
    expect([x.then, x.length, x.nodeType, x.asymmetricMatch]).toEqual([undefined, undefined, undefined, undefined]);
    expect("astype" in x).toBe(false);
    expect(await tensor([1])).toBeDefined();
    expect([String(x), Object.hasOwn(x, "shape"), x instanceof Object]).toEqual([
      "Tensor(f32[1,2] [[1, 2]])",
      true,
      true,
    ]);
  });
});
