/** @file CUDA as a dialect of C (codegen/block/scalar-text.ts): what it writes otherwise, and what its text begins with. */
import { bytesOf, isFloat, type ScalarType } from "../../kernel/dtype.ts";
import type { CopyText, Dialect } from "../block/print-c-like.ts";
import { C_DIALECT, literalText, scalarPrelude } from "../block/scalar-text.ts";
import { halfPrelude } from "../native/halves.ts";
import { deviceCall } from "./device-math.ts";

const wordOf = (number: number): number => new Int32Array(Float32Array.of(number).buffer)[0] ?? 0;
const longOf = (number: number): bigint => new BigInt64Array(Float64Array.of(number).buffer)[0] ?? 0n;

/** Numbers that CUDA has no text for (NaN, infinities, long integers) are written by their bits. */
const LITERALS: Readonly<Record<ScalarType, (value: number | bigint) => string>> = {
  f32(value) {
    const number = Math.fround(Number(value));
    return Number.isFinite(number) ? literalText("f32", number) : `f32_bits(${LITERALS.i32(wordOf(number))})`;
  },
  f64(value) {
    const number = Number(value);
    return Number.isFinite(number) ? literalText("f64", number) : `f64_bits(${LITERALS.i64(longOf(number))})`;
  },
  i32: (value) => literalText("i32", value),
  i64: (value) => `(i64)${BigInt.asUintN(64, BigInt(value))}ull`,
  bool: (value) => literalText("bool", value),
};

/** A product and a sum in one; integers have none. */
const FMA: Readonly<Record<ScalarType, string>> = { f32: "__fmaf_rn", f64: "__fma_rn", i32: "", i64: "", bool: "" };

/** Elements at once, by their type: where both ends lie at multiples of them. */
const VECTORS: Readonly<Record<string, Readonly<Record<2 | 4, string | null>>>> = {
  f32: { 2: "float2", 4: "float4" },
  i32: { 2: "int2", 4: "int4" },
  f64: { 2: "double2", 4: null },
};

/** Reads a vector and writes its parts: the writes are of registers, which have no addresses. */
export function vectorCopy({ to, from, count, memories }: CopyText): string | null {
  const vector = VECTORS[memories.from.dtype]?.[count] ?? null;
  if (vector === null || memories.to.scope === "global") return null;
  const parts = ["x", "y", "z", "w"].slice(0, count).map((part, i) => `(&${to})[${i}] = v.${part};`);
  return `{ const ${vector} v = *(const ${vector} *)&${from}; ${parts.join(" ")} }`;
}

/** The same of halves in memory, which become f32; null for others. */
export function halfVector({ to, from, count, memories }: CopyText): string | null {
  const { dtype } = memories.from;
  if (!isFloat(dtype) || bytesOf(dtype) !== 2) return null;
  const { value } = C_DIALECT.element(dtype);
  const words = ["v.x", "v.y"].slice(0, count / 2);
  const lanes = words.flatMap((word) => [`(u16)${word}`, `(u16)(${word} >> 16)`]);
  const vector = count === 4 ? "uint2" : "uint1";
  const parts = lanes.map((lane, i) => `(&${to})[${i}] = ${value(lane)};`);
  return `{ const ${vector} v = *(const ${vector} *)&${from}; ${parts.join(" ")} }`;
}

export const CUDA_DIALECT: Dialect = {
  ...C_DIALECT,
  literal: (dtype, value) => LITERALS[dtype](value),
  fma: (dtype, a, b, c) => `${FMA[dtype]}(${a}, ${b}, ${c})`,
  unroll: (times) => (times === 1 ? "#pragma unroll 1" : "#pragma unroll"),
  // where an operand lies is not known: it may start at any element of an array
  copy: (copy) => (copy.memories.from.scope === "shared" ? vectorCopy(copy) : null),
};

/** For programs with products on tensor cores. */
export const TENSOR_DIALECT: Dialect = { ...CUDA_DIALECT, ownCall: deviceCall };

const QUALIFIER = "static __device__ __forceinline__";

/** Types and scalar functions; indices have 32 bits where no operand needs more. */
export const cudaPrelude = (wideIndices: boolean): string => `typedef float f32;
typedef double f64;
typedef int i32;
typedef long long i64;
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef ${wideIndices ? "long long" : "int"} idx;
${scalarPrelude(QUALIFIER)}${halfPrelude(QUALIFIER)}`;
