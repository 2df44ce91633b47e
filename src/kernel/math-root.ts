/**
 * @file The cube root. |x| = z·8^q with 0.35 ≤ z < 2.83; a polynomial within 0.2% of ∛z is improved by Halley's method, which
 * triples the number of right digits: y ← y + y·(z - y³)/(2y³ + z).
 */
import { isBig } from "./dtype.ts";
import { constant, type Expr } from "./expr.ts";
import { formatOf, powerOfTwo, roundToInteger, splitAnyExponent } from "./float-format.ts";
import { withSignOf } from "./math-atan.ts";
import { abs, add, and, div, lt, mul, pick, polynomial, sub } from "./scalar-ops.ts";

/** ∛z for 0.35 ≤ z ≤ 2.83, to 2^-9. */
const START = [0.443490476, 0.898657507, -0.474173159, 0.153424142, -0.0195599466];

function improved(y: Expr, z: Expr): Expr {
  const cube = mul(mul(y, y), y);
  return add(y, mul(y, div(sub(z, cube), add(add(cube, cube), z))));
}

export function cbrt(x: Expr): Expr {
  const format = formatOf(x);
  const size = abs(x);
  const { m, e } = splitAnyExponent(size);
  const { n: q, low } = roundToInteger(mul(e, 1 / 3));
  // what is left of the exponent is -1, 0 or 1
  const rest = sub(e, mul(q, 3));
  const z = mul(m, pick(lt(rest, 0), constant(x.dtype, 0.5), pick(lt(0, rest), constant(x.dtype, 2), 1)));
  let y = improved(polynomial(z, START), z);
  if (isBig(format.int)) y = improved(y, z);
  const root = withSignOf(x, mul(y, powerOfTwo(low, format)));
  return pick(and(lt(0, size), lt(size, Number.POSITIVE_INFINITY)), root, x);
}
