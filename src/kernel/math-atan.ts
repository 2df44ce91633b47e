/**
 * @file atan, atan2, asin, acos: angles from ratios. For q ≥ 0 one of three forms brings the argument of the polynomial to
 * |t| ≤ tan π/8:
 *
 *   q < tan π/8            atan q =       atan q
 *   q < tan 3π/8           atan q = π/4 + atan((q - 1) / (q + 1))
 *   beyond                 atan q = π/2 + atan(-1 / q)
 *
 * atan t = t + t·z·P(z) with z = t², P a minimax fit. π/4 and π/2 are added in two parts, the small one first.
 */
import type { FloatScalar } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { bitsOf, floatOf, formatOf } from "./float-format.ts";
import { abs, add, and, div, eq, lt, min, mul, or, pick, polynomial, sqrt, sub } from "./scalar-ops.ts";

interface AtanTable {
  /** (atan t / t - 1) / t² in t². */
  readonly p: readonly number[];
  /** π/2 in two parts; those of π/4 and π are a power of two away. */
  readonly halfPi: readonly [number, number];
}

const TABLES: Record<FloatScalar, AtanTable> = {
  f32: {
    p: [-0.333333319, 0.199995581, -0.14264453, 0.107482466, -0.0646475415],
    halfPi: [1.5707963705062866, -4.371139000186241e-8],
  },
  f64: {
    p: [
      -0.3333333333333333, 0.1999999999999574, -0.14285714284708023, 0.11111111018278907, -0.09090904690018035,
      0.07692185570626195, -0.06664542263593706, 0.0585839588479986, -0.05086645756122065, 0.039263720299182014,
      -0.019213408503642462,
    ],
    halfPi: [1.5707963267948966, 6.123233995736766e-17],
  },
};

const NEAR = Math.tan(Math.PI / 8);
const FAR = Math.tan((3 * Math.PI) / 8);

/** atan q for q ≥ 0; of NaN NaN. */
function atanOfPositive(q: Expr): Expr {
  const { p, halfPi } = TABLES[formatOf(q).dtype];
  const [high, low] = halfPi;
  const isNear = lt(q, NEAR);
  const isFar = lt(FAR, q);
  const above = pick(isNear, q, pick(isFar, -1, sub(q, 1)));
  const below = pick(isNear, 1, pick(isFar, q, add(q, 1)));
  const t = div(above, below);
  const z = mul(t, t);
  const tail = mul(mul(t, z), polynomial(z, p));
  const part = (of: number): Expr => pick(isNear, constant(q.dtype, 0), pick(isFar, constant(q.dtype, of), of / 2));
  return add(part(high), add(t, add(part(low), tail)));
}

/** The sign of one number on another that is not negative. */
export function withSignOf(x: Expr, size: Expr): Expr {
  return floatOf(or(bitsOf(size), and(bitsOf(x), formatOf(x).signBit)));
}

export function atan(x: Expr): Expr {
  return withSignOf(x, atanOfPositive(abs(x)));
}

/** By the ratio to √((1 - x)(1 + x)), whose factors lose nothing near ±1. */
export function asin(x: Expr): Expr {
  const size = abs(x);
  return withSignOf(x, atanOfPositive(div(size, sqrt(mul(sub(1, size), add(1, size))))));
}

/** π - angle where the other side is negative. */
function mirrored(angle: Expr, isNegative: Expr): Expr {
  const [high, low] = TABLES[formatOf(angle).dtype].halfPi;
  return pick(isNegative, sub(2 * high, sub(angle, 2 * low)), angle);
}

export function acos(x: Expr): Expr {
  const ratio = div(sqrt(mul(sub(1, x), add(1, x))), abs(x));
  return mirrored(atanOfPositive(ratio), lt(x, 0));
}

/** Whether the sign bit is set, of zeros too. */
function hasSign(x: Expr): Expr {
  // the exponent of 1 makes a number of the sign that compares
  return lt(withSignOf(x, constant(x.dtype, 1)), 0);
}

/** The angle of the point (x, y). Of two zeros and two infinities the angle that their signs say. */
export function atan2(y: Expr, x: Expr): Expr {
  const [above, below] = [abs(y), abs(x)];
  // ∞/∞ as 1, 0/0 as 0
  const same = eq(above, below);
  const extreme = and(same, or(eq(above, 0), eq(above, Number.POSITIVE_INFINITY)));
  const ratio = pick(extreme, min(above, 1), div(above, below));
  return withSignOf(y, mirrored(atanOfPositive(ratio), hasSign(x)));
}
