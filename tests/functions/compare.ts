/** @file Comparing elements: to the last bit, or to a fraction of the largest. */
import { expect } from "vitest";
import type { Tensor } from "../../src/api/index.ts";

/** Relative to the largest element: cancellation makes single ones arbitrarily small. */
export const TOLERANCE = {
  f32: 2e-4,
  f64: 1e-11,
  bf16: 2 ** -5,
  f16: 2 ** -8,
  i32: 0,
  i64: 0,
  i8: 0,
  u8: 0,
  bool: 0,
} as const;

/** Fails unless the elements agree to a fraction of the largest finite one (of 1 at least); NaN agrees with NaN. */
export function expectClose(got: ArrayLike<number>, want: ArrayLike<number>, tolerance: number, label: string): void {
  expect(got.length, label).toBe(want.length);
  let scale = 1;
  for (let i = 0; i < want.length; i++) if (Number.isFinite(want[i])) scale = Math.max(scale, Math.abs(want[i]!));
  for (let i = 0; i < want.length; i++) {
    const [a, b] = [got[i]!, want[i]!];
    const same = a === b || (Number.isNaN(a) && Number.isNaN(b));
    if (!same && !(Math.abs(a - b) <= tolerance * scale)) expect(a, `${label}, element ${i}`).toBe(b);
  }
}

/** Fails unless all elements have the same bits. */
export function expectSameBits(got: Tensor, want: Tensor, label: string): void {
  expect([got.dtype, ...got.shape], label).toEqual([want.dtype, ...want.shape]);
  const bytes = (x: Tensor): Uint8Array => {
    const data = x.data();
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  };
  const [a, b] = [bytes(got), bytes(want)];
  if (a.some((byte, i) => byte !== b[i]))
    expect([...got.data()], `${label}: bits differ`).toEqual([...want.data(), "bits"]);
}
