/** @file Element types: those of tensors, and `i64`, which exists only inside kernels (bits of an f64). */

export type DType = "f32" | "f64" | "i32" | "bool";
export type ScalarType = DType | "i64";

export const DTYPES: readonly DType[] = ["f32", "f64", "i32", "bool"];

const BYTES: Record<ScalarType, number> = { f32: 4, f64: 8, i32: 4, bool: 1, i64: 8 };

/** Bytes of one element in memory; a bool is one byte holding 0 or 1. */
export function bytesOf(dtype: ScalarType): number {
  return BYTES[dtype];
}

export function isFloat(dtype: ScalarType): dtype is "f32" | "f64" {
  return dtype === "f32" || dtype === "f64";
}
