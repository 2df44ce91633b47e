/**
 * @file Floats of sixteen bits in WGSL, by integer operations: its own packing functions may round either way. Adapters may take subnormal
 * f32 for zero in arithmetic, so those of f16, which are normal in f32, are never computed from such.
 */

export const HALF_PRELUDE = `fn bf16_value(w: u32) -> f32 { return bitcast<f32>(w << 16u); }
fn bf16_bits(a: f32) -> u32 {
  let w = bitcast<u32>(a);
  if (f32_nan(a)) { return 0x7fc0u; }
  return (w + 0x7fffu + ((w >> 16u) & 1u)) >> 16u;
}
fn f16_value(w: u32) -> f32 {
  let h = w & 0x7fffu;
  let sign = (w & 0x8000u) << 16u;
  if (h < 0x400u) { return bitcast<f32>(bitcast<u32>(f32(h) * 0x1p-24f) | sign); }
  if (h > 0x7bffu) { return bitcast<f32>((h << 13u) | 0x7f800000u | sign); }
  return bitcast<f32>(((h << 13u) + 0x38000000u) | sign);
}
fn f16_bits(a: f32) -> u32 {
  let w = bitcast<u32>(a);
  let b = w & 0x7fffffffu;
  let sign = (w >> 16u) & 0x8000u;
  if (f32_nan(a)) { return 0x7e00u; }
  if (b >= 0x477ff000u) { return 0x7c00u | sign; }
  if (b < 0x38800000u) { return (bitcast<u32>(bitcast<f32>(b) + 0.5f) - 0x3f000000u) | sign; }
  return (((b + 0xfffu + ((b >> 13u) & 1u)) >> 13u) - 0x1c000u) | sign;
}
`;
