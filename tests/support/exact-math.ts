/**
 * @file Mathematical functions to hundreds of bits, in integers: the truth against which the last bit of an f64 result is
 * judged. Slow and simple: argument reduction and Taylor series on fixed-point bigints.
 *
 * A `Real` is m·2^e. Inside a function numbers are fixed-point with F fraction bits, where F is 256 plus what a small
 * argument needs so that relative accuracy is kept; the error of every function is far below 2^-150 of its value.
 */

export interface Real {
  readonly m: bigint;
  readonly e: number;
}

const cell = new DataView(new ArrayBuffer(8));

/** The exact value of a finite double. */
export function realFromNumber(x: number): Real {
  cell.setFloat64(0, x);
  const bits = cell.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const m = exponent === 0 ? fraction : fraction | 0x10000000000000n;
  return { m: bits >> 63n ? -m : m, e: Math.max(exponent, 1) - 1075 };
}

function bitLength(m: bigint): number {
  return (m < 0n ? -m : m).toString(2).length;
}

/** Fraction bits for an argument: more when it is small. */
export function fractionBits(x: number): number {
  const small = x === 0 ? 0 : Math.max(0, -Math.floor(Math.log2(Math.abs(x))));
  return 256 * Math.ceil((256 + small) / 256);
}

function shift(m: bigint, by: number): bigint {
  return by >= 0 ? m << BigInt(by) : m >> BigInt(-by);
}

export function fixed({ m, e }: Real, f: number): bigint {
  return shift(m, e + f);
}

export const times = (a: bigint, b: bigint, f: number): bigint => (a * b) >> BigInt(f);
export const over = (a: bigint, b: bigint, f: number): bigint => (a << BigInt(f)) / b;
export const one = (f: number): bigint => 1n << BigInt(f);

export function memo(compute: (f: number) => bigint): (f: number) => bigint {
  const known = new Map<number, bigint>();
  return (f) => {
    const value = known.get(f) ?? compute(f);
    known.set(f, value);
    return value;
  };
}

/** Σ s^(2k+1)/(2k+1)·sign^k: atanh (sign 1) or atan (sign -1). */
export function oddSeries(s: bigint, sign: 1n | -1n, f: number): bigint {
  const square = times(s, s, f) * sign;
  let power = s;
  let sum = 0n;
  for (let k = 1n; power !== 0n && power !== -1n; k += 2n) {
    sum += power / k;
    power = times(power, square, f);
  }
  return sum;
}

// ln 2 = 2 atanh 1/3; π = 16 atan 1/5 - 4 atan 1/239 (Machin).
export const ln2: (f: number) => bigint = memo((f) => 2n * oddSeries(one(f) / 3n, 1n, f));
export const pi: (f: number) => bigint = memo(
  (f) => 16n * oddSeries(one(f) / 5n, -1n, f) - 4n * oddSeries(one(f) / 239n, -1n, f),
);

/** The integer nearest to a/b, b positive. BigInt division truncates, so a negative a is counted from the other side. */
function roundedQuotient(a: bigint, b: bigint): bigint {
  return a < 0n ? -((b - 2n * a) / (2n * b)) : (2n * a + b) / (2n * b);
}

/** e^x of a fixed-point number. */
export function expFixed(x: bigint, f: number): Real {
  const n = roundedQuotient(x, ln2(f));
  return { m: one(f) + expm1Series(x - n * ln2(f), f), e: Number(n) - f };
}

function expm1Series(r: bigint, f: number): bigint {
  let term = r;
  let sum = 0n;
  for (let k = 2n; term !== 0n && term !== -1n; k++) {
    sum += term;
    term = times(term, r, f) / k;
  }
  return sum;
}

export function exp(x: number): Real {
  return expFixed(fixed(realFromNumber(x), 512), 512);
}

export function expm1(x: number): Real {
  const f = fractionBits(x);
  const r = fixed(realFromNumber(x), f);
  if (Math.abs(x) < 0.5) return { m: expm1Series(r, f), e: -f };
  return { m: fixed(expFixed(r, f), f) - one(f), e: -f };
}

export function logFixed({ m, e }: Real, f: number): bigint {
  const length = bitLength(m);
  const mantissa = shift(m, f - length);
  return 2n * oddSeries(over(mantissa - one(f), mantissa + one(f), f), 1n, f) + BigInt(e + length) * ln2(f);
}

export function log(x: number): Real {
  return { m: logFixed(realFromNumber(x), 512), e: -512 };
}

export function log1p(x: number): Real {
  const f = fractionBits(x);
  const y = fixed(realFromNumber(x), f);
  if (Math.abs(x) < 0.5) return { m: 2n * oddSeries(over(y, 2n * one(f) + y, f), 1n, f), e: -f };
  return { m: logFixed({ m: one(f) + y, e: -f }, f), e: -f };
}

export function quotient(a: bigint, b: bigint, f: number): Real {
  return { m: over(a, b, f), e: -f };
}

export function tanh(x: number): Real {
  const { m, e } = expm1(2 * x);
  return quotient(m, m + shift(2n, -e), -e);
}

/** Of a fixed-point number with 2048 bits. */
function sigmoidFixed(x: bigint): bigint {
  const f = 2048;
  const power = fixed(expFixed(x < 0n ? x : -x, f), f);
  return over(x < 0n ? power : one(f), one(f) + power, f);
}

export function sigmoid(x: number): Real {
  return { m: sigmoidFixed(fixed(realFromNumber(x), 2048)), e: -2048 };
}

export function silu(x: number): Real {
  const y = fixed(realFromNumber(x), 2048);
  return { m: y * sigmoidFixed(y), e: -4096 };
}

/** x·sigmoid(2c(x + 0.044715x³)), c and 0.044715 being the doubles of that name. */
export function gelu(x: number): Real {
  const f = 2048;
  const [y, c, k] = [x, 2 * 0.7978845608028654, 0.044715].map((v) => fixed(realFromNumber(v), f)) as [
    bigint,
    bigint,
    bigint,
  ];
  const cube = times(times(y, y, f), y, f);
  return { m: y * sigmoidFixed(times(c, y + times(k, cube, f), f)), e: -2 * f };
}

export function softplus(x: number): Real {
  const f = 2048;
  const power = fixed(exp(-Math.abs(x)), f);
  const log = 2n * oddSeries(over(power, 2n * one(f) + power, f), 1n, f);
  return { m: log + (x > 0 ? fixed(realFromNumber(x), f) : 0n), e: -f };
}

/** sin and cos of x, fixed-point. */
function circle(x: number): { readonly sin: bigint; readonly cos: bigint; readonly f: number } {
  const f = fractionBits(x);
  const halfPi = pi(f) / 2n;
  const y = fixed(realFromNumber(x), f);
  const n = roundedQuotient(y, halfPi);
  const r = y - n * halfPi;
  const parts = [0n, 0n];
  let term = one(f);
  for (let k = 0; term !== 0n && term !== -1n; k++) {
    parts[k % 2] = (parts[k % 2] ?? 0n) + (k % 4 < 2 ? term : -term);
    term = times(term, r, f) / BigInt(k + 1);
  }
  const [c = 0n, s = 0n] = parts;
  const turned = [
    [s, c],
    [c, -s],
    [-s, -c],
    [-c, s],
  ][Number(((n % 4n) + 4n) % 4n)];
  return { sin: turned?.[0] ?? 0n, cos: turned?.[1] ?? 0n, f };
}

export function sin(x: number): Real {
  const { sin, f } = circle(x);
  return { m: sin, e: -f };
}

export function cos(x: number): Real {
  const { cos, f } = circle(x);
  return { m: cos, e: -f };
}

export function tan(x: number): Real {
  const { sin, cos, f } = circle(x);
  return quotient(sin, cos, f);
}

/** 2/√π Σ (-1)^k x^(2k+1) / (k! (2k+1)); terms reach e^(x²) before they fall, which 512 bits bear for |x| ≤ 8. */
export function erf(x: number, more = 0): Real {
  const f = fractionBits(x) + 256 * Math.ceil((256 + more) / 256);
  const y = fixed(realFromNumber(x), f);
  const square = times(y, y, f);
  let power = y;
  let sum = 0n;
  for (let k = 0n; power !== 0n && power !== -1n; k++) {
    sum += power / (2n * k + 1n);
    power = -times(power, square, f) / (k + 1n);
  }
  return quotient(2n * sum, sqrtFixed(pi(f), f), f);
}

export function sqrtFixed(a: bigint, f: number): bigint {
  const target = a << BigInt(f);
  let root = 1n << BigInt(Math.ceil(bitLength(target) / 2));
  for (;;) {
    const next = (root + target / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** xʸ for x > 0. */
export function pow(x: number, y: number): Real {
  const f = 512;
  const power = realFromNumber(y);
  return expFixed(shift(logFixed(realFromNumber(x), f) * power.m, power.e), f);
}

/** 1/√x. */
export function rsqrt(x: number): Real {
  const f = 4096;
  return quotient(one(f), sqrtFixed(fixed(realFromNumber(x), f), f), f);
}

/** How far `got` is from the truth, in units of the last place of the truth (f64). */
export function ulpsOff(got: number, truth: Real): number {
  if (Number.isNaN(got)) return Number.POSITIVE_INFINITY;
  const scale = 2200;
  const exact = fixed(truth, scale);
  const top = exact === 0n ? -1022 : (exact < 0n ? -exact : exact).toString(2).length - 1 - scale;
  const ulp = BigInt(scale) + BigInt(Math.max(top, -1022) - 52);
  if (top >= 1024 && !Number.isFinite(got)) return got > 0 === exact > 0n ? 0 : Number.POSITIVE_INFINITY;
  // Short of overflow, infinity counts as the next power of two.
  const value = Number.isFinite(got) ? fixed(realFromNumber(got), scale) : (got > 0 ? 1n : -1n) << BigInt(scale + 1024);
  const off = ((value - exact) << 20n) / (1n << ulp);
  return Math.abs(Number(off)) / 2 ** 20;
}
