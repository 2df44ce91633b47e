/** @file Gaussian elimination with exchanges of rows, as a part of routines, and its meaning in doubles. */
import { at } from "../../base/invariant.ts";
import type { Expr } from "../../kernel/expr.ts";
import { asExpr } from "../../kernel/loops.ts";
import {
  type Ix,
  least,
  type Matrix,
  plus,
  type RoutineBuilder,
  times,
  type Vector,
} from "../../kernel/routine-builder.ts";
import { update } from "../../kernel/routine-products.ts";
import { abs, convert, div, lt, ne } from "../../kernel/scalar-ops.ts";
import { FEW_ROWS } from "./rules.ts";
import { substitute } from "./triangular.ts";

/** Columns that are factored together. */
const PANEL = 32;

/** A factored matrix: l below the diagonal, which is 1 there, u on and above it, and the row that each was exchanged with. */
export interface Factored {
  readonly a: Matrix;
  readonly pivots: Vector;
}

/** Two rows change places. */
function exchange(r: RoutineBuilder, a: Matrix, columns: number, [i, p]: readonly [Ix, Ix]): void {
  r.each(0, columns, (j) =>
    r.setAll([
      [a.place(i, j), a.at(p, j)],
      [a.place(p, j), a.at(i, j)],
    ]),
  );
}

/**
 * Factors a square matrix that is read into a tile. Of a column, the first of its largest elements is the pivot; a column of zeros
 * stays, and u has a zero on the diagonal.
 */
export function factorize(r: RoutineBuilder, n: number, read: (i: Ix, j: Ix) => Expr): Factored {
  if (n <= FEW_ROWS) r.unrolls = n;
  const [a, pivots] = [r.matrix(n, n), r.vector(n)];
  r.for(0, n, (i) => r.each(0, n, (j) => r.set(a.place(i, j), read(i, j))));
  const [best, row, d] = [r.single(), r.single("i32"), r.single()];
  const reduced = (rows: readonly [Ix, Ix], columns: readonly [Ix, Ix], terms: readonly [Ix, Ix]): void =>
    update(r, {
      ...{ rows, columns, terms },
      target: (i, j) => a.place(i, j),
      value: (i, j) => a.at(i, j),
      left: (i, p) => a.at(i, p),
      right: (p, j) => a.at(p, j),
    });
  r.for(0, Math.ceil(n / PANEL), (block) => {
    const from = times(block, PANEL);
    const to = r.fixed(least(plus(from, PANEL), n));
    r.for(from, to, (k) => {
      r.let(best, abs(a.at(k, k)));
      r.let(row, asExpr(k));
      r.for(plus(k, 1), n, (i) => {
        r.if(lt(best.value, abs(a.at(i, k))), () => {
          r.let(best, abs(a.at(i, k)));
          r.let(row, asExpr(i));
        });
      });
      r.set(pivots.place(k), convert(row.value, r.dtype));
      r.if(ne(row.value, asExpr(k)), () => exchange(r, a, n, [k, r.index(row, 0, n - 1)]));
      r.let(d, a.at(k, k));
      r.if(ne(d.value, 0), () => {
        r.for(plus(k, 1), n, (i) => r.set(a.place(i, k), div(a.at(i, k), d.value)));
      });
      reduced([plus(k, 1), n], [plus(k, 1), to], [k, plus(k, 1)]);
    });
    r.for(from, to, (i) => reduced([i, plus(i, 1)], [to, n], [from, i]));
    reduced([to, n], [to, n], [from, to]);
  });
  return { a, pivots };
}

/** x = a⁻¹ x, in place. */
export function solveFactored(
  r: RoutineBuilder,
  { a, pivots }: Factored,
  x: Matrix,
  [n, m]: readonly [number, number],
): void {
  const row = r.single("i32");
  r.for(0, n, (i) => {
    r.let(row, convert(pivots.at(i), "i32"));
    r.if(ne(row.value, asExpr(i)), () => exchange(r, x, m, [i, r.index(row, 0, n - 1)]));
  });
  const element = (i: Ix, p: Ix): Expr => a.at(i, p);
  substitute({ r, extents: [n, m], x, isUp: false, unit: true, element });
  substitute({ r, extents: [n, m], x, isUp: true, unit: false, element });
}

/** A square matrix in doubles, [row][column]. */
export type Rows = number[][];

export function rowsFrom(data: ArrayLike<number>, start: number, rows: number, columns: number): Rows {
  return Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns }, (_, j) => Number(data[start + i * columns + j])),
  );
}

/** Elimination in doubles: a becomes triangular, rows of x are changed with those of a; the sign of the exchanges. */
export function eliminate(a: Rows, x: Rows): number {
  const n = a.length;
  let sign = 1;
  for (let k = 0; k < n; k++) {
    let p = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(at(at(a, i), k)) > Math.abs(at(at(a, p), k))) p = i;
    if (p !== k) {
      sign = -sign;
      for (const rows of [a, x]) {
        const moved = rows[k];
        if (moved === undefined) continue;
        rows[k] = at(rows, p);
        rows[p] = moved;
      }
    }
    const pivot = at(at(a, k), k);
    for (let i = k + 1; i < n && pivot !== 0; i++) {
      const by = at(at(a, i), k) / pivot;
      for (let j = k; j < n; j++) at(a, i)[j] = at(at(a, i), j) - by * at(at(a, k), j);
      const [own, above] = [x[i], x[k]];
      if (own && above) for (let j = 0; j < own.length; j++) own[j] = at(own, j) - by * at(above, j);
    }
  }
  return sign;
}

/** a⁻¹ x in doubles. */
export function solved(a: Rows, x: Rows): Rows {
  const [u, y] = [a.map((row) => [...row]), x.map((row) => [...row])];
  eliminate(u, y);
  for (let i = u.length - 1; i >= 0; i--) {
    const own = at(y, i);
    for (let j = 0; j < own.length; j++) {
      let sum = at(own, j);
      for (let p = i + 1; p < u.length; p++) sum -= at(at(u, i), p) * at(at(y, p), j);
      own[j] = sum / at(at(u, i), i);
    }
  }
  return y;
}
