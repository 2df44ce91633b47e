/**
 * @file The error function, odd and with erf ∞ = 1.
 *
 * f32: x + x·P(x²) for |x| < 1.1875, else 1 - Q(|x|)⁻⁸, both minimax fits of ours: the eighth root makes the steep
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
 */
import { constant, type Expr } from "./expr.ts";
import { formatOf } from "./float-format.ts";
import { expOfNegative } from "./math-exp.ts";
import { abs, add, div, lt, min, mul, neg, pick, polynomial, sub } from "./scalar-ops.ts";

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

const ERX = 8.45062911510467529297e-1;
const PP = [
  1.28379167095512558561e-1, -3.2504210724700149937e-1, -2.84817495755985104766e-2, -5.77027029648944159157e-3,
  -2.37630166566501626084e-5, 0, 0,
];
const QQ = [
  1, 3.97917223959155352819e-1, 6.50222499887672944485e-2, 5.08130628187576562776e-3, 1.32494738004321644526e-4,
  -3.9602282787753681232e-6, 0,
];
const PA = [
  -2.36211856075265944077e-3, 4.14856118683748331666e-1, -3.72207876035701323847e-1, 3.18346619901161753674e-1,
  -1.10894694282396677476e-1, 3.54783043256182359371e-2, -2.166375594868790843e-3,
];
const QA = [
  1, 1.06420880400844228286e-1, 5.40397917702171048937e-1, 7.18286544141962662868e-2, 1.26171219808761642112e-1,
  1.36370839120290507362e-2, 1.1984499846799107417e-2,
];
const RA = [
  -9.86494403484714822705e-3, -6.93858572707181764372e-1, -1.05586262253232909814e1, -6.23753324503260060396e1,
  -1.62396669462573470355e2, -1.84605092906711035994e2, -8.12874355063065934246e1, -9.81432934416914548592,
];
const SA = [
  1, 1.96512716674392571292e1, 1.376577541435190426e2, 4.34565877475229228821e2, 6.45387271733267880336e2,
  4.29008140027567833386e2, 1.08635005541779435134e2, 6.57024977031928170135, -6.04244152148580987438e-2,
];
const RB = [
  -9.86494292470009928597e-3, -7.99283237680523006574e-1, -1.77579549177547519889e1, -1.60636384855821916062e2,
  -6.37566443368389627722e2, -1.02509513161107724954e3, -4.83519191608651397019e2, 0,
];
const SB = [
  1, 3.03380607434824582924e1, 3.25792512996573918826e2, 1.53672958608443695994e3, 3.19985821950859553908e3,
  2.55305040643316442583e3, 4.74528541206955367215e2, -2.24409524465858183362e1, 0,
];

/** A polynomial whose coefficients are the one or the other list's, by lane. */
function pickedPolynomial(x: Expr, which: Expr, a: readonly number[], b: readonly number[]): Expr {
  return polynomial(
    x,
    a.map((c, i) => (c === b[i] ? c : pick(which, constant("f64", c), b[i] ?? 0))),
  );
}

function erfF64(x: Expr): Expr {
  const size = min(abs(x), 6);
  const nearZero = lt(size, 0.84375);
  const t = pick(nearZero, mul(x, x), sub(size, 1));
  const quotient = div(pickedPolynomial(t, nearZero, PP, PA), pickedPolynomial(t, nearZero, QQ, QA));

  const square = mul(size, size);
  const inverse = div(1, square);
  const below = lt(size, 1 / 0.35);
  const tail = div(pickedPolynomial(inverse, below, RA, RB), pickedPolynomial(inverse, below, SA, SB));
  const erfc = div(expOfNegative(min(add(sub(-0.5625, square), tail), 0)), size);

  const positive = pick(lt(size, 1.25), add(quotient, ERX), sub(1, erfc));
  return pick(nearZero, add(x, mul(x, quotient)), pick(lt(x, 0), neg(positive), positive));
}

export function erf(x: Expr): Expr {
  return formatOf(x).dtype === "f32" ? erfF32(x) : erfF64(x);
}
