/**
 * @file Remainders and whole quotients, and shifts of integers by any number of bits.
 *
 *   fmod       a - b·trunc(a / b)     has the sign of a        C, torch.fmod, numpy.fmod
 *   remainder  a - b·floor(a / b)     has the sign of b        Python's %, torch.remainder, numpy.mod
 *   floorDiv   floor(a / b)                                    Python's //, torch.floor_divide, numpy.floor_divide
 *
 * Of floats fmod is exact while |a / b| is below 2^23 (f32) or 2^51 (f64): the product of the quotient and b is computed in two parts that
 * have all of its bits, and a quotient that was rounded to the next integer is put right. Beyond that, the result is a number between
 * zero and b, and no more. Of integers, everything by zero is 0.
 */
import { type FloatScalar, isFloatScalar, laneBytes } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { bitsOf, floatOf, formatOf } from "./float-format.ts";
import { withSignOf } from "./math-atan.ts";
import {
  abs,
  add,
  and,
  div,
  eq,
  le,
  lt,
  max,
  min,
  mul,
  ne,
  nearest,
  pick,
  shl,
  shrS,
  sub,
  trunc,
  xor,
} from "./scalar-ops.ts";

/** Keeps so many bits of a significand that the products of what is kept, of what is dropped, and of both are exact. */
const SPLIT: Record<FloatScalar, number | bigint> = { f32: 0xfffff000 | 0, f64: -0x8000000n };

/** x - q·y, rounded once. */
function exactRest(x: Expr, q: Expr, y: Expr): Expr {
  const product = mul(q, y);
  const upper = (v: Expr): Expr => floatOf(and(bitsOf(v), SPLIT[formatOf(v).dtype]));
  const [qHigh, yHigh] = [upper(q), upper(y)];
  const [qLow, yLow] = [sub(q, qHigh), sub(y, yHigh)];
  const lost = add(add(add(sub(mul(qHigh, yHigh), product), mul(qHigh, yLow)), mul(qLow, yHigh)), mul(qLow, yLow));
  return sub(sub(x, product), lost);
}

/** fmod of sizes: 0 ≤ result < y. */
function fmodOfPositive(x: Expr, y: Expr): Expr {
  const rest = exactRest(x, trunc(div(x, y)), y);
  // the quotient may have been rounded up to the next integer
  const least = pick(lt(rest, 0), add(rest, y), rest);
  const bounded = pick(le(y, least), sub(least, y), least);
  // far out nothing is exact but the range
  const inRange = max(min(bounded, y), 0);
  return pick(lt(x, y), x, inRange);
}

function fmodOfFloats(a: Expr, b: Expr): Expr {
  const size = fmodOfPositive(abs(a), abs(b));
  const isDefined = and(lt(abs(a), Number.POSITIVE_INFINITY), ne(b, 0));
  return pick(isDefined, withSignOf(a, size), constant(a.dtype, Number.NaN));
}

/** Whether the sign of a remainder is not the divisor's. */
const isOnOtherSide = (rest: Expr, b: Expr): Expr => and(ne(rest, 0), xor(lt(rest, 0), lt(b, 0)));

export function fmod(a: Expr, b: Expr): Expr {
  if (isFloatScalar(a.dtype)) return fmodOfFloats(a, b);
  return pick(eq(b, 0), 0, sub(a, mul(div(a, b), b)));
}

export function remainder(a: Expr, b: Expr): Expr {
  const rest = fmod(a, b);
  return pick(isOnOtherSide(rest, b), add(rest, b), rest);
}

export function floorDiv(a: Expr, b: Expr): Expr {
  const rest = fmod(a, b);
  const isBelow = isOnOtherSide(rest, b);
  if (!isFloatScalar(a.dtype)) {
    const quotient = div(a, b);
    return pick(isBelow, sub(quotient, 1), quotient);
  }
  const whole = nearest(div(sub(a, rest), b));
  const quotient = div(a, b);
  const floored = pick(isBelow, sub(whole, 1), whole);
  // zeros have the sign of the quotient; by zero it is the quotient
  const signed = pick(eq(floored, 0), withSignOf(quotient, constant(a.dtype, 0)), floored);
  return pick(eq(b, 0), quotient, signed);
}

/** a << count or a >> count; a count below 0, or of all bits or more, shifts all bits out, as in NumPy. */
export function shift(fn: "shl" | "shr_s", a: Expr, count: Expr): Expr {
  const by = (x: Expr, n: number): Expr => (fn === "shl" ? shl(x, n) : shrS(x, n));
  const bits = 8 * laneBytes(a.dtype);
  const all = fn === "shl" ? constant(a.dtype, 0) : shrS(a, bits - 1);
  if (count.kind === "const") {
    const n = Number(count.value);
    return n >= 0 && n < bits ? by(a, n) : all;
  }
  // by 1, 2, 4, 8, 16 (and 32), each where the bit of the count is set: registers are shifted by one number
  let shifted = a;
  for (let n = 1; n < bits; n *= 2) shifted = pick(eq(and(count, n), 0), shifted, by(shifted, n));
  return pick(eq(and(count, -bits), 0), shifted, all);
}
