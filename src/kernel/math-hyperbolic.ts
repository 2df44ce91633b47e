/**
 * @file sinh, cosh and the inverses asinh, acosh, atanh. The exponential is taken at a quarter of its size, so that it overflows
 * no earlier than the result:
 *
 *   S = (e^|x| - 1)/4,  E = e^|x|/4:    sinh |x| = 2·(S + S/(4S + 1)),    cosh x = 2·(E + 1/(16E))
 *
 * The inverses are logarithms of 1 + a with a free of cancellation; where the square of x would overflow, of x alone, ln 2 added.
 */
import type { FloatScalar } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { formatOf, powerOfTwo } from "./float-format.ts";
import { withSignOf } from "./math-atan.ts";
import { reducedExp } from "./math-exp.ts";
import { log1p } from "./math-log.ts";
import { abs, add, div, lt, min, mul, pick, sqrt, sub } from "./scalar-ops.ts";

interface Limits {
  /** Beyond, sinh and cosh overflow. */
  readonly overflow: number;
  /** Below this size sinh is x to the last bit. */
  readonly tiny: number;
  /** Beyond, √(x² ± 1) is x to the last bit. */
  readonly large: number;
}

const LIMITS: Record<FloatScalar, Limits> = {
  f32: { overflow: 89.5, tiny: 2 ** -13, large: 2 ** 26 },
  f64: { overflow: 710.6, tiny: 2 ** -28, large: 2 ** 54 },
};

const limitsOf = (x: Expr): Limits => LIMITS[formatOf(x).dtype];

export function sinh(x: Expr): Expr {
  const format = formatOf(x);
  const { overflow, tiny } = LIMITS[format.dtype];
  const { expm1, low } = reducedExp(min(abs(x), overflow));
  const quarter = powerOfTwo(low, format, -2);
  const s = add(mul(quarter, expm1), sub(quarter, 0.25));
  const size = mul(add(s, div(s, add(mul(s, 4), 1))), 2);
  return pick(lt(abs(x), tiny), x, withSignOf(x, size));
}

export function cosh(x: Expr): Expr {
  const { expm1, low } = reducedExp(min(abs(x), limitsOf(x).overflow));
  const quarter = powerOfTwo(low, formatOf(x), -2);
  const e = add(quarter, mul(quarter, expm1));
  return mul(add(e, div(1 / 16, e)), 2);
}

/** log(1 + small), or log(2·large) where x is large. */
function logOfSum(x: Expr, small: Expr): Expr {
  const isLarge = lt(limitsOf(x).large, x);
  return add(log1p(pick(isLarge, x, small)), pick(isLarge, constant(x.dtype, Math.LN2), 0));
}

/** log(|x| + √(x² + 1)) with |x| + √(x² + 1) = 1 + |x| + x²/(1 + √(x² + 1)). */
export function asinh(x: Expr): Expr {
  const size = abs(x);
  const square = mul(size, size);
  const a = add(size, div(square, add(1, sqrt(add(square, 1)))));
  return withSignOf(x, logOfSum(size, a));
}

/** log(x + √(x² - 1)) = log(1 + t + √(t·(t + 2))) with t = x - 1. */
export function acosh(x: Expr): Expr {
  const t = sub(x, 1);
  const result = logOfSum(x, add(t, sqrt(mul(t, add(t, 2)))));
  return pick(lt(x, 1), constant(x.dtype, Number.NaN), result);
}

/** ½ log((1 + |x|)/(1 - |x|)) = ½ log(1 + 2|x|/(1 - |x|)). */
export function atanh(x: Expr): Expr {
  const size = abs(x);
  return withSignOf(x, mul(log1p(div(add(size, size), sub(1, size))), 0.5));
}
