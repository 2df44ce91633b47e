/**
 * @file xʸ = 2^(y·log₂|x|) with log₂|x| carried in two floats, since y·log₂|x| may reach 2^7 (2^10) and its absolute
 * error becomes a relative error of the result. After fdlibm (e_pow.c, 1993), made free of branches:
 *
 *   |x| = m·2^e,  s = (m-1)/(m+1),  log₂ m = ⅔/ln 2 · s·(3 + s² + s⁴·L(s²))
 *
 * Every value is kept as high + low, the high part having half a significand, so that products of high parts are exact
 * without a fused multiply-add. L is a minimax fit.
 */
import { type FloatScalar, isBig } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import {
  bitsOf,
  type Format,
  floatOf,
  formatOf,
  roundToInteger,
  scaleByPower,
  splitAnyExponent,
  upperHalf,
} from "./float-format.ts";
import { expTail } from "./math-exp.ts";
import {
  abs,
  add,
  and,
  clamp,
  div,
  eq,
  floor,
  lt,
  mul,
  ne,
  not,
  or,
  pick,
  polynomial,
  sub,
  xor,
} from "./scalar-ops.ts";

interface PowTable {
  /** (3/2 · log((1+s)/(1-s))/s - 3 - z) / z² in z = s². */
  readonly l: readonly number[];
  /** ⅔/ln 2: whole, high, low. */
  readonly cp: readonly [number, number, number];
  /** ln 2: whole, high, low. */
  readonly ln2: readonly [number, number, number];
  /** With a larger exponent y the result is 0, 1 or ∞ for every x. */
  readonly yLimit: number;
  /** Beyond 2^±limit results are 0 or ∞. */
  readonly limit: number;
}

const TABLES: Record<FloatScalar, PowTable> = {
  f32: {
    l: [0.599999964, 0.428579599, 0.332694232, 0.293391943],
    cp: [0.9617967009544373, 0.9619140625, -0.00011736857413779944],
    ln2: [0.6931471824645996, 0.693115234375, 3.194618329871446e-5],
    yLimit: 2 ** 31,
    limit: 160,
  },
  f64: {
    l: [
      0.5999999999999996, 0.428571428571688, 0.3333333332602945, 0.27272728339205465, 0.23076833007817804,
      0.2000456446065264, 0.17510436789121092, 0.17998417886094548,
    ],
    cp: [0.9617966939259756, 0.9617967009544373, -7.028461650952758e-9],
    ln2: [Math.LN2, 0.6931471824645996, -1.904654299957768e-9],
    yLimit: 2 ** 65,
    limit: 1200,
  },
};

/** A value in two floats; `high` has half a significand. */
interface Pair {
  readonly high: Expr;
  readonly low: Expr;
}

/** log₂ x for positive finite x. */
function log2(x: Expr, table: PowTable): Pair {
  const { m, e } = splitAnyExponent(x);
  const f = sub(m, 1);
  const d = add(m, 1);
  const inverse = div(1, d);
  // s = f / d, its low part from the exact remainder f - sHigh·d.
  const s = mul(f, inverse);
  const sHigh = upperHalf(s);
  const dHigh = upperHalf(d);
  const dLow = sub(m, sub(dHigh, 1));
  const sLow = mul(sub(sub(f, mul(sHigh, dHigh)), mul(sHigh, dLow)), inverse);
  // t = 3 + s² + s⁴·L, with s² = sHigh² + sLow·(sHigh + s).
  const z = mul(s, s);
  const square = mul(sHigh, sHigh);
  const rest = add(mul(mul(z, z), polynomial(z, table.l)), mul(sLow, add(sHigh, s)));
  const tHigh = upperHalf(add(add(square, 3), rest));
  const tLow = sub(rest, sub(sub(tHigh, 3), square));
  // p = s·t
  const u = mul(sHigh, tHigh);
  const v = add(mul(sLow, tHigh), mul(tLow, s));
  const pHigh = upperHalf(add(u, v));
  const pLow = sub(v, sub(pHigh, u));
  // log₂ = e + ⅔/ln 2 · p
  const [cp, cpHigh, cpLow] = table.cp;
  const high = mul(pHigh, cpHigh);
  const low = add(mul(pHigh, cpLow), mul(pLow, cp));
  const sum = upperHalf(add(add(high, low), e));
  return { high: sum, low: sub(low, sub(sub(sum, e), high)) };
}

/** 2^(high + low), high within ±limit. */
function exp2({ high, low }: Pair, table: PowTable): Expr {
  const { n, low: bits } = roundToInteger(add(high, low));
  const fraction = sub(high, n);
  const t = upperHalf(add(low, fraction));
  const [ln2, ln2High, ln2Low] = table.ln2;
  const u = mul(t, ln2High);
  const v = add(mul(sub(low, sub(t, fraction)), ln2), mul(t, ln2Low));
  const w = add(u, v);
  const lost = sub(v, sub(w, u));
  return scaleByPower(add(1, add(w, add(expTail(w), lost))), bits);
}

/** |x|ʸ for |x| positive and finite. */
function magnitude(x: Expr, y: Expr, table: PowTable): Expr {
  const log = log2(x, table);
  const bounded = clamp(y, -table.yLimit, table.yLimit);
  const yHigh = upperHalf(bounded);
  const high = mul(yHigh, log.high);
  const low = add(mul(sub(bounded, yHigh), log.high), mul(bounded, log.low));
  return exp2({ high: clamp(high, -table.limit, table.limit), low: clamp(low, -1, 1) }, table);
}

/**
 * The table of IEEE 754: x⁰ = 1ʸ = 1 even for NaN; 0 and ∞ by the sign of y; the sign of x where y is an odd integer;
 * NaN where x < 0 is finite and y is no integer.
 */
function special(x: Expr, y: Expr, core: Expr, format: Format): Expr {
  const zero = constant(x.dtype, 0);
  const size = abs(x);
  const integer = eq(floor(y), y);
  const half = mul(y, 0.5);
  const odd = and(integer, ne(floor(half), half));
  const real = pick(and(lt(x, 0), not(integer)), Number.NaN, core);
  const isZero = eq(size, 0);
  const extreme = or(isZero, eq(size, Number.POSITIVE_INFINITY));
  const limit = pick(xor(isZero, lt(y, 0)), zero, Number.POSITIVE_INFINITY);
  const unsigned = pick(extreme, limit, real);
  const sign = and(bitsOf(x), format.signBit);
  const signed = floatOf(xor(bitsOf(unsigned), pick(odd, sign, isBig(format.int) ? 0n : 0)));
  const ordered = pick(or(ne(x, x), ne(y, y)), add(x, y), signed);
  return pick(or(eq(y, 0), eq(x, 1)), 1, ordered);
}

export function pow(x: Expr, y: Expr): Expr {
  const format = formatOf(x);
  return special(x, y, magnitude(abs(x), y, TABLES[format.dtype]), format);
}
