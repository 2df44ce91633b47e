/** @file Tensors of bf16, f16, i8 and u8: from and to JavaScript, and in files. */
import { expect, test } from "vitest";
import { load, loadNpy, ones, save, saveNpy, spec, tensor, zeros } from "../src/api/index.ts";

const NUMBERS = [0, -0, 1.5, 255, -300, 70000, 1e-8, Number.NaN, Number.NEGATIVE_INFINITY];

test("are made from numbers and read as numbers", () => {
  const half = tensor(NUMBERS, { dtype: "f16" });
  expect(half.toArray()).toEqual([0, -0, 1.5, 255, -300, Number.POSITIVE_INFINITY, 0, Number.NaN, -Infinity]);
  expect(half.data()).toBeInstanceOf(Uint16Array);
  expect(half.data()[7]).toBe(0x7e00);
  expect(tensor(NUMBERS, { dtype: "bf16" }).toArray()).toEqual([
    ...[0, -0, 1.5, 255, -300, 70144, 1.0011717677116394e-8, Number.NaN, -Infinity],
  ]);
  expect(half.cast("bf16").cast("f32").dtype).toBe("f32");
  expect(tensor([1.25], { dtype: "f16" }).add(0.25).item()).toBe(1.5);
  expect(ones([2], "bf16").mul(3).toArray()).toEqual([3, 3]);
  expect(() => tensor([300], { dtype: "u8" })).toThrow(/whole numbers from 0 to 255/);
  expect(() => ones([2], "bf16").add(ones([2]).add(1))).toThrow(/element types differ: bf16\[2\], f32\[2\]/);
});

test("bytes wrap around, and conversions to them saturate", () => {
  expect(tensor([250, 3], { dtype: "u8" }).add(10).toArray()).toEqual([4, 13]);
  expect(tensor([100], { dtype: "i8" }).mul(2).toArray()).toEqual([-56]);
  expect(tensor([300, -1, Number.NaN, 7.9]).cast("u8").toArray()).toEqual([255, 0, 0, 7]);
  expect(tensor([-300, 300]).cast("i8").sum().item()).toBe(-1);
});

test("keep their types and bits in files, as the tree that is read into has them", () => {
  const tree = {
    a: tensor(NUMBERS, { dtype: "f16" }),
    b: tensor(NUMBERS, { dtype: "bf16" }),
    c: tensor([-128, 127], { dtype: "i8" }),
    d: tensor([0, 255], { dtype: "u8" }),
  };
  const file = save(tree);
  const like = { a: zeros([9], "f16"), b: spec([9], "bf16"), c: zeros([2], "i8"), d: zeros([2], "u8") };
  const again = load(file, like);
  for (const key of ["a", "b", "c", "d"] as const) {
    expect([again[key].dtype, again[key].data()]).toEqual([tree[key].dtype, tree[key].data()]);
  }
  expect(Object.values(load(file)).map(({ dtype }) => dtype)).toEqual(["f32", "f32", "i32", "i32"]);
  expect(load(file).a?.toArray()).toEqual(tree.a.toArray());
  expect(loadNpy(saveNpy(tree.a)).toArray()).toEqual(tree.a.toArray());
  expect(() => saveNpy(tree.b)).toThrow(/NumPy has no type bf16[\s\S]*cast/);
});
