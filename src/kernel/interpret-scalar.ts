/**
 * @file Tests only. The meaning of each `ScalarFn` in plain JavaScript numbers: the reference for every target.
 *
 * f32, f64, i32 and bool values are JavaScript numbers that the type can hold exactly; i64 values are bigints. An f32
 * operation is the f64 operation rounded once: for + - · / and √ of f32 operands this is the correctly rounded f32
 * result, since 53 ≥ 2·24 + 2 (Figueroa, When is double rounding innocuous?, 1995).
 *
 * Invariant: a result is always a value of its type: f32 results have passed `Math.fround`, i32 results `| 0`, bools are
 * 0 or 1. The payload of a NaN is unspecified, so its `bitcast` is too.
 */
import { invariant } from "../base/invariant.ts";
import { isBig, longOf, type ScalarType, typeOf } from "./dtype.ts";
import type { ScalarFn } from "./expr.ts";

export type Scalar = number | bigint;
export type NumberFn = (a: number, b: number) => number;
export type BigFn = (a: bigint, b: bigint) => bigint;

const TO_INTEGER = 2 ** 52;

/** Rounds half to even, keeping the sign of zero: adding 2^52 leaves no room for a fraction. */
function nearest(x: number): number {
  const size = Math.abs(x);
  if (!(size < TO_INTEGER)) return x;
  const rounded = size + TO_INTEGER - TO_INTEGER;
  return x < 0 || Object.is(x, -0) ? -rounded : rounded;
}

const FLOAT: Partial<Record<ScalarFn, NumberFn>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  neg: (a) => -a,
  abs: (a) => Math.abs(a),
  sqrt: (a) => Math.sqrt(a),
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
  floor: (a) => Math.floor(a),
  ceil: (a) => Math.ceil(a),
  nearest: (a) => nearest(a),
  trunc: (a) => Math.trunc(a),
};

/** The float functions that must round when the type is f32; the others return an f32 when given one. */
const FLOAT_ROUNDED: Partial<Record<ScalarFn, NumberFn>> = {
  add: (a, b) => Math.fround(a + b),
  sub: (a, b) => Math.fround(a - b),
  mul: (a, b) => Math.fround(a * b),
  div: (a, b) => Math.fround(a / b),
  sqrt: (a) => Math.fround(Math.sqrt(a)),
};

const INT: Partial<Record<ScalarFn, NumberFn>> = {
  add: (a, b) => (a + b) | 0,
  sub: (a, b) => (a - b) | 0,
  mul: (a, b) => Math.imul(a, b),
  div: (a, b) => (b === 0 ? 0 : (a / b) | 0),
  neg: (a) => -a | 0,
  abs: (a) => Math.abs(a) | 0,
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  not: (a) => ~a,
  shl: (a, b) => a << b,
  shr_u: (a, b) => (a >>> b) | 0,
  shr_s: (a, b) => a >> b,
};

const BOOL: Partial<Record<ScalarFn, NumberFn>> = {
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  not: (a) => a ^ 1,
};

const COMPARE: Partial<Record<ScalarFn, NumberFn>> = {
  eq: (a, b) => (a === b ? 1 : 0),
  ne: (a, b) => (a !== b ? 1 : 0),
  lt: (a, b) => (a < b ? 1 : 0),
  le: (a, b) => (a <= b ? 1 : 0),
};

type Table = Partial<Record<ScalarFn, NumberFn>>;

const TABLES: Record<ScalarType, Table> = {
  f32: { ...COMPARE, ...FLOAT, ...FLOAT_ROUNDED },
  f64: { ...COMPARE, ...FLOAT },
  i32: { ...COMPARE, ...INT },
  bool: { ...COMPARE, ...BOOL },
  i64: {},
};

const inOrder = (a: bigint, b: bigint): readonly [bigint, bigint] => (a < b ? [a, b] : [b, a]);
const size = (a: bigint): bigint => (a < 0n ? -a : a);

/** On bigints; the caller wraps results to 64 bits. */
const BIG: Partial<Record<ScalarFn, BigFn>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => (b === 0n ? 0n : a / b),
  neg: (a) => -a,
  abs: size,
  min: (a, b) => inOrder(a, b)[0],
  max: (a, b) => inOrder(a, b)[1],
  not: (a) => ~a,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  shl: (a, b) => a << (b & 63n),
  shr_u: (a, b) => BigInt.asUintN(64, a) >> (b & 63n),
  shr_s: (a, b) => a >> (b & 63n),
};

/** Comparisons of bigints. */
const BIG_COMPARE: Partial<Record<ScalarFn, (a: bigint, b: bigint) => number>> = {
  eq: (a, b) => (a === b ? 1 : 0),
  ne: (a, b) => (a !== b ? 1 : 0),
  lt: (a, b) => (a < b ? 1 : 0),
  le: (a, b) => (a <= b ? 1 : 0),
};

/** The function on numbers of type `dtype` (the type of the operands). */
export function numberFn(fn: ScalarFn, dtype: ScalarType): NumberFn {
  const found = TABLES[dtype][fn];
  invariant(found, () => `${fn} is not defined on ${dtype}`);
  return found;
}

export function bigFn(fn: ScalarFn): BigFn {
  const found = BIG[fn];
  invariant(found, () => `${fn} is not defined on i64`);
  return found;
}

/** A comparison of i64. */
export function bigCompare(fn: ScalarFn): (a: bigint, b: bigint) => number {
  const found = BIG_COMPARE[fn];
  invariant(found, () => `${fn} does not compare i64`);
  return found;
}

/** A number as a value of a type. */
export const scalarOf = (dtype: ScalarType, value: number): Scalar => (isBig(dtype) ? longOf(value) : value);

/** A function of two values of any type, with its result a value of that type. */
export function scalarFn(fn: ScalarFn, dtype: ScalarType): (a: Scalar, b: Scalar) => Scalar {
  if (!isBig(dtype)) return numberFn(fn, dtype) as (a: Scalar, b: Scalar) => Scalar;
  const apply = bigFn(fn);
  return (a, b) => BigInt.asIntN(64, apply(a as bigint, b as bigint));
}

/** Saturates at the ends of i32, as conversions from floats do; they are far from where doubles are rounded. */
const narrowed = (a: bigint): number => typeOf("i32").round(Number(a));

/** The f32 nearest to a whole number, rounded once: of one that a double rounds, 32 bits and whether there are more are enough. */
function nearestSingle(a: bigint): number {
  const [n, sign] = [size(a), a < 0n ? -1 : 1];
  const cut = BigInt(Math.max(n.toString(2).length - 32, 0));
  const high = n >> cut;
  const rest = high << cut === n ? 0n : 1n;
  return sign * Math.fround(Number(high | rest) * 2 ** Number(cut));
}

/** From i64. */
const FROM_BIG: Readonly<Record<ScalarType, (a: bigint) => Scalar>> = {
  f32: nearestSingle,
  f64: Number,
  i32: narrowed,
  i64: (a) => a,
  bool: (a) => (a === 0n ? 0 : 1),
};

/** `convert` between compute types. */
export function converter(from: ScalarType, to: ScalarType): (a: Scalar) => Scalar {
  if (isBig(from)) return FROM_BIG[to] as (a: Scalar) => Scalar;
  if (isBig(to)) return (a) => longOf(a);
  return typeOf(to).round as (a: Scalar) => Scalar;
}

const cell = new DataView(new ArrayBuffer(8));

const CASTS: Record<string, (a: Scalar) => Scalar> = {
  "f32 i32": (a) => {
    cell.setFloat32(0, a as number);
    return cell.getInt32(0);
  },
  "i32 f32": (a) => {
    cell.setInt32(0, a as number);
    return cell.getFloat32(0);
  },
  "f64 i64": (a) => {
    cell.setFloat64(0, a as number);
    return cell.getBigInt64(0);
  },
  "i64 f64": (a) => {
    cell.setBigInt64(0, a as bigint);
    return cell.getFloat64(0);
  },
};

/** The bits of one of the pairs f32/i32, f64/i64 read as the other. */
export function bitcast(from: ScalarType, to: ScalarType): (a: Scalar) => Scalar {
  const cast = CASTS[`${from} ${to}`];
  invariant(cast, () => `bitcast is not defined from ${from} to ${to}`);
  return cast;
}
