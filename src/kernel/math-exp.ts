/**
 * @file exp, exp2, expm1 and what is made of them: sigmoid, tanh.
 *
 * x = n·ln 2 + r with |r| ≤ ½ ln 2 (Cody and Waite, 1980: ln 2 in two parts, the first so short that n·part is exact),
 * eˣ = 2ⁿ·eʳ, and eʳ = 1 + r + r²·P(r). P is a minimax fit (Remez exchange).
 */
import type { FloatScalar } from "./dtype.ts";
import type { Expr } from "./expr.ts";
import { bitsOf, type Format, floatOf, formatOf, powerOfTwo, roundToInteger, scaleByPower } from "./float-format.ts";
import { abs, add, and, clamp, div, lt, max, min, mul, neg, or, pick, polynomial, sub } from "./scalar-ops.ts";

interface ExpTable {
  readonly ln2: readonly [number, number];
  /** (eʳ - 1 - r) / r². */
  readonly p: readonly number[];
  /** Arguments beyond which exp is 0 or infinite in every rounding. */
  readonly lo: number;
  readonly hi: number;
  /** Below this expm1 rounds to -1. */
  readonly expm1Lo: number;
  /** Below this size expm1 and log1p are x to the last bit. */
  readonly tiny: number;
  /** Whether attention masks scores of this type. */
  readonly masks: boolean;
}

const TABLES: Record<FloatScalar, ExpTable> = {
  f32: {
    ln2: [0.693359375, -2.1219444e-4],
    p: [0.5, 0.166665763, 0.0416663736, 0.00836323481, 0.00139412167],
    lo: -104,
    hi: 89,
    expm1Lo: -18,
    tiny: 2 ** -26,
    masks: true,
  },
  f64: {
    ln2: [0.6931471803691238, 1.9082149292705877e-10],
    p: [
      0.5, 0.16666666666666674, 0.04166666666662382, 0.008333333333322101, 0.001388888891736831, 0.00019841269886913522,
      2.480152105607597e-5, 2.7557241975988105e-6, 2.7620202390998955e-7, 2.5110183898756362e-8,
    ],
    lo: -746,
    hi: 710,
    expm1Lo: -38,
    tiny: 2 ** -55,
    masks: false,
  },
};

/** eʳ - 1 - r for |r| ≤ ½ ln 2. */
export function expTail(r: Expr): Expr {
  return mul(mul(r, r), polynomial(r, TABLES[formatOf(r).dtype].p));
}

/** eʳ - 1 for the reduced argument, and n of 2ⁿ. */
export interface Reduced {
  readonly expm1: Expr;
  readonly low: Expr;
}

function reduce(x: Expr, table: ExpTable): Reduced {
  const { n, low } = roundToInteger(mul(x, Math.LOG2E));
  const r = sub(sub(x, mul(n, table.ln2[0])), mul(n, table.ln2[1]));
  return { expm1: add(r, expTail(r)), low };
}

/** For x within twice the range of exponents. */
export function reducedExp(x: Expr): Reduced {
  return reduce(x, TABLES[formatOf(x).dtype]);
}

function tableOf(x: Expr): { readonly format: Format; readonly table: ExpTable } {
  const format = formatOf(x);
  return { format, table: TABLES[format.dtype] };
}

export function exp(x: Expr): Expr {
  return expOfNegative(min(x, tableOf(x).table.hi));
}

/**
 * exp of an argument known not to exceed 0 by much, or to be NaN. Where it is 0, as for everything that attention masks, 0 is
 * put in place of the argument: products that underflow take processors many times as long as others. In f64, where nothing
 * masks, a limit is the cheaper way to the same bits.
 */
export function expOfNegative(x: Expr): Expr {
  const { table } = tableOf(x);
  if (!table.masks) {
    const { expm1, low } = reduce(max(x, table.lo), table);
    return scaleByPower(add(1, expm1), low);
  }
  const vanishes = lt(x, table.lo);
  const { expm1, low } = reduce(pick(vanishes, 0, x), table);
  return pick(vanishes, 0, scaleByPower(add(1, expm1), low));
}

/** 2ˣ = 2ⁿ·e^(f·ln 2) with n the nearest integer and f = x - n, exact. Whole powers come out exactly. */
export function exp2(x: Expr): Expr {
  const { table } = tableOf(x);
  // half as far again as exponents of e: 1/ln 2 is 1.44
  const bounded = clamp(x, 1.5 * table.lo, 1.5 * table.hi);
  const { n, low } = roundToInteger(bounded);
  const r = mul(sub(bounded, n), Math.LN2);
  return scaleByPower(add(1, add(r, expTail(r))), low);
}

/** 2·(2ⁿ⁻¹·(eʳ - 1) + (2ⁿ⁻¹ - ½)): exact in its second part while it matters, and no overflow before the result's. */
function unreducedExpm1({ expm1, low }: Reduced, format: Format): Expr {
  const half = powerOfTwo(low, format, -1);
  return mul(add(mul(half, expm1), sub(half, 0.5)), 2);
}

export function expm1(x: Expr): Expr {
  const { format, table } = tableOf(x);
  const result = unreducedExpm1(reduce(clamp(x, table.expm1Lo, table.hi), table), format);
  return pick(lt(abs(x), table.tiny), x, result);
}

/** 1 / (1 + e⁻ˣ), as e^min(x,0) / (1 + e^-|x|): no overflow, and small results keep their relative accuracy. */
export function sigmoid(x: Expr): Expr {
  const e = expOfNegative(neg(abs(x)));
  return div(pick(lt(x, 0), e, 1), add(1, e));
}

/** t / (2 - t) with t = 1 - e^-2|x|, which is 1 to the last bit from 2|x| = 40 on; the sign of x put back at the end. */
export function tanh(x: Expr): Expr {
  const { format, table } = tableOf(x);
  const { expm1, low } = reduce(max(mul(abs(x), -2), -40), table);
  const power = powerOfTwo(low, format);
  const t = sub(sub(1, power), mul(power, expm1));
  const sign = and(bitsOf(x), format.signBit);
  return floatOf(or(bitsOf(div(t, sub(2, t))), sign));
}
