/**
 * @file The logarithm of the gamma function, and its derivatives, the polygamma functions ψₙ (ψ₀ is digamma).
 *
 * lgamma of x > 0, by y·(y - 1)·Q(y) = lgamma(1 + y) on 0 ≤ y ≤ 1 with Q a minimax fit, which keeps the zeros at 1 and 2 exact:
 *
 *   x < 1        lgamma(1 + x) - log x
 *   1 ≤ x < 8    lgamma(t) + log((x-1)(x-2)…t),  t = x - k in [1, 2]
 *   8 ≤ x        (x - ½)(log x - 1) + (log 2π - 1)/2 + Σ B₂ₖ/(2k(2k-1)x²ᵏ⁻¹)
 *
 * and of x < 0 by the reflection lgamma(x) = -log(|x·sin πx|/π) - lgamma(|x|).
 *
 * ψₙ of small x is that of x + N plus ∓n!·Σ 1/(x + k)ⁿ⁺¹, of large x its asymptotic series:
 *
 *   ψ₀(x) = log x - 1/2x - Σ B₂ₖ/(2k·x²ᵏ)
 *   ψₙ(x) = ∓(1/xⁿ)·((n-1)! + n!/2x + Σ B₂ₖ·(2k+n-1)!/((2k)!·x²ᵏ)),   - for even n
 *
 * Of x < 0: ψ₀(x) = ψ₀(1 - x) - π/tan πx, ψ₁(x) = π²/sin² πx - ψ₁(1 - x), and NaN for n > 1.
 */
import type { FloatScalar } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { formatOf } from "./float-format.ts";
import { log } from "./math-log.ts";
import { circlePoint } from "./math-trig.ts";
import { abs, add, and, div, eq, lt, max, min, mul, nearest, neg, pick, polynomial, sub } from "./scalar-ops.ts";

const BERNOULLI = [
  1 / 6,
  -1 / 30,
  1 / 42,
  -1 / 30,
  5 / 66,
  -691 / 2730,
  7 / 6,
  -3617 / 510,
  43867 / 798,
  -174611 / 330,
];

interface GammaTable {
  /** lgamma(1 + y) / (y(y - 1)) in y - ½. */
  readonly q: readonly number[];
  /** Terms of the series of lgamma from 8 on. */
  readonly stirling: number;
  /** From where on ψ₀ is its series, and the number of terms. */
  readonly from: number;
  readonly terms: number;
}

const TABLES: Record<FloatScalar, GammaTable> = {
  f32: {
    q: [
      0.48312895, -0.145959902, 0.0629114141, -0.0313079961, 0.0167965, -0.00943642289, 0.00545645287, -0.00311626087,
      0.00184839548, -0.00152577227, 0.000959807633,
    ],
    stirling: 3,
    from: 5,
    terms: 5,
  },
  f64: {
    q: [
      0.4831289505409809, -0.14595989591430594, 0.06291140107456436, -0.03130848750105447, 0.01679709863127895,
      -0.009425622444744954, 0.005446457838875036, -0.00321207422332792, 0.0019229163194470415, -0.0011644113299088355,
      0.0007115189664376885, -0.00043803564438023, 0.0002713146707694024, -0.00016856881465335507,
      0.0001053498145176235, -6.794825117372911e-5, 4.304593450992346e-5, -2.1465819696396722e-5, 1.315132794389879e-5,
      -1.854626244614933e-5, 1.2167999860109896e-5,
    ],
    stirling: 8,
    from: 10,
    terms: 10,
  },
};

const INFINITY = Number.POSITIVE_INFINITY;

/** |sin πx| and cos πx up to its sign, from the distance g to the nearest integer. */
function circleOfHalfTurns(x: Expr): { readonly sin: Expr; readonly cos: Expr } {
  const g = abs(sub(x, nearest(x)));
  const isFar = lt(0.25, g);
  const { sin, cos } = circlePoint(mul(pick(isFar, sub(0.5, g), g), Math.PI));
  return { sin: pick(isFar, cos, sin), cos: pick(isFar, sin, cos) };
}

/** lgamma(1 + y) for 0 ≤ y ≤ 1. */
function lgammaNear(y: Expr): Expr {
  return mul(mul(y, sub(y, 1)), polynomial(sub(y, 0.5), TABLES[formatOf(y).dtype].q));
}

/** lgamma x for x ≥ 8. */
function stirling(x: Expr): Expr {
  const inverse = div(1, x);
  const series = BERNOULLI.slice(0, TABLES[formatOf(x).dtype].stirling).map((b, i) => b / ((2 * i + 2) * (2 * i + 1)));
  const tail = mul(inverse, polynomial(mul(inverse, inverse), series));
  const constants = 0.5 * (Math.log(2 * Math.PI) - 1);
  return add(mul(sub(x, 0.5), sub(log(x), 1)), add(constants, tail));
}

/** x ≥ 1 as t + k with 1 ≤ t ≤ 2, and the product of the numbers between. */
function lowered(x: Expr): { readonly t: Expr; readonly product: Expr } {
  let t = min(x, 8);
  let product: Expr = constant(x.dtype, 1);
  for (let k = 0; k < 6; k++) {
    const isAbove = lt(2, t);
    t = pick(isAbove, sub(t, 1), t);
    product = mul(product, pick(isAbove, t, 1));
  }
  return { t, product };
}

export function lgamma(x: Expr): Expr {
  const size = abs(x);
  const isSmall = lt(size, 1);
  const { t, product } = lowered(max(size, 1));
  const near = lgammaNear(pick(isSmall, size, sub(t, 1)));
  const logarithm = log(pick(isSmall, size, product));
  const middle = add(near, pick(isSmall, neg(logarithm), logarithm));
  const positive = pick(lt(size, 8), middle, stirling(max(size, 8)));
  // the logarithm of a small number is in both terms of the reflection
  const mirrored = pick(isSmall, near, positive);
  const { sin } = circleOfHalfTurns(size);
  const reflected = neg(add(log(mul(mul(sin, pick(isSmall, 1, size)), 1 / Math.PI)), mirrored));
  const result = pick(lt(x, 0), reflected, positive);
  return pick(eq(size, INFINITY), INFINITY, result);
}

const factorial = (n: number): number => (n <= 1 ? 1 : n * factorial(n - 1));

/** xⁿ for n ≥ 1. */
function power(x: Expr, n: number): Expr {
  let y = x;
  for (let i = 1; i < n; i++) y = mul(y, x);
  return y;
}

/** The series of ψₙ without its sign. */
function asymptotic(x: Expr, n: number, terms: number): Expr {
  const inverse = div(1, x);
  const series = BERNOULLI.slice(0, terms).map((b, i) => (b * factorial(2 * i + 1 + n)) / factorial(2 * i + 2));
  const square = mul(inverse, inverse);
  const tail = mul(square, polynomial(square, series));
  const half = mul(inverse, factorial(n) / 2);
  if (n === 0) return sub(log(x), add(half, tail));
  return mul(power(inverse, n), add(factorial(n - 1), add(half, tail)));
}

/** ψₙ of x > 0. */
function polygammaOfPositive(x: Expr, n: number): Expr {
  const { from, terms } = TABLES[formatOf(x).dtype];
  const shift = from + n;
  const isSmall = lt(x, shift);
  // the smallest first
  let sum = div(1, power(add(x, shift - 1), n + 1));
  for (let k = shift - 2; k > 0; k--) sum = add(sum, div(1, power(add(x, k), n + 1)));
  sum = add(sum, div(1, power(x, n + 1)));
  const series = asymptotic(pick(isSmall, add(x, shift), x), n, terms);
  const shifted = mul(sum, factorial(n));
  if (n === 0) return pick(isSmall, sub(series, shifted), series);
  const size = pick(isSmall, add(series, shifted), series);
  return n % 2 === 0 ? neg(size) : size;
}

/** What the reflection adds to ∓ψₙ(1 - x). */
function reflection(x: Expr, n: number): Expr {
  const { sin, cos } = circleOfHalfTurns(x);
  if (n === 1) return div(Math.PI ** 2, mul(sin, sin));
  const size = div(mul(cos, Math.PI), sin);
  // tan πx has the sign of the distance to the nearest integer
  return pick(lt(sub(x, nearest(x)), 0), size, neg(size));
}

/** ψₙ, the derivative of order n + 1 of lgamma. */
export function polygamma(x: Expr, n: number): Expr {
  const isNegative = lt(x, 0);
  const nan = constant(x.dtype, Number.NaN);
  if (n > 1) return pick(isNegative, nan, polygammaOfPositive(x, n));
  const positive = polygammaOfPositive(pick(isNegative, sub(1, x), x), n);
  const added = reflection(x, n);
  const reflected = n === 0 ? add(positive, added) : sub(added, positive);
  const isPole = and(isNegative, eq(nearest(x), x));
  // -∞ is no pole, and x - x is not 0 there
  const atPole = n === 0 ? nan : add(sub(x, x), INFINITY);
  return pick(isPole, atPole, pick(isNegative, reflected, positive));
}
