/**
 * @file The top of every generated C file: element types, registers, and the functions of the scalar language that C has
 * no operator for. Written in the vector types of GCC and Clang, which every processor can compile; where AVX or AVX-512
 * has one instruction for what the plain form takes several for, that is used under `#if`.
 *
 * Names are the type, the lanes, and what is done: `f32x16_load`, `i32x8_div`. A bool in a register is a mask of 32-bit
 * lanes (`boolx16`, all ones or zero), in memory a byte.
 *
 * Invariant: no function here rounds otherwise than the scalar language says. `min` and `max` propagate NaN and know that
 * -0 < 0: the instruction answers its second operand for NaN and for equals, so both orders are asked and their bits
 * joined, but for the maximum with AVX-512, which has an instruction that knows zeros apart.
 */
import {
  DTYPES,
  type DType,
  type FloatScalar,
  isFloatScalar,
  laneBytes,
  type ProductType,
  type ScalarType,
  twinOf,
} from "../../kernel/dtype.ts";
import { bf16Text, f16Text, halfPrelude } from "./halves.ts";
import { heading } from "./sections.ts";

/** What calls of functions need; the headers of vector instructions alone take a compiler a tenth of a second. */
const TYPES = `#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef float f32;
typedef double f64;
typedef int32_t i32;
typedef int64_t i64;
typedef int8_t i8;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t idx;
#define NOINLINE __attribute__((noinline, unused))
#define INLINE static inline __attribute__((always_inline))
#ifndef FUNCTION
#define FUNCTION static NOINLINE
#endif
`;

const HEAD = `#if defined(__AVX__)
#include <immintrin.h>
#endif
#if defined(__AVX512DQ__) && defined(__AVX512VL__)
#define AVX512_MASKS
#if defined(__AVX512BW__)
#define AVX512_BYTES
#endif
#endif
f32 floorf(f32); f32 ceilf(f32); f32 truncf(f32); f32 rintf(f32); f32 sqrtf(f32); f32 fmaf(f32, f32, f32);
f64 floor(f64); f64 ceil(f64); f64 trunc(f64); f64 rint(f64); f64 sqrt(f64); f64 fma(f64, f64, f64);
`;

interface Lane {
  /** Type of an element in memory, and of a lane in a register. */
  readonly memory: string;
  readonly lane: string;
  readonly bytes: number;
}

const LANES: Readonly<Record<string, Lane>> = {
  f32: { memory: "f32", lane: "f32", bytes: 4 },
  f64: { memory: "f64", lane: "f64", bytes: 8 },
  i32: { memory: "i32", lane: "i32", bytes: 4 },
  i64: { memory: "i64", lane: "i64", bytes: 8 },
  u32: { memory: "u32", lane: "u32", bytes: 4 },
  u64: { memory: "u64", lane: "u64", bytes: 8 },
  i8: { memory: "i8", lane: "i8", bytes: 1 },
  u8: { memory: "u8", lane: "u8", bytes: 1 },
  u16: { memory: "u16", lane: "u16", bytes: 2 },
};

function typesText(n: number): string {
  const lines = Object.entries(LANES).map(([name, { lane, bytes }]) => {
    return `typedef ${lane} ${name}x${n} __attribute__((vector_size(${bytes * n})));
typedef ${lane} ${name}x${n}_mem __attribute__((vector_size(${bytes * n}), aligned(${bytes}), may_alias));`;
  });
  return `${lines.join("\n")}\ntypedef i32x${n} boolx${n};\n`;
}

/** The intrinsic's suffix for float registers of a size, and under which macro it exists. */
function registerOf(dtype: ProductType, n: number): { readonly prefix: string; readonly macro: string } | null {
  const bytes = n * laneBytes(dtype);
  if (bytes === 64) return { prefix: "_mm512", macro: "__AVX512F__" };
  if (bytes === 32) return { prefix: "_mm256", macro: "__AVX__" };
  if (bytes === 16) return { prefix: "_mm", macro: "__AVX__" };
  return null;
}

/** \`fast\` where the processor has the instruction, else \`plain\`. */
function either(macro: string | null, fast: string, plain: string): string {
  return macro === null ? plain : `#if defined(${macro})\n${fast}\n#else\n${plain}\n#endif`;
}

/** A function applied to the lanes one by one, through an array so that the compiler sees an ordinary loop. */
function lanewise(lane: FloatScalar, n: number, name: string, fn: string): string {
  const type = `${lane}x${n}`;
  return `INLINE ${type} ${type}_${name}(${type} a) {
  ${lane} x[${n}]; memcpy(x, &a, sizeof a);
  for (int l = 0; l < ${n}; l++) x[l] = ${fn}(x[l]);
  memcpy(&a, x, sizeof a); return a;
}`;
}

const ROUNDING = { floor: 9, ceil: 10, nearest: 8, trunc: 11 } as const;
const LIBRARY = { floor: "floor", ceil: "ceil", nearest: "rint", trunc: "trunc" } as const;

/** The intrinsic's suffix of a type, and the letter of the library's functions for it. */
const SUFFIX: Readonly<Record<ProductType, string>> = { f32: "ps", f64: "pd", i32: "epi32", i64: "epi64" };
const LETTER: Readonly<Record<FloatScalar, string>> = { f32: "f", f64: "" };
const ALL_BUT_SIGN: Readonly<Record<FloatScalar, string>> = { f32: "0x7fffffff", f64: "INT64_C(0x7fffffffffffffff)" };

function floatText(dtype: FloatScalar, n: number): string {
  const t = `${dtype}x${n}`;
  const bits = `${twinOf(dtype)}x${n}`;
  const [suffix, letter] = [SUFFIX[dtype], LETTER[dtype]];
  const register = registerOf(dtype, n);
  const macro = register?.macro ?? null;
  const fast = (name: string, args: string, rest = ""): string =>
    `INLINE ${t} ${t}_${name}(${args}) { return (${t})${register?.prefix}_${rest}; }`;
  const unary = Object.entries(ROUNDING).map(([name, mode]) => {
    const op = register?.prefix === "_mm512" ? "roundscale" : "round";
    return either(
      macro,
      fast(name, `${t} a`, `${op}_${suffix}(a, ${mode})`),
      lanewise(dtype, n, name, `${LIBRARY[name as keyof typeof LIBRARY]}${letter}`),
    );
  });
  const root = either(macro, fast("sqrt", `${t} a`, `sqrt_${suffix}(a)`), lanewise(dtype, n, "sqrt", `sqrt${letter}`));
  const less = (name: string, sign: string): string =>
    either(
      macro,
      fast(`${name}2`, `${t} a, ${t} b`, `${name}_${suffix}(a, b)`),
      `INLINE ${t} ${t}_${name}2(${t} a, ${t} b) { ${bits} m = a ${sign} b; return (${t})((m & (${bits})a) | (~m & (${bits})b)); }`,
    );
  const madd = either(
    register && "__FMA__",
    fast("fma", `${t} a, ${t} b, ${t} c`, `fmadd_${suffix}(a, b, c)`),
    `INLINE ${t} ${t}_fma(${t} a, ${t} b, ${t} c) {
  ${t} r; for (int l = 0; l < ${n}; l++) r[l] = fma${letter}(a[l], b[l], c[l]); return r;
}`,
  );
  const plainMax = `INLINE ${t} ${t}_max(${t} a, ${t} b) {
  ${bits} both = (${bits})${t}_max2(a, b) & (${bits})${t}_max2(b, a);
  ${bits} nan = (a != a) | (b != b);
  return (${t})((nan & (${bits})(a + b)) | (~nan & both));
}`;
  // "range" with 5 is the larger, and 0 rather than -0; for NaN it would answer the other operand
  const p = register?.prefix;
  const fastMax = `INLINE ${t} ${t}_max(${t} a, ${t} b) {
  return (${t})${p}_mask_add_${suffix}(${p}_range_${suffix}(a, b, 5), ${p}_cmp_${suffix}_mask(a, b, 3), a, b);
}`;
  return `${[...unary, root, less("min", "<"), less("max", ">"), madd].join("\n")}
INLINE ${t} ${t}_abs(${t} a) { return (${t})((${bits})a & ${ALL_BUT_SIGN[dtype]}); }
INLINE ${t} ${t}_min(${t} a, ${t} b) { return (${t})((${bits})${t}_min2(a, b) | (${bits})${t}_min2(b, a)); }
${either(macro && "AVX512_MASKS", fastMax, plainMax)}
`;
}

/** Loads and stores of whole registers, of the first \`count\` lanes, and of the lanes of a mask. */
function memoryText(dtype: ProductType, n: number): string {
  const t = `${dtype}x${n}`;
  const register = registerOf(dtype, n);
  const suffix = SUFFIX[dtype];
  const mask = register?.prefix ?? "";
  const macro = register && "AVX512_MASKS";
  const bits = 8 * laneBytes(dtype);
  const integer = `__m${n * bits}i`;
  const value = isFloatScalar(dtype) ? "v" : `(${integer})v`;
  const wide = bits === 64 ? `__builtin_convertvector(m, i64x${n})` : "m";
  const kmask = `${mask}_movepi${bits}_mask((${integer})${wide})`;
  const ones = (count: string): string => `(((u32)1 << ${count}) - 1)`;
  return `INLINE ${t} ${t}_load(const ${dtype} *p) { return *(const ${t}_mem *)p; }
INLINE void ${t}_store(${dtype} *p, ${t} v) { *(${t}_mem *)p = v; }
${either(
  macro,
  `INLINE ${t} ${t}_load_first(const ${dtype} *p, int count) { return (${t})${mask}_maskz_loadu_${suffix}(${ones("count")}, p); }
INLINE void ${t}_store_first(${dtype} *p, ${t} v, int count) { ${mask}_mask_storeu_${suffix}(p, ${ones("count")}, ${value}); }
INLINE ${t} ${t}_load_where(const ${dtype} *p, boolx${n} m) { return (${t})${mask}_maskz_loadu_${suffix}(${kmask}, p); }`,
  `INLINE ${t} ${t}_load_first(const ${dtype} *p, int count) {
  ${dtype} x[${n}] = {0}; memcpy(x, p, count * sizeof *p); return *(${t}_mem *)x;
}
INLINE void ${t}_store_first(${dtype} *p, ${t} v, int count) { memcpy(p, &v, count * sizeof *p); }
INLINE ${t} ${t}_load_where(const ${dtype} *p, boolx${n} m) {
  ${t} r = {0}; for (int l = 0; l < ${n}; l++) if (m[l]) r[l] = p[l]; return r;
}`,
)}
`;
}

/** Instructions on masks of so many 32-bit lanes, and the macro under which a processor has them. */
interface MaskRegister {
  readonly macro: string;
  /** Bytes at `p` as 32-bit lanes. */
  readonly widen: string;
  /** The sign bits of `m` as an integer. */
  readonly signs: string;
}

const MASK_REGISTERS: Readonly<Record<number, MaskRegister>> = {
  16: {
    macro: "AVX512_MASKS",
    widen: "_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p))",
    signs: "_mm512_movepi32_mask((__m512i)m)",
  },
  8: {
    macro: "__AVX2__",
    widen: "_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p))",
    signs: "_mm256_movemask_ps((__m256)m)",
  },
  4: {
    macro: "__AVX__",
    widen: "_mm_cvtepu8_epi32(_mm_loadu_si32(p))",
    signs: "_mm_movemask_ps((__m128)m)",
  },
};

/**
 * Loads of masks, and questions about all lanes. The plain forms compile to a move for each lane where GCC sees the load, so
 * instructions are named where there are any.
 */
function maskText(n: number): string {
  const t = `boolx${n}`;
  const register = MASK_REGISTERS[n];
  const macro = register?.macro ?? null;
  const all = (1n << BigInt(n)) - 1n;
  return `${either(
    macro,
    `INLINE ${t} ${t}_load(const u8 *p) { return -(${t})${register?.widen}; }`,
    `INLINE ${t} ${t}_load(const u8 *p) { return -__builtin_convertvector(*(const u8x${n}_mem *)p, ${t}); }`,
  )}
${either(
  macro,
  `INLINE int ${t}_all(${t} m) { return ${register?.signs} == ${all}; }
INLINE int ${t}_any(${t} m) { return ${register?.signs} != 0; }`,
  `INLINE int ${t}_all(${t} m) { i32 r = -1; for (int l = 0; l < ${n}; l++) r &= m[l]; return r != 0; }
INLINE int ${t}_any(${t} m) { i32 r = 0; for (int l = 0; l < ${n}; l++) r |= m[l]; return r != 0; }`,
)}
${either(
  n === 16 ? "AVX512_BYTES" : null,
  `INLINE ${t} ${t}_load_where(const u8 *p, ${t} m) {
  return -(${t})_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(_mm512_movepi32_mask((__m512i)m), p));
}`,
  `INLINE ${t} ${t}_load_where(const u8 *p, ${t} m) {
  u8 x[${n}] = {0}; for (int l = 0; l < ${n}; l++) if (m[l]) x[l] = p[l]; return ${t}_load(x);
}`,
)}
`;
}

function boolText(n: number): string {
  const t = `boolx${n}`;
  return `INLINE ${t} ${t}_of(i32 x) { return x - (${t}){0}; }
${maskText(n)}INLINE ${t} ${t}_load_first(const u8 *p, int count) {
  u8 x[${n}] = {0}; memcpy(x, p, count); return ${t}_load(x);
}
INLINE void ${t}_store(u8 *p, ${t} v) { *(u8x${n}_mem *)p = __builtin_convertvector(v & 1, u8x${n}); }
INLINE void ${t}_store_first(u8 *p, ${t} v, int count) {
  u8x${n} r = __builtin_convertvector(v & 1, u8x${n}); memcpy(p, &r, count);
}
INLINE ${t} ${t}_first(int count) { ${t} r; for (int l = 0; l < ${n}; l++) r[l] = l < count ? -1 : 0; return r; }
INLINE ${t} ${t}_pick(${t} m, ${t} a, ${t} b) { return (m & a) | (~m & b); }
`;
}

function pickText(dtype: Exclude<ScalarType, "bool">, n: number): string {
  const long = laneBytes(dtype) === 8;
  const [t, bits] = [`${dtype}x${n}`, `${long ? "i64" : "i32"}x${n}`];
  const mask = long ? `__builtin_convertvector(m, ${bits})` : "m";
  return `INLINE ${t} ${t}_of(${dtype} x) { return x - (${t}){0}; }
INLINE ${t} ${t}_pick(boolx${n} m, ${t} a, ${t} b) {
  ${bits} w = ${mask}; return (${t})((w & (${bits})a) | (~w & (${bits})b));
}
`;
}

function integerText(n: number): string {
  const t = `i32x${n}`;
  return `INLINE ${t} ${t}_abs(${t} a) { ${t} s = a >> 31; return (a ^ s) - s; }
INLINE ${t} ${t}_min(${t} a, ${t} b) { return ${t}_pick(a < b, a, b); }
INLINE ${t} ${t}_max(${t} a, ${t} b) { return ${t}_pick(a > b, a, b); }
INLINE ${t} ${t}_div(${t} a, ${t} b) {
  ${t} r; for (int l = 0; l < ${n}; l++) r[l] = b[l] == 0 ? 0 : b[l] == -1 ? (i32)(0 - (u32)a[l]) : a[l] / b[l];
  return r;
}
INLINE ${t} ${t}_ramp(i32 from, i32 step) {
  ${t} r; for (int l = 0; l < ${n}; l++) r[l] = l;
  return from + r * step;
}
INLINE ${t} ${t}_of_f32(f32x${n} a) {
  boolx${n} high = a >= 2147483648.0f, low = a < -2147483648.0f, in = (a == a) & ~high & ~low;
  ${t} r = __builtin_convertvector(f32x${n}_pick(in, a, f32x${n}_of(0)), ${t});
  return (high & 0x7fffffff) | (low & (-0x7fffffff - 1)) | (in & r);
}
INLINE ${t} ${t}_of_f64(f64x${n} a) {
  boolx${n} high = __builtin_convertvector(a >= 2147483648.0, ${t}), low = __builtin_convertvector(a <= -2147483649.0, ${t});
  boolx${n} in = __builtin_convertvector(a == a, ${t}) & ~high & ~low;
  ${t} r = __builtin_convertvector(f64x${n}_pick(in, a, f64x${n}_of(0)), ${t});
  return (high & 0x7fffffff) | (low & (-0x7fffffff - 1)) | (in & r);
}
`;
}

/** Whole numbers of 64 bits; conversions to i32 and from floats saturate. */
function longText(n: number): string {
  const [t, d] = [`i64x${n}`, `f64x${n}`];
  return `INLINE ${t} ${t}_abs(${t} a) { ${t} s = a >> 63; return (a ^ s) - s; }
INLINE ${t} ${t}_min(${t} a, ${t} b) { ${t} m = a < b; return (m & a) | (~m & b); }
INLINE ${t} ${t}_max(${t} a, ${t} b) { ${t} m = a > b; return (m & a) | (~m & b); }
INLINE ${t} ${t}_div(${t} a, ${t} b) {
  ${t} r; for (int l = 0; l < ${n}; l++) r[l] = b[l] == 0 ? 0 : b[l] == -1 ? (i64)(0 - (u64)a[l]) : a[l] / b[l];
  return r;
}
INLINE ${t} ${t}_of_i32(i32x${n} a) { return __builtin_convertvector(a, ${t}); }
INLINE i32x${n} i32x${n}_of_i64(${t} a) {
  ${t} low = ${t}_of(-INT64_C(0x80000000)), high = ${t}_of(0x7fffffff);
  return __builtin_convertvector(${t}_max(${t}_min(a, high), low), i32x${n});
}
INLINE ${t} ${t}_of_f64(${d} a) {
  ${t} high = a >= 9223372036854775808.0, low = a < -9223372036854775808.0, in = (a == a) & ~high & ~low;
  ${t} r = __builtin_convertvector((${d})(in & (${t})a), ${t});
  return (high & INT64_C(0x7fffffffffffffff)) | (low & (-INT64_C(0x7fffffffffffffff) - 1)) | (in & r);
}
INLINE ${t} ${t}_of_f32(f32x${n} a) { return ${t}_of_f64(__builtin_convertvector(a, ${d})); }
`;
}

/** Bytes as i32. */
function byteText(name: "i8" | "u8", n: number): string {
  const [v, t] = [`${name}x${n}`, `i32x${n}`];
  return `INLINE ${t} ${v}_load(const ${name} *p) { return __builtin_convertvector(*(const ${v}_mem *)p, ${t}); }
INLINE ${t} ${v}_load_first(const ${name} *p, int count) {
  ${name} x[${n}] = {0}; memcpy(x, p, count); return __builtin_convertvector(*(${v}_mem *)x, ${t});
}
INLINE ${t} ${v}_load_where(const ${name} *p, boolx${n} m) {
  ${v} r = {0}; for (int l = 0; l < ${n}; l++) if (m[l]) r[l] = p[l]; return __builtin_convertvector(r, ${t});
}
INLINE void ${v}_store(${name} *p, ${t} v) { *(${v}_mem *)p = __builtin_convertvector(v, ${v}); }
INLINE void ${v}_store_first(${name} *p, ${t} v, int count) {
  ${v} r = __builtin_convertvector(v, ${v}); memcpy(p, &r, count);
}
`;
}

/** The functions that elements.ts names, for each storage type. */
const MEMORY: Readonly<Record<DType, (n: number) => string>> = {
  f32: (n) => memoryText("f32", n),
  f64: (n) => memoryText("f64", n),
  bf16: bf16Text,
  f16: f16Text,
  i32: (n) => memoryText("i32", n),
  i64: (n) => memoryText("i64", n),
  i8: (n) => byteText("i8", n),
  u8: (n) => byteText("u8", n),
  bool: boolText,
};

/** What code over registers of so many lanes uses. */
export function lanesText(n: number): string {
  return [
    typesText(n),
    ...(["f32", "f64", "i32", "i64"] as const).map((dtype) => pickText(dtype, n)),
    ...(["f32", "f64"] as const).map((dtype) => floatText(dtype, n)),
    ...DTYPES.map((dtype) => MEMORY[dtype](n)),
    integerText(n),
    longText(n),
  ].join("");
}

/** The functions that code over registers of these numbers of lanes uses. */
export function preludeText(lanes: readonly number[]): string {
  return `${heading("types")}${TYPES}${heading("registers")}${HEAD}${halfPrelude("INLINE")}${lanes.map(lanesText).join("")}`;
}
