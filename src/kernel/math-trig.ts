/**
 * @file sin, cos, tan. x = n·π/2 + r with |r| ≤ π/4, then sin r and cos r by polynomials, chosen and signed by n mod 4:
 *
 *   n mod 4     0      1      2      3
 *   sin x     sin r  cos r -sin r -cos r
 *   cos x     cos r -sin r -cos r  sin r
 *   tan x     sin r / cos r (n even), -cos r / sin r (n odd)
 *
 * π/2 is subtracted in parts so short that n·part is exact (Cody and Waite), and with them the differences while they
 * cancel; this holds for |n| < 2^16 in f32 (parts of 8 bits: |x| ≤ 1e5) and |n| < 2^20 in f64 (33 bits: |x| ≤ 1.6e6).
 * In f32 beyond 5e4 a few numbers lie closer to a multiple of π/2 than the parts reach: the absolute error stays below
 * 2^-23 up to 1e5. Further out accuracy fades and is gone at 2^22 (2^51), but results stay in range; sin ∞ is NaN.
 *
 * The polynomials: for f64 those of fdlibm (k_sin.c, k_cos.c, 1993), for f32 minimax fits.
 */
import { at } from "../base/invariant.ts";
import { type FloatScalar, isBig, laneBytes } from "./dtype.ts";
import type { Expr } from "./expr.ts";
import { bitsOf, FLOAT_FORMATS, floatOf, formatOf, roundToInteger } from "./float-format.ts";
import { abs, add, and, clamp, div, lt, mul, ne, or, pick, polynomial, shl, sub, xor } from "./scalar-ops.ts";

interface TrigTable {
  /** π/2 in parts, and how many of them can be subtracted without any rounding. */
  readonly halfPi: readonly number[];
  readonly exact: number;
  /** (sin r / r - 1) / r² in r². */
  readonly sin: readonly number[];
  /** (cos r - 1 + r²/2) / r⁴ in r². */
  readonly cos: readonly number[];
}

const TABLES: Record<FloatScalar, TrigTable> = {
  f32: {
    halfPi: [1.5703125, 0.000484466552734375, -6.407499313354492e-7, 9.89530235528946e-10, 2.5633440682570896e-12],
    exact: 2,
    sin: [-0.166666552, 0.0083321901, -0.000195184053],
    cos: [0.0416666456, -0.00138873095, 2.44323273e-5],
  },
  f64: {
    halfPi: [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21],
    exact: 1,
    sin: [
      -0.16666666666666632, 0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-6, -2.5050760253406863e-8,
      1.58969099521155e-10,
    ],
    cos: [
      0.0416666666666666, -0.001388888888887411, 2.480158728947673e-5, -2.7557314351390663e-7, 2.087572321298175e-9,
      -1.1359647557788195e-11,
    ],
  },
};

interface Quadrant {
  readonly sin: Expr;
  readonly cos: Expr;
  /** Its low bits are n. */
  readonly low: Expr;
}

function quadrantOf(x: Expr): Quadrant {
  const table = TABLES[formatOf(x).dtype];
  const { n, low } = roundToInteger(mul(x, 2 / Math.PI));
  const parts = table.halfPi.map((part) => mul(n, part));
  let r = x;
  let lost: Expr | null = null;
  // Differences that may be rounded give up what they lose, (r - next) - part, so that one rounding remains, the last.
  parts.slice(0, -1).forEach((part, i) => {
    const next = sub(r, part);
    if (i >= table.exact) {
      const loss = sub(sub(r, next), part);
      lost = lost ? add(lost, loss) : loss;
    }
    r = next;
  });
  const last = at(parts, parts.length - 1);
  r = lost ? add(r, sub(lost, last)) : sub(r, last);
  // Of no effect where the reduction is good; else it keeps the polynomials in range.
  return { ...circlePoint(clamp(r, -0.8, 0.8)), low };
}

/** sin r and cos r for |r| ≤ 0.8. */
export function circlePoint(r: Expr): { readonly sin: Expr; readonly cos: Expr } {
  const table = TABLES[formatOf(r).dtype];
  const z = mul(r, r);
  const sin = add(r, mul(mul(r, z), polynomial(z, table.sin)));
  const half = mul(z, 0.5);
  const w = sub(1, half);
  // The rounding error of 1 - z/2 is added to the small part.
  const lost = sub(sub(1, w), half);
  const cos = add(w, add(lost, mul(mul(z, z), polynomial(z, table.cos))));
  return { sin, cos };
}

/** Bit 0. There is no comparison of i64: there the bit becomes the sign of a float that is not zero. */
function isOdd(low: Expr): Expr {
  if (!isBig(low.dtype)) return ne(and(low, 1), 0);
  return lt(floatOf(or(shl(low, 63), FLOAT_FORMATS.f64.one)), 0);
}

/** y with its sign flipped where the bit of the integer is set, and once more where `odd` is negative. */
function flipByBit(y: Expr, low: Expr, bit: 0 | 1, odd: Expr | null): Expr {
  const { dtype, signBit } = formatOf(y);
  const atSign = shl(low, 8 * laneBytes(dtype) - 1 - bit);
  const flip = and(odd ? xor(atSign, bitsOf(odd)) : atSign, signBit);
  return floatOf(xor(bitsOf(y), flip));
}

/** By |x|, which makes it odd to the last bit, -0 included. */
export function sin(x: Expr): Expr {
  const { sin, cos, low } = quadrantOf(abs(x));
  return flipByBit(pick(isOdd(low), cos, sin), low, 1, x);
}

function next(n: Expr): Expr {
  return add(n, isBig(n.dtype) ? 1n : 1);
}

/** cos x = sin (x + π/2): the table above, one column further. */
export function cos(x: Expr): Expr {
  const { sin, cos, low } = quadrantOf(x);
  return flipByBit(pick(isOdd(low), sin, cos), next(low), 1, null);
}

export function tan(x: Expr): Expr {
  const { sin, cos, low } = quadrantOf(abs(x));
  const odd = isOdd(low);
  return flipByBit(div(pick(odd, cos, sin), pick(odd, sin, cos)), low, 0, x);
}

/** cos 2πu for 0 ≤ u ≤ 1, with nothing lost to reduction: quarters of the circle are told apart exactly. */
export function cosOfTurns(u: Expr): Expr {
  const quarters = mul(u, 4);
  const { n, low } = roundToInteger(quarters);
  const { sin, cos } = circlePoint(mul(sub(quarters, n), Math.PI / 2));
  return flipByBit(pick(isOdd(low), sin, cos), next(low), 1, null);
}
