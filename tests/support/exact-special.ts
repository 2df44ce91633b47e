/** @file More functions to hundreds of bits (see exact-math.ts): inverses, hyperbolic functions, roots, the gamma function. */
import { erfinv as erfinvOfDouble } from "../../src/base/special.ts";
import {
  erf,
  expFixed,
  expm1,
  fixed,
  fractionBits,
  ln2,
  logFixed,
  memo,
  oddSeries,
  one,
  over,
  pi,
  quotient,
  type Real,
  realFromNumber,
  sqrtFixed,
  times,
} from "./exact-math.ts";

const isNegative = (x: number): boolean => x < 0 || Object.is(x, -0);

/** f(|x|) with the sign of x. */
const odd =
  (f: (x: number) => Real) =>
  (x: number): Real => {
    const { m, e } = f(Math.abs(x));
    return { m: isNegative(x) ? -m : m, e };
  };

/** atan of a fixed-point ratio a/b ≥ 0: halved three times by t / (1 + √(1 + t²)). */
function atanFixed(a: bigint, b: bigint, f: number): bigint {
  if (a > b) return pi(f) / 2n - atanFixed(b, a, f);
  let t = over(a, b, f);
  for (let i = 0; i < 3; i++) t = over(t, one(f) + sqrtFixed(one(f) + times(t, t, f), f), f);
  return 8n * oddSeries(t, -1n, f);
}

export const atan: (x: number) => Real = odd((x) => {
  const f = fractionBits(x);
  return { m: atanFixed(fixed(realFromNumber(x), f), one(f), f), e: -f };
});

/** √(1 - x²), fixed-point. */
function opposite(y: bigint, f: number): bigint {
  return sqrtFixed(one(f) - times(y, y, f), f);
}

export const asin: (x: number) => Real = odd((x) => {
  const f = fractionBits(x);
  const y = fixed(realFromNumber(x), f);
  return { m: atanFixed(y, opposite(y, f), f), e: -f };
});

export function acos(x: number): Real {
  const f = fractionBits(x);
  const y = fixed(realFromNumber(Math.abs(x)), f);
  const angle = atanFixed(opposite(y, f), y, f);
  return { m: x < 0 ? pi(f) - angle : angle, e: -f };
}

/** The angle of a point with x and y not both zero. */
export function atan2(y: number, x: number): Real {
  const f = 2400;
  const angle = atanFixed(fixed(realFromNumber(Math.abs(y)), f), fixed(realFromNumber(Math.abs(x)), f), f);
  const whole = isNegative(x) ? pi(f) - angle : angle;
  return { m: isNegative(y) ? -whole : whole, e: -f };
}

/** (e^x ∓ e^-x)/2, of small x by expm1. */
export const sinh: (x: number) => Real = odd((x) => {
  const { m, e } = expm1(x);
  const f = Math.max(-e, 1200);
  const t = fixed({ m, e }, f);
  return quotient(t * t + 2n * t * one(f), 2n * one(f) * (t + one(f)), f);
});

export function cosh(x: number): Real {
  const f = 2400;
  const power = fixed(expFixed(fixed(realFromNumber(Math.abs(x)), f), f), f);
  return { m: (power + over(one(f), power, f)) / 2n, e: -f };
}

export const asinh: (x: number) => Real = odd((x) => {
  const f = fractionBits(x);
  const y = fixed(realFromNumber(x), f);
  return { m: logFixed({ m: y + sqrtFixed(one(f) + times(y, y, f), f), e: -f }, f), e: -f };
});

export function acosh(x: number): Real {
  const f = 512;
  const y = fixed(realFromNumber(x), f);
  return { m: logFixed({ m: y + sqrtFixed(times(y, y, f) - one(f), f), e: -f }, f), e: -f };
}

export const atanh: (x: number) => Real = odd((x) => {
  const f = fractionBits(x);
  const y = fixed(realFromNumber(x), f);
  if (x < 0.5) return { m: oddSeries(y, 1n, f), e: -f };
  return { m: logFixed({ m: over(one(f) + y, one(f) - y, f), e: -f }, f) / 2n, e: -f };
});

/** log x over the logarithm of the base, of which f fraction bits are given. */
function logOfBase(x: number, base: bigint, f: number): Real {
  return quotient(logFixed(realFromNumber(x), f), base, f);
}

export const log2 = (x: number): Real => logOfBase(x, ln2(512), 512);
export const log10 = (x: number): Real => logOfBase(x, logFixed({ m: 10n, e: 0 }, 512), 512);

export function exp2(x: number): Real {
  const f = 512;
  return expFixed(times(fixed(realFromNumber(x), f), ln2(f), f), f);
}

export const cbrt: (x: number) => Real = odd((x) => {
  const f = 2400;
  const target = fixed(realFromNumber(x), f) << BigInt(2 * f);
  let root = 1n << BigInt(Math.ceil(target.toString(2).length / 3));
  for (;;) {
    const next = (2n * root + target / (root * root)) / 3n;
    if (next >= root) return { m: root, e: -f };
    root = next;
  }
});

/** 1 - erf x, of which as many bits cancel as erf has terms that grow. */
export function erfc(x: number): Real {
  const { m, e } = erf(x, Math.ceil(3 * x * x) + 64);
  return { m: one(-e) - m, e };
}

/** A step of Newton's method from the double, which doubles its digits. */
export const erfinv: (x: number) => Real = odd((x) => {
  const start = erfinvOfDouble(x);
  const { m, e } = erf(start, 256);
  const f = -e;
  const y = fixed(realFromNumber(start), f);
  const slope = fixed(expFixed(-times(y, y, f), f), f);
  const off = m - fixed(realFromNumber(x), f);
  return { m: y - over(times(off, sqrtFixed(pi(f), f), f), 2n * slope, f), e: -f };
});

/** B₂, B₄, … as fixed-point numbers, from the tangent numbers: B₂ₖ = ∓2k·Tₖ/(4ᵏ(4ᵏ - 1)). */
function bernoulli(count: number, f: number): readonly bigint[] {
  const tangents = Array.from({ length: count }, () => 1n);
  for (let k = 1; k < count; k++) tangents[k] = BigInt(k) * (tangents[k - 1] ?? 0n);
  for (let k = 1; k < count; k++) {
    for (let j = k; j < count; j++) {
      tangents[j] = BigInt(j - k) * (tangents[j - 1] ?? 0n) + BigInt(j - k + 2) * (tangents[j] ?? 0n);
    }
  }
  return tangents.map((tangent, i) => {
    const four = 4n ** BigInt(i + 1);
    const size = ((BigInt(2 * i + 2) * tangent) << BigInt(f)) / (four * (four - 1n));
    return i % 2 === 0 ? size : -size;
  });
}

const TERMS = 40;
const SHIFT = 64;
const numbers = new Map<number, readonly bigint[]>();

function bernoulliOf(f: number): readonly bigint[] {
  const known = numbers.get(f) ?? bernoulli(TERMS, f);
  numbers.set(f, known);
  return known;
}

const halfLogOfTwoPi = memo((f) => logFixed({ m: 2n * pi(f), e: -f }, f) / 2n);

/** lgamma x for x > 0: Stirling's series at x + 64, minus the logarithm of the product between. */
export function lgamma(x: number): Real {
  const f = fractionBits(x);
  const y = fixed(realFromNumber(x), f);
  let product = one(f);
  for (let k = 0; k < SHIFT; k++) product = times(product, y + BigInt(k) * one(f), f);
  const z = y + BigInt(SHIFT) * one(f);
  let sum = times(z - one(f) / 2n, logFixed({ m: z, e: -f }, f), f) - z + halfLogOfTwoPi(f);
  let power = z;
  bernoulliOf(f).forEach((b, i) => {
    sum += over(b, power, f) / BigInt((2 * i + 2) * (2 * i + 1));
    power = times(power, times(z, z, f), f);
  });
  return { m: sum - logFixed({ m: product, e: -f }, f), e: -f };
}

/** ψ₀ or ψ₁ of x > 0, by their series at x + 64. */
function polygamma(x: number, n: 0 | 1): Real {
  const f = 2 * fractionBits(x);
  const y = fixed(realFromNumber(x), f);
  const z = y + BigInt(SHIFT) * one(f);
  const inverse = over(one(f), z, f);
  const square = times(inverse, inverse, f);
  let sum = n === 0 ? logFixed({ m: z, e: -f }, f) - inverse / 2n : inverse + square / 2n;
  let power = n === 0 ? square : times(square, inverse, f);
  bernoulliOf(f).forEach((b, i) => {
    const term = times(b, power, f);
    sum += n === 0 ? -term / BigInt(2 * i + 2) : term;
    power = times(power, square, f);
  });
  for (let k = 0; k < SHIFT; k++) {
    const part = over(one(f), y + BigInt(k) * one(f), f);
    sum += n === 0 ? -part : times(part, part, f);
  }
  return { m: sum, e: -f };
}

export const digamma = (x: number): Real => polygamma(x, 0);
export const trigamma = (x: number): Real => polygamma(x, 1);

/** x·n/(n + 2) with n = eˣ(eˣ + 2). */
export function mish(x: number): Real {
  const f = 2400;
  const y = fixed(realFromNumber(x), f);
  const power = fixed(expFixed(y, f), f);
  const n = times(power, power + 2n * one(f), f);
  return { m: y * over(n, n + 2n * one(f), f), e: -2 * f };
}
