/** @file Initial values: their moments, their bounds, and that a key says everything. */
import { describe, expect, it } from "vitest";
import { random } from "../api/random.ts";
import { tensor } from "../trace/literal.ts";
import type { Tensor } from "../trace/tensor.ts";
import { fansOf } from "./distributions.ts";
import { initializers as init } from "./initializers.ts";
import { partKey } from "./key.ts";

function moments(x: Tensor): { mean: number; std: number; max: number } {
  const data = [...x.data()];
  const mean = data.reduce((a, b) => a + b, 0) / data.length;
  const std = Math.sqrt(data.reduce((a, b) => a + (b - mean) ** 2, 0) / data.length);
  return { mean, std, max: Math.max(...data.map(Math.abs)) };
}

describe("initializers", () => {
  it("have the deviations of their papers", () => {
    const shape = [120, 80];
    const glorot = Math.sqrt(2 / 200);
    const he = Math.sqrt(2 / 120);
    const expected: readonly [Tensor, number][] = [
      [init.glorotNormal()(1, shape), glorot],
      [init.glorotUniform()(2, shape), glorot],
      [init.heNormal()(3, shape), he],
      [init.heUniform()(4, shape), he],
      [init.fanInUniform()(5, shape), Math.sqrt(1 / 360)],
      [init.normal(0.3)(6, shape), 0.3],
      [init.uniform(-1, 1)(7, shape), 1 / Math.sqrt(3)],
      // Var of a normal cut at ±2: 1 - 4·φ(2) / (Φ(2) - Φ(-2)) = 0.774
      [init.truncatedNormal(1)(8, shape), Math.sqrt(0.7737)],
    ];
    for (const [x, std] of expected) {
      const found = moments(x);
      expect(Math.abs(found.mean)).toBeLessThan(0.05 * std);
      expect(found.std / std).toBeGreaterThan(0.97);
      expect(found.std / std).toBeLessThan(1.03);
    }
    expect(moments(init.truncatedNormal(1)(8, shape)).max).toBeLessThanOrEqual(2);
    expect(moments(init.heUniform()(4, shape)).max).toBeLessThanOrEqual(Math.sqrt(3) * he);
  });

  it("draw what random draws for the same key", () => {
    const key = random.key(2 ** 40 + 5);
    expect(init.uniform(0, 1)(key, [50]).data()).toEqual(random.uniform(key, [50]).data());
    const host = init.normal(1)(key, [50]).data();
    random
      .normal(key, [50])
      .data()
      .forEach((z, i) => {
        expect(host[i]).toBeCloseTo(z, 5);
      });
  });

  it("depend on the key alone, and parts of a key are different keys", () => {
    const x = init.normal()(7, [20]).data();
    expect(init.normal()(random.key(7), [20]).data()).toEqual(x);
    expect(init.normal()(8, [20]).data()).not.toEqual(x);
    const parts = [7, partKey(7, 0), partKey(7, 1), partKey(partKey(7, 0), 0)];
    const drawn = parts.map((key) => init.uniform()(key, [4]).data().join());
    expect(new Set(drawn).size).toBe(4);
  });

  it("are orthogonal when they say so, both ways round and beyond two axes", () => {
    for (const shape of [
      [6, 6],
      [4, 9],
      [9, 4],
      [3, 2, 4],
    ]) {
      const w = init.orthogonal(2)(1, shape, "f64");
      const rows = shape[0]!;
      const data = w.data();
      const width = data.length / rows;
      const cell = (i: number, j: number): number => data[i * width + j]!;
      const [n, length] = rows <= width ? [rows, width] : [width, rows];
      const at = (v: number, i: number): number => (rows <= width ? cell(v, i) : cell(i, v));
      for (let a = 0; a < n; a++) {
        for (let b = 0; b < n; b++) {
          let dot = 0;
          for (let i = 0; i < length; i++) dot += at(a, i) * at(b, i);
          expect(dot).toBeCloseTo(a === b ? 4 : 0, 12);
        }
      }
    }
  });

  it("know the fans of matrices and of convolutions", () => {
    expect(fansOf([3, 5])).toEqual({ fanIn: 3, fanOut: 5 });
    expect(fansOf([8, 4, 3, 3])).toEqual({ fanIn: 36, fanOut: 72 });
    expect(() => init.heNormal()(0, [])).toThrow("a scalar [] has no fans");
  });

  it("refuse what is no key and limits that leave nothing", () => {
    expect(() => init.normal()(tensor([1, 2]), [3])).toThrow("a key is i32[2]");
    expect(() => init.normal()(0.5, [3])).toThrow("seed 0.5");
    expect(() => init.truncatedNormal(1, 0, 0)).toThrow("limit 0");
    expect(() => init.orthogonal()(0, [3])).toThrow("needs a matrix");
  });
});
