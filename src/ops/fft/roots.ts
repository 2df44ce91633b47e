/**
 * @file Roots of unity: e^(2πi·t/n) as constants of butterflies, and as expressions of tables.
 *
 * Both find the quarter of the circle in whole numbers, so that what is rounded is an angle of at most π/4. Only sums and products are
 * used, so that the bits are the same in every engine and on every target.
 */
import type { FloatScalar } from "../../kernel/dtype.ts";
import type { Expr } from "../../kernel/expr.ts";
import { circlePoint } from "../../kernel/math-trig.ts";
import { add, convert, div, eq, mul, neg, or, pick, sub } from "../../kernel/scalar-ops.ts";

export interface Root<T> {
  readonly cos: T;
  readonly sin: T;
}

/** cos and sin of an angle of at most π/4 in doubles, to the last bit or two. */
function smallAngle(angle: number): Root<number> {
  const z = angle * angle;
  let [cos, sin] = [0, 0];
  for (let k = 24; k >= 2; k -= 2) {
    cos = -(z * (1 + cos)) / (k * (k - 1));
    sin = -(z * (1 + sin)) / (k * (k + 1));
  }
  return { cos: 1 + cos, sin: angle * (1 + sin) };
}

/** e^(2πi·t/n) as numbers, for whole t ≥ 0. */
export function rootNumber(t: number, n: number): Root<number> {
  const turn = t % n;
  const quarter = Math.floor((8 * turn + n) / (2 * n));
  const { cos, sin } = smallAngle((((4 * turn - quarter * n) / n) * Math.PI) / 2);
  const turned: readonly Root<number>[] = [
    { cos, sin },
    { cos: -sin, sin: cos },
    { cos: -cos, sin: -sin },
    { cos: sin, sin: -cos },
  ];
  return turned[quarter % 4] as Root<number>;
}

/** The remainder of a whole number ≥ 0, as i32. */
export const remainderOf = (x: Expr, by: number): Expr => sub(x, mul(div(x, by), by));

/** e^(2πi·t/n) for a whole number 0 ≤ t < n, as i32; 9n has to be one as well. */
export function rootExpr(t: Expr, n: number, dtype: FloatScalar): Root<Expr> {
  const quarter = div(add(mul(t, 8), n), 2 * n);
  const rest = convert(sub(mul(t, 4), mul(quarter, n)), dtype);
  const { sin, cos } = circlePoint(mul(div(rest, n), Math.PI / 2));
  const isOdd = or(eq(quarter, 1), eq(quarter, 3));
  const [x, y] = [pick(isOdd, sin, cos), pick(isOdd, cos, sin)];
  const isLeft = or(eq(quarter, 1), eq(quarter, 2));
  const isBelow = or(eq(quarter, 2), eq(quarter, 3));
  return { cos: pick(isLeft, neg(x), x), sin: pick(isBelow, neg(y), y) };
}
