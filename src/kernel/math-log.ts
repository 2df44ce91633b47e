/**
 * @file log, log2, log10, log1p, softplus.
 *
 * x = m·2^e with √½ ≤ m < √2, f = m - 1 (exact), s = f / (2 + f), and with z = s²
 *
 *   log m = log (1+s)/(1-s) = 2s + s·R(z) = f - ½f² + s·(½f² + R(z)),   R(z) = ⅔z + ⅖z² + …
 *
 * in which the large part f is exact (fdlibm, e_log.c, 1993). The coefficients of R are published ones for f64 and a fit
 * made for f32.
 */
import type { FloatScalar } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { formatOf, type Split, splitAnyExponent, splitExponent } from "./float-format.ts";
import { expOfNegative } from "./math-exp.ts";
import { abs, add, div, eq, lt, max, mul, neg, pick, polynomial, sub } from "./scalar-ops.ts";

interface LogTable {
  /** R(z) / z. */
  readonly r: readonly number[];
  /** ln 2 in two parts; e·part is exact for the first. */
  readonly ln2: readonly [number, number];
  /** log₁₀ 2 likewise. */
  readonly log10Of2: readonly [number, number];
  readonly tiny: number;
}

const TABLES: Record<FloatScalar, LogTable> = {
  f32: {
    r: [0.666666627, 0.400009722, 0.284987926, 0.242788583],
    ln2: [0.69313812256, 9.0580006145e-6],
    log10Of2: [0.301025390625, 4.60503898e-6],
    tiny: 2 ** -26,
  },
  f64: {
    r: [
      0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784, 0.1818357216161805,
      0.15313837699209373, 0.14798198605116586,
    ],
    ln2: [0.6931471803691238, 1.9082149292705877e-10],
    log10Of2: [0.30102999566361177, 3.694239077158931e-13],
    tiny: 2 ** -55,
  },
};

/** log m = f - (½f² - rest). */
function logOfMantissa(m: Expr): { readonly f: Expr; readonly halfSquare: Expr; readonly rest: Expr } {
  const f = sub(m, 1);
  const s = div(f, add(f, 2));
  const z = mul(s, s);
  const halfSquare = mul(mul(f, 0.5), f);
  const r = mul(z, polynomial(z, TABLES[formatOf(m).dtype].r));
  return { f, halfSquare, rest: mul(s, add(halfSquare, r)) };
}

/** log (m·2^e) + low. */
function logPlus({ m, e }: Split, low: Expr | null): Expr {
  const [high, rest] = TABLES[formatOf(m).dtype].ln2;
  const log = logOfMantissa(m);
  const small = mul(e, rest);
  const correction = add(log.rest, low ? add(small, low) : small);
  return add(mul(e, high), sub(log.f, sub(log.halfSquare, correction)));
}

/** log 0 = -∞, log ∞ = ∞; of less, and of NaN, NaN. */
function withSpecial(x: Expr, result: Expr): Expr {
  const ofPositive = pick(lt(x, Number.POSITIVE_INFINITY), result, x);
  const nan = constant(x.dtype, Number.NaN);
  return pick(lt(0, x), ofPositive, pick(eq(x, 0), Number.NEGATIVE_INFINITY, nan));
}

export function log(x: Expr): Expr {
  return withSpecial(x, logPlus(splitAnyExponent(x), null));
}

/** e·log_b 2 + log m / ln b: exact for powers of two in log2, and for the powers of ten that the type has in log10. */
function logOfBase(x: Expr, inverse: number, [high, low]: readonly [number, number]): Expr {
  const { m, e } = splitAnyExponent(x);
  const { f, halfSquare, rest } = logOfMantissa(m);
  const fraction = mul(sub(f, sub(halfSquare, rest)), inverse);
  return withSpecial(x, add(mul(e, high), low === 0 ? fraction : add(fraction, mul(e, low))));
}

export function log2(x: Expr): Expr {
  return logOfBase(x, Math.LOG2E, [1, 0]);
}

export function log10(x: Expr): Expr {
  return logOfBase(x, Math.LOG10E, TABLES[formatOf(x).dtype].log10Of2);
}

/**
 * log u + c/u where u = 1 + x rounded and c = (1 + x) - u, the part that rounding lost (exact: Knuth's two-sum, which
 * does not ask which of 1 and x is larger).
 */
export function log1p(x: Expr): Expr {
  const u = add(x, 1);
  const xPart = sub(u, 1);
  const c = add(sub(1, sub(u, xPart)), sub(x, xPart));
  const result = withSpecial(u, logPlus(splitExponent(u), div(c, u)));
  return pick(lt(abs(x), TABLES[formatOf(x).dtype].tiny), x, result);
}

/** log (1 + eˣ) = max(x, 0) + log1p(e^-|x|). The argument of log1p is in [0, 1], which spares its special cases. */
export function softplus(x: Expr): Expr {
  const y = expOfNegative(neg(abs(x)));
  const u = add(y, 1);
  const c = sub(y, sub(u, 1));
  return add(max(x, 0), logPlus(splitExponent(u), div(c, u)));
}
