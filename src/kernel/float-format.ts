/**
 * @file The two float formats and the tricks with their bits on which the mathematical functions rest. Algorithms are
 * written once, over a `Format`; only coefficients differ.
 *
 *   f32   1 sign, 8 exponent, 23 fraction bits,  bias 127,   bits as i32
 *   f64   1 sign, 11 exponent, 52 fraction bits, bias 1023,  bits as i64
 *
 * Rounding to an integer and reading it as bits costs one addition: x + 1.5·2^23 has no room for a fraction, so the
 * sum is rounded to the nearest integer (ties to even) and its low bits are that integer in two's complement. Good for
 * |x| ≤ 2^22 (2^51). Nothing of it needs a conversion between float and integer, which vector units lack for 64 bits.
 */
import { invariant } from "../base/invariant.ts";
import { type FloatScalar, isBig, isFloatScalar, twinOf } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { add, and, bitcast, lt, mul, pick, shl, shrS, sub } from "./scalar-ops.ts";

export interface Format {
  readonly dtype: FloatScalar;
  readonly int: "i32" | "i64";
  readonly fractionBits: number;
  /** The bits of 1. */
  readonly one: number | bigint;
  readonly signBit: number | bigint;
  /** 1.5 · 2^fractionBits, and its bits. */
  readonly magic: number;
  readonly magicBits: number | bigint;
  /** Keeps the upper half of a significand, so that the product of two such values is exact. */
  readonly upperHalf: number | bigint;
  /** The bits of √½ and those of the exponent. */
  readonly sqrtHalf: number | bigint;
  readonly exponentBits: number | bigint;
  readonly minNormal: number;
}

export const FLOAT_FORMATS: Record<FloatScalar, Format> = {
  f32: {
    dtype: "f32",
    int: "i32",
    fractionBits: 23,
    one: 0x3f800000,
    signBit: -0x80000000,
    magic: 1.5 * 2 ** 23,
    magicBits: 0x4b400000,
    upperHalf: 0xfffff000 | 0,
    sqrtHalf: 0x3f3504f3,
    exponentBits: 0xff800000 | 0,
    minNormal: 2 ** -126,
  },
  f64: {
    dtype: "f64",
    int: "i64",
    fractionBits: 52,
    one: 0x3ff0000000000000n,
    signBit: -0x8000000000000000n,
    magic: 1.5 * 2 ** 52,
    magicBits: 0x4338000000000000n,
    upperHalf: -0x100000000n,
    sqrtHalf: 0x3fe6a09e667f3bcdn,
    exponentBits: -0x10000000000000n,
    minNormal: 2 ** -1022,
  },
};

export function formatOf(x: Expr): Format {
  invariant(isFloatScalar(x.dtype), () => `a mathematical function of ${x.dtype}`);
  return FLOAT_FORMATS[x.dtype];
}

export function bitsOf(x: Expr): Expr {
  return bitcast(x, formatOf(x).int);
}

export function floatOf(bits: Expr): Expr {
  return bitcast(bits, twinOf(bits.dtype));
}

/** The nearest integer to x as a float, and an integer expression whose low bits are that integer. */
export interface Rounded {
  readonly n: Expr;
  readonly low: Expr;
}

export function roundToInteger(x: Expr): Rounded {
  const { magic } = formatOf(x);
  const sum = add(x, magic);
  return { n: sub(sum, magic), low: bitsOf(sum) };
}

/** 2^n for a normal result, from the low bits of n; `by` is added to n. */
export function powerOfTwo(low: Expr, format: Format, by = 0): Expr {
  const bits = format.fractionBits;
  // The shift drops all but the low bits; the exponent of 2^by is added after it.
  const one = isBig(format.int) ? BigInt(format.one) + (BigInt(by) << 52n) : Number(format.one) + by * 2 ** 23;
  return floatOf(add(shl(low, bits), one));
}

/**
 * y · 2^n in two steps of about n/2, so that results that overflow, are subnormal or are zero come out rightly rounded
 * for |n| up to twice the range of exponents.
 */
export function scaleByPower(y: Expr, low: Expr): Expr {
  const format = formatOf(y);
  // low = magicBits + n, and both terms of its halving keep n/2 in their low bits.
  const half = shrS(low, 1);
  return mul(mul(y, powerOfTwo(half, format)), powerOfTwo(sub(low, half), format));
}

/** x = m · 2^e with √½ ≤ m < √2 and e a float; x positive and finite. */
export interface Split {
  readonly m: Expr;
  readonly e: Expr;
}

/** For x that is not subnormal. */
export function splitExponent(x: Expr): Split {
  const format = formatOf(x);
  const bits = bitsOf(x);
  const above = sub(bits, format.sqrtHalf);
  const m = floatOf(sub(bits, and(above, format.exponentBits)));
  const e = sub(floatOf(add(shrS(above, format.fractionBits), format.magicBits)), format.magic);
  return { m, e };
}

/** For any x: a subnormal one is first made normal. */
export function splitAnyExponent(x: Expr): Split {
  const { dtype, minNormal, fractionBits } = formatOf(x);
  const lift = fractionBits + 2;
  const tiny = lt(x, minNormal);
  const { m, e } = splitExponent(pick(tiny, mul(x, 2 ** lift), x));
  return { m, e: sub(e, pick(tiny, constant(dtype, lift), 0)) };
}

/** The upper half of the significand of x; the rest of x is x minus it. */
export function upperHalf(x: Expr): Expr {
  return floatOf(and(bitsOf(x), formatOf(x).upperHalf));
}
