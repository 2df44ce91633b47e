/**
 * @file Quotients and roots that are the nearest numbers, on adapters whose own are a few units off in the last place: an estimate of
 * the mantissa is corrected by its remainder. Remainders of mantissas of 24 bits have up to 48, but once the estimate is close their
 * size is far below 2^31, so arithmetic that wraps at 32 bits has all of it.
 *
 *   a / b    q = ⌊a · 2^24 / b⌋: 25 bits of the quotient, the remainder says whether there is more; then one rounding
 *   √a       s = nearest to √N, N = a · 2^23:  N - s² lies in (-s, s]
 */

/** In place of division and root of the language. */
export const EXACT_PRELUDE = `fn f32_parts(bits: u32) -> vec2<i32> {
  if (bits < 0x00800000u) {
    let up = i32(countLeadingZeros(bits)) - 8;
    return vec2<i32>(i32(bits << u32(up)), 1 - up);
  }
  return vec2<i32>(i32((bits & 0x007fffffu) | 0x00800000u), i32(bits >> 23u));
}
fn f32_rounded(q: u32, more: bool, exponent: i32) -> u32 {
  if (exponent >= 255) { return 0x7f800000u; }
  let shift = u32(select(1, 2 - exponent, exponent < 1));
  if (shift > 25u) { return 0u; }
  let whole = q >> shift;
  let rest = q & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  let up = rest > half || (rest == half && (more || (whole & 1u) == 1u));
  return (u32(max(exponent - 1, 0)) << 23u) + whole + select(0u, 1u, up);
}
fn f32_div(a: f32, b: f32) -> f32 {
  let sign = (bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u;
  let above = bitcast<u32>(a) & 0x7fffffffu;
  let below = bitcast<u32>(b) & 0x7fffffffu;
  let infinity = 0x7f800000u;
  if (above > infinity || below > infinity || (above == infinity && below == infinity) || (above | below) == 0u) {
    return bitcast<f32>(0x7fc00000u ^ zero);
  }
  if (above == infinity || below == 0u) { return bitcast<f32>((sign | infinity) ^ zero); }
  if (below == infinity || above == 0u) { return bitcast<f32>(sign); }
  let p = f32_parts(above);
  let d = f32_parts(below);
  let small = select(0, 1, p.x < d.x);
  let m = p.x << u32(small);
  var q = i32(f32(m) / f32(d.x) * 16777216.0f);
  var r = (m << 24u) - q * d.x;
  while (r < 0) { q -= 1; r += d.x; }
  while (r >= d.x) { q += 1; r -= d.x; }
  return bitcast<f32>(sign | f32_rounded(u32(q), r > 0, p.y - d.y + 127 - small));
}
fn f32_sqrt(a: f32) -> f32 {
  let bits = bitcast<u32>(a);
  if ((bits & 0x7fffffffu) == 0u || bits == 0x7f800000u) { return a; }
  if (bits > 0x7f800000u) { return bitcast<f32>(0x7fc00000u ^ zero); }
  let p = f32_parts(bits);
  let odd = (p.y + 1) & 1;
  let m = p.x << u32(odd);
  var s = i32(sqrt(f32(m) * 1.1920928955078125e-7f) * 8388608.0f);
  var r = (m << 23u) - s * s;
  while (r > s) { r -= 2 * s + 1; s += 1; }
  while (r <= -s) { r += 2 * s - 1; s -= 1; }
  return bitcast<f32>(u32(((p.y - odd - 127) >> 1u) + 126) * 0x00800000u + u32(s));
}
`;
