/**
 * @file Floats of sixteen bits in C: single ones, for C and languages with its declarations, and registers of them. A bf16 is the
 * upper half of an f32. An f16 is converted by the processor's instruction (F16C) where there is one, and otherwise by the
 * same arithmetic as in WebAssembly, with the same bits.
 *
 * The conversion to bf16 of AVX-512 is not used: it takes subnormal numbers for zero, and bits would depend on the machine.
 */

/** Functions on single elements; `qualifier` is what stands before each. */
export const halfPrelude = (qualifier: string): string => `${qualifier} f32 bf16_lane(u16 x) {
  u32 w = (u32)x << 16; f32 r; memcpy(&r, &w, 4); return r;
}
${qualifier} u16 bf16_of(f32 x) {
  u32 w; memcpy(&w, &x, 4); return x != x ? 0x7fc0 : (u16)((w + 0x7fff + ((w >> 16) & 1)) >> 16);
}
${qualifier} f32 f16_lane(u16 x) {
  u32 h = x & 0x7fff, w = h << 13; f32 r; memcpy(&r, &w, 4); r *= 5192296858534827628530496329220096.0f;
  memcpy(&w, &r, 4); w |= (h > 0x7bff ? 0x7f800000u : 0u) | (u32)(x & 0x8000) << 16; memcpy(&r, &w, 4); return r;
}
${qualifier} u16 f16_of(f32 x) {
  u32 w, b, s; memcpy(&w, &x, 4); b = w & 0x7fffffff;
  f32 a; memcpy(&a, &b, 4); a += 0.5f; memcpy(&s, &a, 4);
  u32 r = b >= 0x477ff000 ? 0x7c00 : b < 0x38800000 ? s - 0x3f000000 : ((b + 0xfff + ((b >> 13) & 1)) >> 13) - 0x1c000;
  return x != x ? 0x7e00 : (u16)(r | ((w >> 16) & 0x8000));
}
`;

/** Instructions for a register of n elements: its prefix, the integer type of its halves, how they are read and written. */
const INSTRUCTIONS: Readonly<
  Record<number, { readonly macro: string; readonly prefix: string; readonly half: string }>
> = {
  4: { macro: "__F16C__", prefix: "_mm", half: "__m128i" },
  8: { macro: "__F16C__", prefix: "_mm256", half: "__m128i" },
  16: { macro: "__AVX512F__", prefix: "_mm512", half: "__m256i" },
};

function conversionText(n: number): string {
  const [t, u, h] = [`f32x${n}`, `u32x${n}`, `u16x${n}`];
  const plain = `INLINE ${t} f16x${n}_widen(${h} v) {
  ${u} w = __builtin_convertvector(v, ${u}), h = w & 0x7fff;
  ${t} r = (${t})(h << 13) * 5192296858534827628530496329220096.0f;
  return (${t})((${u})r | ((${u})(h > 0x7bff) & 0x7f800000) | (w & 0x8000) << 16);
}
INLINE ${h} f16x${n}_narrow(${t} x) {
  ${u} w = (${u})x, b = w & 0x7fffffff;
  ${u} small = (${u})((${t})b + 0.5f) - 0x3f000000, large = ((b + 0xfff + ((b >> 13) & 1)) >> 13) - 0x1c000;
  ${u} over = (${u})(b >= 0x477ff000), low = (${u})(b < 0x38800000), nan = (${u})(x != x);
  ${u} r = (low & small) | (~low & ((over & 0x7c00) | (~over & large)));
  return __builtin_convertvector((nan & 0x7e00) | (~nan & (r | ((w >> 16) & 0x8000))), ${h});
}`;
  const instruction = INSTRUCTIONS[n];
  if (!instruction) return plain;
  const { macro, prefix, half } = instruction;
  return `#if defined(${macro})
INLINE ${t} f16x${n}_widen(${h} v) { ${half} w = {0}; memcpy(&w, &v, sizeof v); return (${t})${prefix}_cvtph_ps(w); }
INLINE ${h} f16x${n}_narrow(${t} x) {
  ${half} w = ${prefix}_cvtps_ph(x, 0); ${h} r; memcpy(&r, &w, sizeof r);
  ${h} nan = __builtin_convertvector(x != x, ${h}); return (nan & 0x7e00) | (~nan & r);
}
#else
${plain}
#endif`;
}

/** Loads and stores of registers of a type, by its conversions. */
function memoryText(name: string, n: number): string {
  const [f, h, t] = [`${name}x${n}`, `u16x${n}`, `f32x${n}`];
  return `INLINE ${t} ${f}_load(const u16 *p) { return ${f}_widen(*(const ${h}_mem *)p); }
INLINE ${t} ${f}_load_first(const u16 *p, int count) {
  u16 x[${n}] = {0}; memcpy(x, p, count * sizeof *p); return ${f}_widen(*(${h}_mem *)x);
}
INLINE ${t} ${f}_load_where(const u16 *p, boolx${n} m) {
  ${h} r = {0}; for (int l = 0; l < ${n}; l++) if (m[l]) r[l] = p[l]; return ${f}_widen(r);
}
INLINE void ${f}_store(u16 *p, ${t} v) { *(${h}_mem *)p = ${f}_narrow(v); }
INLINE void ${f}_store_first(u16 *p, ${t} v, int count) { ${h} r = ${f}_narrow(v); memcpy(p, &r, count * sizeof *p); }
`;
}

export const f16Text = (n: number): string => `${conversionText(n)}\n${memoryText("f16", n)}`;

export function bf16Text(n: number): string {
  const [t, u, h] = [`f32x${n}`, `u32x${n}`, `u16x${n}`];
  return `INLINE ${t} bf16x${n}_widen(${h} v) { return (${t})(__builtin_convertvector(v, ${u}) << 16); }
INLINE ${h} bf16x${n}_narrow(${t} x) {
  ${u} w = (${u})x, nan = (${u})(x != x), r = (w + 0x7fff + ((w >> 16) & 1)) >> 16;
  return __builtin_convertvector((nan & 0x7fc0) | (~nan & r), ${h});
}
${memoryText("bf16", n)}`;
}
