/** @file Random tensors: reproducible, independent of layout, distributed as they say, and honest in their errors. */
import { describe, expect, it } from "vitest";
import { runReference } from "../../tests/support/lowering.ts";
import { at } from "../base/invariant.ts";
import { threefry } from "../base/random.ts";
import type { OpDef } from "../ir/op.ts";
import { tensorType } from "../ir/type.ts";
import { randomBernoulli, randomBits, randomNormal, randomUniform, shuffle } from "./random.ts";

const KEY = tensorType("i32", [2]);
const draw = <A>(op: OpDef<A>, attrs: A, key: readonly number[] = [7, -9]): Float64Array =>
  runReference(op, [KEY], attrs, [key]);
const mean = (values: Float64Array): number => values.reduce((a, b) => a + b, 0) / values.length;

describe("random tensors", () => {
  it("have at element e the words of counter [e, stream]", () => {
    const bits = draw(randomBits, { shape: [3, 4], stream: 5 });
    expect([...bits]).toEqual(Array.from(bits, (_, e) => threefry([7, -9], [e, 5])[0]));
    expect([...draw(randomBits, { shape: [12], stream: 5 })]).toEqual([...bits]);
    expect([...draw(randomBits, { shape: [12], stream: 6 })]).not.toEqual([...bits]);
    expect([...draw(randomBits, { shape: [12], stream: 5 }, [8, -9])]).not.toEqual([...bits]);
  });

  it("are distributed as they say", () => {
    const n = 40_000;
    for (const dtype of ["f32", "f64"] as const) {
      const uniform = draw(randomUniform, { shape: [n], stream: 0, dtype });
      expect(uniform.every((u) => u >= 0 && u < 1)).toBe(true);
      expect(Math.abs(mean(uniform) - 0.5)).toBeLessThan(0.01);
      const normal = draw(randomNormal, { shape: [n], stream: 1, dtype });
      expect(normal.every(Number.isFinite)).toBe(true);
      expect(Math.abs(mean(normal))).toBeLessThan(0.02);
      expect(Math.abs(mean(normal.map((v) => v * v)) - 1)).toBeLessThan(0.03);
      expect(Math.abs(mean(normal.map((v) => v ** 4)) - 3)).toBeLessThan(0.25);
      expect(Math.abs(mean(normal.map((v) => Number(v < -1))) - 0.1587)).toBeLessThan(0.01);
    }
    for (const p of [0, 0.1, 0.5, 1]) {
      expect(Math.abs(mean(draw(randomBernoulli, { shape: [n], stream: 2, p })) - p)).toBeLessThan(
        p % 1 === 0 ? 1e-9 : 0.01,
      );
    }
  });

  it("say what a key, a stream and a probability are", () => {
    const bits = { shape: [2], stream: 0 };
    expect(() => randomBits.infer([tensorType("f32", [2])], bits, [])).toThrow(
      "random_bits: a key is i32[2], got f32[2]",
    );
    expect(() => randomBits.infer([KEY], { ...bits, stream: 0.5 }, [])).toThrow("random_bits: stream 0.5");
    expect(() => randomBits.infer([KEY], { ...bits, shape: [-1] }, [])).toThrow("random_bits: shape [-1]");
    expect(() => randomBernoulli.infer([KEY], { ...bits, p: 1.5 }, [])).toThrow("random_bernoulli: p is 1.5");
    expect(() => randomUniform.infer([KEY], { ...bits, dtype: "i32" as "f32" }, [])).toThrow(
      "draws f32 or f64 or bf16 or f16, asked for i32",
    );
    expect(() => shuffle.infer([tensorType("i32", [2, 3])], {}, [])).toThrow(
      "shuffle: bits must have one axis, got i32[2,3]",
    );
    expect(() => shuffle.infer([tensorType("f32", [2])], {}, [])).toThrow("DtypeMismatch: shuffle: bits must be i32");
  });
});

describe("shuffle", () => {
  const run = (bits: readonly number[]): number[] => [
    ...runReference(shuffle, [tensorType("i32", [bits.length])], {}, [bits]),
  ];

  it("swaps from the back with the places that the bits point at", () => {
    // i = 3: j = ⌊½·4⌋ = 2; i = 2: j = 0; i = 1: j = ⌊(1 - 2⁻³²)·2⌋ = 1
    expect(run([0, -1, 0, -0x80000000])).toEqual([3, 1, 0, 2]);
    expect(run([5])).toEqual([0]);
    expect(run([])).toEqual([]);
  });

  it("gives every permutation about as often", () => {
    const counts = new Map<string, number>();
    for (let trial = 0; trial < 6000; trial++) {
      const bits = draw(randomBits, { shape: [3], stream: trial });
      const order = run([...bits]).join("");
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect([...counts.keys()].sort()).toEqual(["012", "021", "102", "120", "201", "210"]);
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it("keeps each of many elements once", () => {
    const order = run([...draw(randomBits, { shape: [1000], stream: 0 })]);
    expect([...order].sort((a, b) => a - b)).toEqual(order.map((_, i) => i));
    expect(order.filter((v, i) => v === i).length).toBeLessThan(20);
    expect(at(order, 0)).not.toBe(at(order, 1));
  });
});
