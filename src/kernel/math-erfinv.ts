/**
 * @file The inverse of the error function: x·P(w) with w = -log(1 - x²) below 5, else x·Q(√w) (M. Giles, 2012), with P and Q
 * minimax fits of this file. That is enough for f32; in f64 one step of Halley's method follows, on erf or, near ±1, on erfc:
 *
 *   u = (erf y - x) / erf' y,    y ← y - u / (1 + y·u)
 */
import type { FloatScalar } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { formatOf } from "./float-format.ts";
import { withSignOf } from "./math-atan.ts";
import { erf, erfc } from "./math-erf.ts";
import { exp } from "./math-exp.ts";
import { log } from "./math-log.ts";
import { abs, add, div, eq, lt, max, min, mul, neg, pick, polynomial, sqrt, sub } from "./scalar-ops.ts";

/** erfinv x / x in w - 2.5. */
const NEAR = [
  1.50140936, 0.246640286, -0.00417738678, -0.0012527419, 0.000218344444, -4.96333482e-6, -3.4627059e-6, 4.6616792e-7,
  2.32327348e-8, -8.79086096e-9,
];

interface FarTable {
  /** erfinv x / x in √w - centre. */
  readonly far: readonly number[];
  readonly centre: number;
  readonly improves: boolean;
}

const TABLES: Record<FloatScalar, FarTable> = {
  f32: {
    far: [
      2.8329768, 1.00167507, 0.00944565506, -0.00763917512, 0.00568347755, -0.00358817935, 0.0014949358, -7.43278431e-5,
      -0.00031790325, 0.000127446586,
    ],
    centre: 3,
    improves: false,
  },
  f64: {
    far: [
      3.83978436, 1.0094938, 0.00124887625, -0.000873435768, 0.000356300032, -0.000110718091, 1.33089619e-5,
      -3.45536284e-5, 4.18657265e-5, -1.11499175e-5, -2.61102834e-6, 1.07934766e-6,
    ],
    centre: 4,
    improves: true,
  },
};

/** y + what is missing from erf y = x, for x ≥ 0. */
function improved(y: Expr, x: Expr): Expr {
  const off = pick(lt(x, 0.5), sub(erf(y), x), sub(sub(1, x), erfc(y)));
  const u = mul(mul(off, Math.sqrt(Math.PI) / 2), exp(mul(y, y)));
  return sub(y, div(u, add(1, mul(y, u))));
}

export function erfinv(x: Expr): Expr {
  const { far, centre, improves } = TABLES[formatOf(x).dtype];
  const size = abs(x);
  // 40 is beyond the largest below 1
  const w = max(min(neg(log(mul(sub(1, size), add(1, size)))), 40), 0);
  const start = pick(lt(w, 5), polynomial(sub(min(w, 5), 2.5), NEAR), polynomial(sub(sqrt(w), centre), far));
  const y = mul(size, start);
  const inside = improves ? improved(y, size) : y;
  const atEnd = pick(eq(size, 1), constant(x.dtype, Number.POSITIVE_INFINITY), Number.NaN);
  return withSignOf(x, pick(lt(size, 1), inside, atEnd));
}
