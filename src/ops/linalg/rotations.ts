/** @file Rotations of neighbouring rows within routines, and numbers that iterations with them share. */
import { at } from "../../base/invariant.ts";
import { significandBits } from "../../kernel/dtype.ts";
import type { Expr, Index } from "../../kernel/expr.ts";
import { valueIndex } from "../../kernel/index-math.ts";
import { asExpr } from "../../kernel/loops.ts";
import {
  type Ix,
  least,
  type Matrix,
  minus,
  plus,
  type RoutineBuilder,
  times,
  type Vector,
} from "../../kernel/routine-builder.ts";
import { abs, add, convert, div, eq, lt, max, min, mul, neg, pick, sqrt, sub } from "../../kernel/scalar-ops.ts";

/** √(x² + y²), of which neither square overflows. */
export function length(x: Expr, y: Expr): Expr {
  const [large, small] = [max(abs(x), abs(y)), min(abs(x), abs(y))];
  const ratio = div(small, large);
  return pick(eq(large, 0), 0, mul(large, sqrt(add(1, mul(ratio, ratio)))));
}

/** |x| with the sign of y. */
export const withSign = (x: Expr, y: Expr): Expr => pick(lt(y, 0), neg(abs(x)), abs(x));

/** The distance from 1 to the next number. */
export const epsilonOf = (r: RoutineBuilder): number => 2 ** (1 - significandBits(r.dtype));

/** Columns that are rotated together: so many of all rows stay in the second cache. */
const STRIP = 64;
/** Rotations at a time, so that a row between two of them is read and written once. */
const ABREAST = 4;

/** Rotations of rows k and k + 1, for k in a range: lower ones first, or last. */
export interface Rotations {
  readonly range: readonly [from: Index, to: Index];
  readonly down: boolean;
  readonly cos: Vector;
  readonly sin: Vector;
}

/** Row k = c · row k + s · row k+1, row k+1 = c · row k+1 - s · row k, one rotation after the other. */
export function rotate(
  r: RoutineBuilder,
  z: Matrix,
  columns: number,
  { range: [from, to], down, cos, sin }: Rotations,
): void {
  const several = (first: Index, count: number, [start, end]: readonly [Index, Index]): void => {
    r.each(start, end, (j) => {
      const rows = Array.from({ length: count + 1 }, (_, i) => z.at(plus(first, i), j));
      for (let step = 0; step < count; step++) {
        const k = down ? count - 1 - step : step;
        const [c, s] = [cos.at(plus(first, k)), sin.at(plus(first, k))];
        const [x, y] = [at(rows, k), at(rows, k + 1)];
        rows[k] = add(mul(c, x), mul(s, y));
        rows[k + 1] = sub(mul(c, y), mul(s, x));
      }
      r.setAll(rows.map((value, i) => [z.place(plus(first, i), j), value] as const));
    });
  };
  r.for(0, Math.ceil(columns / STRIP), (strip) => {
    const start = times(strip, STRIP);
    const part = [start, r.fixed(least(plus(start, STRIP), columns))] as const;
    r.inGroups(0, minus(to, from), ABREAST, (done, count) => {
      const first = down ? minus(minus(to, done), count) : plus(from, done);
      several(first, count, part);
    });
  });
}

/** A whole number among floats, as an index. */
export const numberAt = (numbers: Vector, i: Ix, n: number): Index =>
  valueIndex(convert(numbers.at(i), "i32"), 0, Math.max(0, n - 1));

/** The numbers 0, 1, … in the order of values, the least first (or the greatest), those of equals as they are. */
export function ordered(r: RoutineBuilder, values: Vector, n: number, descending: boolean): Vector {
  const order = r.vector(n);
  const [place, value, going] = [r.single("i32"), r.single(), r.single("i32")];
  const position = r.index(place, 0, n - 1);
  r.for(0, n, (i) => {
    r.let(value, values.at(i));
    r.let(place, asExpr(i));
    r.let(going, 1);
    r.while(eq(going.value, 1), n, () => {
      r.let(going, 0);
      r.if(lt(0, place.value), () => {
        const previous = r.index({ ...place, value: sub(place.value, 1) }, 0, n - 1);
        const other = r.named(values.at(numberAt(order, previous, n)));
        r.if(descending ? lt(other, value.value) : lt(value.value, other), () => {
          r.set(order.place(position), order.at(previous));
          r.let(place, sub(place.value, 1));
          r.let(going, 1);
        });
      });
    });
    r.set(order.place(position), convert(asExpr(i), r.dtype));
  });
  return order;
}

/** 1, or -1 where the first of the largest elements of a row is negative. */
export function signOfLargest(r: RoutineBuilder, z: Matrix, row: Index, columns: number): Expr {
  const [best, sign] = [r.single(), r.single()];
  r.let(best, 0);
  r.let(sign, 1);
  r.for(0, columns, (j) => {
    r.if(lt(best.value, abs(z.at(row, j))), () => {
      r.let(best, abs(z.at(row, j)));
      r.let(sign, withSign(r.number(1), z.at(row, j)));
    });
  });
  return sign.value;
}
