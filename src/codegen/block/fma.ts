/**
 * @file Tests only. What a · b + c is, rounded once, in JavaScript. Exactly: products and sums of floats are whole numbers times powers of two.
 *
 *   f32   a · b is exact in f64; the sum is rounded to odd there, which leaves the second rounding what one would have been
 *         (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008)
 *   f64   bigints
 */
import { InternalError } from "../../base/invariant.ts";
import type { DType } from "../../kernel/dtype.ts";

type Fma = (a: number, b: number, c: number) => number;

const words = new DataView(new ArrayBuffer(8));

/** The f64 next to s on the side that the error is on, unless s is odd already: s + error rounded to odd. */
function toOdd(s: number, error: number): number {
  if (error === 0 || !Number.isFinite(s)) return s;
  words.setFloat64(0, s);
  const bits = words.getBigInt64(0);
  if ((bits & 1n) === 1n) return s;
  // the bits of positive numbers grow with them, those of negative ones fall
  words.setBigInt64(0, s > 0 === error > 0 ? bits + 1n : bits - 1n);
  return words.getFloat64(0);
}

function fmaSingle(a: number, b: number, c: number): number {
  const product = a * b;
  const s = product + c;
  // what was lost of the sum (Knuth's two-sum)
  const back = s - product;
  const error = product - (s - back) + (c - back);
  return Math.fround(toOdd(s, error));
}

/** A finite number as whole · 2^exponent. */
function decompose(x: number): { readonly whole: bigint; readonly exponent: number } {
  words.setFloat64(0, x);
  const bits = words.getBigUint64(0);
  const field = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const whole = field === 0 ? fraction : fraction | (1n << 52n);
  return { whole: x < 0 ? -whole : whole, exponent: Math.max(field, 1) - 1075 };
}

const LEAST_EXPONENT = -1074;

/** whole · 2^exponent, rounded once. */
function compose(whole: bigint, exponent: number): number {
  const size = whole < 0n ? -whole : whole;
  const bits = size.toString(2).length;
  // bits below the last one that the result can have, all but one of which says whether there are any
  const extra = Math.max(bits - 53, LEAST_EXPONENT - exponent, 0);
  if (extra === 0) return Number(whole) * 2 ** exponent;
  const [kept, lost] = [size >> BigInt(extra), size & ((1n << BigInt(extra)) - 1n)];
  const half = 1n << BigInt(extra - 1);
  const up = lost > half || (lost === half && (kept & 1n) === 1n);
  const rounded = Number(up ? kept + 1n : kept);
  const power = exponent + extra;
  // in two steps, since 2^power alone may overflow
  const result = rounded * 2 ** Math.min(power, 970) * 2 ** Math.max(0, power - 970);
  return whole < 0n ? -result : result;
}

function fmaDouble(a: number, b: number, c: number): number {
  const plain = a * b + c;
  if (!Number.isFinite(a) || !Number.isFinite(b) || !Number.isFinite(c)) return plain;
  const [x, y, z] = [decompose(a), decompose(b), decompose(c)];
  const low = Math.min(x.exponent + y.exponent, z.exponent);
  const product = (x.whole * y.whole) << BigInt(x.exponent + y.exponent - low);
  const sum = product + (z.whole << BigInt(z.exponent - low));
  // the sign of a zero is that of plain arithmetic, whose parts are exact then
  if (sum === 0n) return x.whole === 0n || y.whole === 0n ? plain : 0;
  return compose(sum, low);
}

/** Of a type that products are of. */
export function fusedMultiplyAdd(dtype: DType): Fma {
  const table: Partial<Record<DType, Fma>> = { f32: fmaSingle, f64: fmaDouble };
  const found = table[dtype];
  if (!found) throw new InternalError(`products of ${dtype} are not rounded`);
  return found;
}
