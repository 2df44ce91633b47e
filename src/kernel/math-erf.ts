/**
 * @file The error function, odd and with erf ∞ = 1, and erfc = 1 - erf, which is accurate where it is small.
 *
 * f32: x + x·P(x²) for |x| < 1.1875, else 1 - Q(|x|)⁻⁸, both minimax fits: the eighth root makes the steep
 * tail 1 - erf a function that a short polynomial follows, and the eightfold error counts only in proportion to the tail.
 *
 * f64: the pieces and coefficients of fdlibm (s_erf.c, 1993):
 *
 *   |x| < 0.84375          x + x·pp(x²)/qq(x²)
 *   0.84375 ≤ |x| < 1.25   c + pa(s)/qa(s),   s = |x| - 1
 *   1.25 ≤ |x| < 6         1 - exp(-x² - 0.5625 + R/S)/|x|,   R, S polynomials in 1/x², others below 1/0.35 than above
 *   6 ≤ |x|                as at 6, where it rounds to 1
 *
 * Two pieces at a time share one evaluation with coefficients picked by lane. The exponential is rounded once as a whole
 * (fdlibm splits it for the sake of erfc): its error counts only in proportion to 1 - erf.
 *
 * erfc has those pieces in both types, and splits: x² = h² + (x - h)·(x + h) with h of half a significand, so that h² is exact.
 */
import type { FloatScalar } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { bitsOf, floatOf, formatOf } from "./float-format.ts";
import { expOfNegative } from "./math-exp.ts";
import { abs, add, and, div, lt, min, mul, neg, pick, polynomial, sub } from "./scalar-ops.ts";

/** erf x / x - 1 in x², for |x| ≤ 1.1875. */
const F32_NEAR = [0.128379151, -0.376125336, 0.112826467, -0.0268188789, 0.00512936991, -0.000754941488, 6.49551366e-5];
/** (1 - erf x)^(-1/8) for 1.1875 ≤ x ≤ 4. */
const F32_FAR = [
  0.989797413, 0.187751889, -0.00206370908, 0.124591358, -0.0627267733, 0.0279946942, -0.00593410712, 0.000697256357,
];

function erfF32(x: Expr): Expr {
  const near = add(x, mul(x, polynomial(mul(x, x), F32_NEAR)));
  const size = min(abs(x), 4);
  const q = polynomial(size, F32_FAR);
  const q2 = mul(q, q);
  const q4 = mul(q2, q2);
  const far = sub(1, div(1, mul(q4, q4)));
  return pick(lt(size, 1.1875), near, pick(lt(x, 0), neg(far), far));
}

const ERX = 0.8450629115104675;
const PP = [
  0.12837916709551256, -0.3250421072470015, -0.02848174957559851, -0.005770270296489442, -2.3763016656650163e-5, 0, 0,
];
const QQ = [
  1, 0.39791722395915535, 0.0650222499887673, 0.005081306281875766, 0.00013249473800432164, -3.960228278775368e-6, 0,
];
const PA = [
  -0.0023621185607526594, 0.41485611868374833, -0.3722078760357013, 0.31834661990116175, -0.11089469428239668,
  0.035478304325618236, -0.002166375594868791,
];
const QA = [
  1, 0.10642088040084423, 0.540397917702171, 0.07182865441419627, 0.12617121980876164, 0.01363708391202905,
  0.011984499846799107,
];
const RA = [
  -0.009864944034847148, -0.6938585727071818, -10.558626225323291, -62.375332450326006, -162.39666946257347,
  -184.60509290671104, -81.2874355063066, -9.814329344169145,
];
const SA = [
  1, 19.651271667439257, 137.65775414351904, 434.56587747522923, 645.3872717332679, 429.00814002756783,
  108.63500554177944, 6.570249770319282, -0.0604244152148581,
];
const RB = [
  -0.0098649429247001, -0.799283237680523, -17.757954917754752, -160.63638485582192, -637.5664433683896,
  -1025.0951316110772, -483.5191916086514, 0,
];
const SB = [
  1, 30.33806074348246, 325.7925129965739, 1536.729586084437, 3199.8582195085955, 2553.0504064331644,
  474.52854120695537, -22.44095244658582, 0,
];

/** A polynomial whose coefficients are the one or the other list's, by lane. */
function pickedPolynomial(x: Expr, which: Expr, a: readonly number[], b: readonly number[]): Expr {
  return polynomial(
    x,
    a.map((c, i) => (c === b[i] ? c : pick(which, constant(x.dtype, c), b[i] ?? 0))),
  );
}

/** pp/qq or pa/qa, for |x| < 1.25. */
function nearQuotient(x: Expr, size: Expr, nearZero: Expr): Expr {
  const t = pick(nearZero, mul(x, x), sub(size, 1));
  return div(pickedPolynomial(t, nearZero, PP, PA), pickedPolynomial(t, nearZero, QQ, QA));
}

/** R/S, for |x| ≥ 1.25; `square` is x². */
function farQuotient(size: Expr, square: Expr): Expr {
  const inverse = div(1, square);
  const below = lt(size, 1 / 0.35);
  return div(pickedPolynomial(inverse, below, RA, RB), pickedPolynomial(inverse, below, SA, SB));
}

const NEAR_ZERO = 0.84375;

function erfF64(x: Expr): Expr {
  const size = min(abs(x), 6);
  const nearZero = lt(size, NEAR_ZERO);
  const quotient = nearQuotient(x, size, nearZero);
  const square = mul(size, size);
  const exponent = add(sub(-0.5625, square), farQuotient(size, square));
  const erfc = div(expOfNegative(min(exponent, 0)), size);

  const positive = pick(lt(size, 1.25), add(quotient, ERX), sub(1, erfc));
  return pick(nearZero, add(x, mul(x, quotient)), pick(lt(x, 0), neg(positive), positive));
}

/** Keeps a part of a significand whose square plus 0.5625 is exact. */
const SQUARABLE: Record<FloatScalar, number | bigint> = { f32: 0xffffe000 | 0, f64: -0x100000000n };

export function erfc(x: Expr): Expr {
  // erfc 28 is 0 in both types
  const size = min(abs(x), 28);
  const nearZero = lt(size, NEAR_ZERO);
  const quotient = nearQuotient(x, size, nearZero);
  const half = floatOf(and(bitsOf(size), SQUARABLE[formatOf(x).dtype]));
  const rest = add(mul(sub(half, size), add(half, size)), farQuotient(size, mul(size, size)));
  const far = div(mul(expOfNegative(sub(-0.5625, mul(half, half))), expOfNegative(min(rest, 1))), size);
  const positive = pick(lt(size, 1.25), sub(1 - ERX, quotient), far);
  // ½ - (x - ½ + x·q) where 1 - x would round first
  const small = mul(x, quotient);
  const atZero = pick(lt(x, 0.25), sub(1, add(x, small)), sub(0.5, add(sub(x, 0.5), small)));
  return pick(nearZero, atZero, pick(lt(x, 0), sub(2, positive), positive));
}

const FUNCTIONS: Record<FloatScalar, (x: Expr) => Expr> = { f32: erfF32, f64: erfF64 };

export function erf(x: Expr): Expr {
  return FUNCTIONS[formatOf(x).dtype](x);
}
