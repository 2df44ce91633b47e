/** @file Data and comparisons for tests of operations as users call them. */
import { expect } from "vitest";
import { type Tensor, tensor } from "../../src/api/index.ts";

/** Deterministic f64 data in (-1, 1). */
export function data(shape: readonly number[], seed = 1): Tensor {
  const n = shape.reduce((a, b) => a * b, 1);
  return tensor(
    Float64Array.from({ length: n }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed)),
    { shape },
  );
}

export function close(actual: Tensor, expected: ArrayLike<number>, digits: number): void {
  const got = actual.data();
  expect(got.length).toBe(expected.length);
  got.forEach((v, i) => {
    expect(v).toBeCloseTo(expected[i]!, digits);
  });
}
