/**
 * @file The two floats of sixteen bits, as bits and as numbers. Both are storage types: they are computed in f32.
 *
 *   f16    1 sign, 5 exponent, 10 fraction bits     largest 65,504     least 2⁻²⁴, normal from 2⁻¹⁴
 *   bf16   1 sign, 8 exponent,  7 fraction bits     the upper half of an f32, and its range
 *
 * A number becomes an f32 first, then the nearest of its type, ties to even; beyond the largest it becomes an infinity. There
 * is one NaN of each type: which NaN an operation gives differs between processors.
 */

const WORD = new DataView(new ArrayBuffer(4));

const F16_NAN = 0x7e00;
const F16_INFINITY = 0x7c00;
const BF16_NAN = 0x7fc0;

/** Bits of f32: infinity, and the least number that becomes an infinity of f16: half a step above the largest. */
const INFINITY_BITS = 0x7f800000;
export const F16_OVERFLOW_BITS = 0x477ff000;
/** Of 2⁻¹⁴, below which f16 has equal steps of 2⁻²⁴. */
export const F16_NORMAL_BITS = 0x38800000;

/** An f16 as a number. */
export function halfToNumber(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 0x1f, bits & 0x3ff];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** A bf16 as a number. */
export function brainToNumber(bits: number): number {
  WORD.setUint32(0, bits << 16);
  return WORD.getFloat32(0);
}

/** bits / 2ᶜᵒᵘⁿᵗ, rounded to the nearest, ties to even. */
function evenShift(bits: number, count: number): number {
  const kept = bits >>> count;
  const [dropped, half] = [bits & (2 ** count - 1), 2 ** (count - 1)];
  return dropped > half || (dropped === half && kept % 2 === 1) ? kept + 1 : kept;
}

/** The nearest f16 of a number that is rounded to f32 first. */
export function numberToHalf(x: number): number {
  WORD.setFloat32(0, x);
  const bits = WORD.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const rest = bits & 0x7fffffff;
  if (rest > INFINITY_BITS) return F16_NAN;
  if (rest >= F16_OVERFLOW_BITS) return sign | F16_INFINITY;
  if (rest >= F16_NORMAL_BITS) return sign | (evenShift(rest, 13) - (112 << 10));
  // a multiple of 2⁻²⁴, and scaling by a power of two is exact
  const scaled = Math.abs(WORD.getFloat32(0)) * 2 ** 24;
  const down = Math.floor(scaled);
  const isUp = scaled - down > 0.5 || (scaled - down === 0.5 && down % 2 === 1);
  return sign | (isUp ? down + 1 : down);
}

/** The nearest bf16 of a number that is rounded to f32 first. */
export function numberToBrain(x: number): number {
  WORD.setFloat32(0, x);
  const bits = WORD.getUint32(0);
  return (bits & 0x7fffffff) > INFINITY_BITS ? BF16_NAN : evenShift(bits, 16);
}
