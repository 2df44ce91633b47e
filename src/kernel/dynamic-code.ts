/**
 * @file Dynamic tree quantisation (T. Dettmers and others, 8-bit optimizers via block-wise quantization, ICLR 2022, section 1.3): 256 numbers
 * in [-1, 1] or [0, 1] that are close together near 0. Decade i has 2ⁱ of them, the middles of equal parts of [0.1, 1] · 10^(i-last):
 *
 *   code          0     1     2 3     4 … 7   …   n = 2ⁱ + j                                      128       128 + n
 *   number        0    5.5e-7  …                  10^(i-6)·(0.1 + 0.9·(j + ½)/2ⁱ), i = 0 … 6        1       minus that of n
 *
 * Without a sign n is the code plus 1 and decades have 2, 4, … 128 numbers; the last code is 1.
 */
import type { FloatScalar } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { abs, add, and, convert, div, floor, le, lt, max, min, mul, pick, sub } from "./scalar-ops.ts";

/** Decades by the power of two that their count is. */
const DECADES = 7;

/** Exponent of two of the first decade. */
const firstOf = (signed: boolean): number => (signed ? 0 : 1);

const powerOfTen = (i: number, signed: boolean): number => Number(`1e${i - firstOf(signed) - (DECADES - 1)}`);

/** The number of decade i and place j. */
const numberAt = (i: number, j: number, signed: boolean): number =>
  powerOfTen(i, signed) * (0.1 + (0.9 * (j + 0.5)) / 2 ** i);

/** The number that a code stands for. */
export function dynamicNumber(code: number, signed: boolean): number {
  const n = signed ? code & 127 : code + 1;
  if (n === (signed ? 0 : 256)) return code === 0 ? 0 : 1;
  if (!signed && code === 0) return 0;
  const i = Math.floor(Math.log2(n));
  const size = numberAt(i, n - 2 ** i, signed);
  return signed && code > 128 ? -size : size;
}

/** Between the last number of decade i and the first of the next; below the first decade, half of the first number; above the last, 1. */
function edges(signed: boolean): readonly number[] {
  const first = firstOf(signed);
  const inner = Array.from({ length: DECADES }, (_, k) => {
    const i = first + k;
    const next = k === DECADES - 1 ? 1 : numberAt(i + 1, 0, signed);
    return (numberAt(i, 2 ** i - 1, signed) + next) / 2;
  });
  return [numberAt(first, 0, signed) / 2, ...inner];
}

/** The nearest code of a number, which is brought into the range of the codes. */
export function dynamicCode(x: Expr, signed: boolean): Expr {
  const dtype = x.dtype as FloatScalar;
  const of = (value: number): Expr => constant(dtype, value);
  const first = firstOf(signed);
  const size = signed ? abs(x) : x;
  const bounds = edges(signed);
  let [times, count] = [of(1 / powerOfTen(first, signed)), of(2 ** first)];
  for (let k = 1; k < DECADES; k++) {
    const isAbove = le(bounds[k] ?? 0, size);
    times = pick(isAbove, of(1 / powerOfTen(first + k, signed)), times);
    count = pick(isAbove, of(2 ** (first + k)), count);
  }
  const place = floor(mul(div(sub(mul(size, times), 0.1), 0.9), count));
  const n = add(max(min(place, sub(count, 1)), 0), count);
  const code = signed ? pick(lt(x, 0), add(n, 128), n) : sub(n, 1);
  const isOne = le(bounds[DECADES] ?? 1, x);
  const whole = pick(isOne, of(signed ? 128 : 255), code);
  return convert(pick(le(bounds[0] ?? 0, size), whole, of(0)), "i32");
}

/** The number of a code, in f32. */
export function dynamicValue(code: Expr, signed: boolean): Expr {
  const of = (value: number): Expr => constant("f32", value);
  const n = convert(signed ? and(code, 127) : add(code, 1), "f32");
  const first = firstOf(signed);
  let [ten, inverse] = [of(powerOfTen(first, signed)), of(2 ** -first)];
  for (let k = 1; k < DECADES; k++) {
    const isAbove = le(2 ** (first + k), n);
    ten = pick(isAbove, of(powerOfTen(first + k, signed)), ten);
    inverse = pick(isAbove, of(2 ** -(first + k)), inverse);
  }
  const part = sub(mul(add(n, 0.5), inverse), 1);
  const size = mul(ten, add(mul(part, 0.9), 0.1));
  if (!signed) return pick(le(256, n), of(1), pick(le(n, 1), of(0), size));
  const isHigh = le(128, code);
  return pick(lt(n, 1), pick(isHigh, of(1), of(0)), pick(isHigh, sub(0, size), size));
}
