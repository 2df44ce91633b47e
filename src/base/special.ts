/** @file Special functions in double precision that JavaScript lacks, for the reference evaluator. */

/** erf by its Taylor series near zero and the continued fraction of erfc beyond; about 1e-15 relative. */
export function erf(x: number): number {
  if (Number.isNaN(x)) return x;
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 2.5) {
    // erf x = 2/√π · e^(-x²) · Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1))
    let term = x;
    let sum = x;
    for (let n = 1; n < 200; n++) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
      if (Math.abs(term) < 1e-18 * Math.abs(sum)) break;
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }
  // erfc x = e^(-x²)/√π · 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + …))))
  let f = a;
  for (let n = 120; n >= 1; n--) f = a + n / 2 / f;
  return Math.sign(x) * (1 - Math.exp(-x * x) / Math.sqrt(Math.PI) / f);
}

/** Rounds half to even. */
export function roundHalfEven(x: number): number {
  const r = Math.round(x);
  return Math.abs(x % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r;
}

/** 1 - erf x. */
export function erfc(x: number): number {
  if (!(x > 2.5)) return 1 - erf(x);
  let f = x;
  for (let n = 120; n >= 1; n--) f = x + n / 2 / f;
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / f;
}

/** The inverse of erf, by Newton's method on erf or, near ±1, on the logarithm of erfc, whose second derivatives have one sign. */
export function erfinv(x: number): number {
  const a = Math.abs(x);
  if (!(a < 1)) return a === 1 ? x / 0 : Number.NaN;
  let y = 0;
  for (let i = 0; i < 60; i++) {
    const slope = (2 / Math.sqrt(Math.PI)) * Math.exp(-y * y);
    const tail = erfc(y);
    const step = a < 0.5 ? (a - erf(y)) / slope : (Math.log(tail / (1 - a)) * tail) / slope;
    y += step;
    if (Math.abs(step) <= 1e-17 * y) break;
  }
  return x < 0 ? -y : y;
}

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

const factorial = (n: number): number => (n <= 1 ? 1 : n * factorial(n - 1));

/** ζ(s), s ≥ 2: twenty terms of the sum, the rest by the formula of Euler and Maclaurin. */
function zeta(s: number): number {
  let sum = 0;
  for (let n = 1; n < 20; n++) sum += n ** -s;
  const rest = 20 ** (1 - s) / (s - 1) + 20 ** -s / 2 + (s * 20 ** (-s - 1)) / 12;
  return sum + rest - (s * (s + 1) * (s + 2) * 20 ** (-s - 3)) / 720;
}

const EULER = 0.5772156649015329;

/** log |Γ(x)|; around its zeros 1 and 2 by the series in ζ, which keeps all digits there. */
export function lgamma(x: number): number {
  if (x < 0.5) {
    if (x === Number.NEGATIVE_INFINITY || Math.abs(x) < 1e-300)
      return x < -1 ? Number.POSITIVE_INFINITY : -Math.log(Math.abs(x));
    const sine = Math.abs(Math.sin(Math.PI * (x - Math.round(x))));
    return Math.log(Math.PI / sine) - lgamma(1 - x);
  }
  if (Math.abs(x - 2) < 0.25) return Math.log1p(x - 2) + lgamma(x - 1);
  if (Math.abs(x - 1) < 0.25) {
    const y = 1 - x;
    let sum = EULER * y;
    for (let k = 2; k < 28; k++) sum += (zeta(k) * y ** k) / k;
    return sum;
  }
  if (x < 12) return lgamma(x + 1) - Math.log(x);
  const series = BERNOULLI.reduce((sum, b, i) => sum + b / ((2 * i + 2) * (2 * i + 1) * x ** (2 * i + 1)), 0);
  return x === Number.POSITIVE_INFINITY ? x : (x - 0.5) * (Math.log(x) - 1) + (Math.log(2 * Math.PI) - 1) / 2 + series;
}

/** ψₙ, the derivative of order n + 1 of lgamma; of negative x for n = 0 and 1 alone. */
export function polygamma(x: number, n: number): number {
  if (x < 0) {
    if (n > 1) return Number.NaN;
    const angle = Math.PI * (x - Math.round(x));
    if (angle === 0) return n === 0 ? Number.NaN : Number.POSITIVE_INFINITY;
    if (n === 0) return polygamma(1 - x, 0) - Math.PI / Math.tan(angle);
    return (Math.PI / Math.sin(angle)) ** 2 - polygamma(1 - x, 1);
  }
  const sign = n % 2 === 0 ? -1 : 1;
  if (x < 16 + n) return polygamma(x + 1, n) + (sign * factorial(n)) / x ** (n + 1);
  const series = BERNOULLI.reduce(
    (sum, b, i) => {
      return sum + (b * factorial(2 * i + 1 + n)) / factorial(2 * i + 2) / x ** (2 * i + 2 + n);
    },
    factorial(n) / (2 * x ** (n + 1)),
  );
  return n === 0 ? Math.log(x) - series : sign * (factorial(n - 1) / x ** n + series);
}
