/** @file Singular values within routines: reflections from both sides to two diagonals, then rotations until one is left. */
import type { Expr, Index } from "../../kernel/expr.ts";
import { asExpr } from "../../kernel/loops.ts";
import {
  greatest,
  least,
  type Matrix,
  minus,
  plus,
  type RoutineBuilder,
  type Vector,
} from "../../kernel/routine-builder.ts";
import { partialSums, sumOf, sums, update } from "../../kernel/routine-products.ts";
import { abs, add, div, eq, le, lt, max, mul, ne, neg, or, sub } from "../../kernel/scalar-ops.ts";
import { type Reflectors, reflect } from "./householder.ts";
import { epsilonOf, length, rotate, withSign } from "./rotations.ts";

/** The diagonal, what is right of it, and the reflections from both sides that lead there. */
export interface Bidiagonal {
  readonly d: Vector;
  /** Element k is above diagonal element k, beside k - 1; the first is 0. */
  readonly e: Vector;
  readonly left: Reflectors;
  readonly right: Reflectors;
}

/** Rows whose products with the right reflector are summed together. */
const ROWS = 4;

/**
 * Column k and row k in turn. Both reflections change the rest of the matrix in one pass, a = a - τ v wᵀ - z (τ' u)ᵀ with w = aᵀ v and
 * z the product of a, the first reflection done, with u. The matrix is used up.
 */
export function bidiagonalize(r: RoutineBuilder, a: Matrix, m: number, n: number): Bidiagonal {
  const [d, e, w, z] = [r.vector(n), r.vector(n), r.vector(n), r.vector(m)];
  const parts = partialSums(r, ROWS);
  const reflectorsOf = (count: number, of: number, offset: number): Reflectors => ({
    ...{ rows: r.matrix(count, of), count, length: of, tau: r.vector(count), offset, parts },
  });
  const left = reflectorsOf(n, m, 0);
  const right = reflectorsOf(Math.max(1, n - 1), n, 1);
  const first = r.single();
  const dots = Array.from({ length: ROWS }, () => r.single());
  if (n > 0) r.set(e.place(0), r.number(0));
  r.for(0, n, (k) => {
    const next = plus(k, 1);
    r.each(k, m, (i) => r.set(left.rows.place(k, i), a.at(i, k)));
    reflect(r, left, k, first);
    r.set(d.place(k), first.value);
    r.if(lt(asExpr(k), n - 1), () => {
      const inside = r.fixed(least(k, n - 2));
      const t = r.named(left.tau.at(k));
      r.each(next, n, (j) => r.set(w.place(j), r.number(0)));
      update(r, {
        ...{ rows: [0, 1], columns: [next, n], terms: [k, m], adds: true },
        target: (_, j) => w.place(j),
        value: (_, j) => w.at(j),
        left: (_, i) => left.rows.at(k, i),
        right: (i, j) => a.at(i, j),
      });
      r.each(next, n, (j) => r.set(w.place(j), mul(t, w.at(j))));
      r.each(next, n, (j) => r.set(right.rows.place(inside, j), sub(a.at(k, j), w.at(j))));
      reflect(r, right, inside, first);
      r.set(e.place(plus(inside, 1)), first.value);
      const both = sumOf(r, [next, n], parts, (j) => mul(w.at(j), right.rows.at(inside, j)));
      const by = r.named(both.value);
      const u = r.named(right.tau.at(inside));
      r.inGroups(next, m, ROWS, (i, many) => {
        const own = dots.slice(0, many);
        sums(r, [next, n], parts, (s, j) => mul(a.at(plus(i, s), j), right.rows.at(inside, j)), own);
        own.forEach(({ value }, s) => {
          const row = plus(i, s);
          r.set(z.place(row), mul(u, sub(value, mul(left.rows.at(k, row), by))));
        });
        r.each(next, n, (j) =>
          r.setAll(
            own.map((_, s) => {
              const row = plus(i, s);
              const once = sub(a.at(row, j), mul(left.rows.at(k, row), w.at(j)));
              return [a.place(row, j), sub(once, mul(z.at(row), right.rows.at(inside, j)))] as const;
            }),
          ),
        );
      });
    });
  });
  return { d, e, left, right };
}

/** Iterations for one singular value, which takes two on average. */
const MOST = 60;

/** Rows that are rotated with the diagonals: left singular vectors of some length, and right ones. */
export interface Vectors {
  readonly left: Matrix;
  readonly leftLength: number;
  readonly right: Matrix;
}

/**
 * Implicit QR with shifts (G. H. Golub, C. Reinsch, "Singular value decomposition and least squares solutions", 1970). The diagonal
 * becomes the singular values, not in order; one that is not found becomes NaN.
 */
export function diagonalizeBoth(r: RoutineBuilder, { d, e }: Bidiagonal, n: number, vectors: Vectors | null): void {
  const [cosU, sinU, cosV, sinV] = [r.vector(n), r.vector(n), r.vector(n), r.vector(n)];
  const [l, done, going, cancels] = [r.single("i32"), r.single("i32"), r.single("i32"), r.single("i32")];
  const [c, s, x, f, g, y, h] = [r.single(), r.single(), r.single(), r.single(), r.single(), r.single(), r.single()];
  const start = r.index(l, 0, n - 1);
  const norm = r.single();
  r.let(norm, 0);
  r.for(0, n, (i) => r.let(norm, max(norm.value, add(abs(d.at(i)), abs(e.at(i))))));
  const limit = r.named(mul(norm.value, epsilonOf(r)));
  const isSmall = (value: Expr): Expr => le(abs(value), limit);

  /** Where e[l] is to go because d[l - 1] is zero: rotations of row l - 1 with those below. */
  const cancel = (k: Index): void => {
    const above = r.fixed(greatest(minus(start, 1), 0));
    r.let(c, 0);
    r.let(s, 1);
    r.let(going, 1);
    r.for(start, plus(k, 1), (i) => {
      r.if(eq(going.value, 1), () => {
        r.let(f, mul(s.value, e.at(i)));
        r.set(e.place(i), mul(c.value, e.at(i)));
        r.if(
          isSmall(f.value),
          () => r.let(going, 0),
          () => {
            r.let(g, d.at(i));
            r.let(h, length(f.value, g.value));
            r.set(d.place(i), h.value);
            r.let(c, div(g.value, h.value));
            r.let(s, div(neg(f.value), h.value));
            if (!vectors) return;
            const { left, leftLength } = vectors;
            r.each(0, leftLength, (j) =>
              r.setAll([
                [left.place(above, j), add(mul(left.at(above, j), c.value), mul(left.at(i, j), s.value))],
                [left.place(i, j), sub(mul(left.at(i, j), c.value), mul(left.at(above, j), s.value))],
              ]),
            );
          },
        );
      });
    });
  };

  /** One sweep from l to k. */
  const sweep = (k: Index): void => {
    const above = r.fixed(greatest(minus(k, 1), 0));
    const z = r.named(d.at(k));
    r.let(x, d.at(start));
    r.let(y, d.at(above));
    r.let(g, e.at(above));
    r.let(h, e.at(k));
    const top = add(mul(sub(y.value, z), add(y.value, z)), mul(sub(g.value, h.value), add(g.value, h.value)));
    r.let(f, div(top, mul(mul(h.value, y.value), 2)));
    const root = withSign(length(f.value, r.number(1)), f.value);
    const shift = sub(div(y.value, add(f.value, root)), h.value);
    r.let(f, div(add(mul(sub(x.value, z), add(x.value, z)), mul(h.value, shift)), x.value));
    r.let(c, 1);
    r.let(s, 1);
    r.for(start, k, (j) => {
      const i = plus(j, 1);
      r.let(g, e.at(i));
      r.let(y, d.at(i));
      r.let(h, mul(s.value, g.value));
      r.let(g, mul(c.value, g.value));
      const first = r.named(length(f.value, h.value));
      r.set(e.place(j), first);
      r.let(c, div(f.value, first));
      r.let(s, div(h.value, first));
      r.let(f, add(mul(x.value, c.value), mul(g.value, s.value)));
      r.let(g, sub(mul(g.value, c.value), mul(x.value, s.value)));
      r.let(h, mul(y.value, s.value));
      r.let(y, mul(y.value, c.value));
      r.set(cosV.place(j), c.value);
      r.set(sinV.place(j), s.value);
      const second = r.named(length(f.value, h.value));
      r.set(d.place(j), second);
      r.if(ne(second, 0), () => {
        r.let(c, div(f.value, second));
        r.let(s, div(h.value, second));
      });
      r.set(cosU.place(j), c.value);
      r.set(sinU.place(j), s.value);
      r.let(f, add(mul(c.value, g.value), mul(s.value, y.value)));
      r.let(x, sub(mul(c.value, y.value), mul(s.value, g.value)));
    });
    r.set(e.place(start), r.number(0));
    r.set(e.place(k), f.value);
    r.set(d.place(k), x.value);
    if (!vectors) return;
    rotate(r, vectors.right, n, { range: [start, k], down: false, cos: cosV, sin: sinV });
    rotate(r, vectors.left, vectors.leftLength, { range: [start, k], down: false, cos: cosU, sin: sinU });
  };

  r.down(0, n, (k) => {
    r.let(done, 0);
    r.while(eq(done.value, 0), MOST, () => {
      r.let(l, asExpr(k));
      r.let(going, 1);
      r.let(cancels, 0);
      r.while(eq(going.value, 1), n + 1, () => {
        r.if(
          or(eq(l.value, 0), isSmall(e.at(start))),
          () => r.let(going, 0),
          () => {
            r.if(
              isSmall(d.at(r.fixed(greatest(minus(start, 1), 0)))),
              () => {
                r.let(going, 0);
                r.let(cancels, 1);
              },
              () => r.let(l, sub(l.value, 1)),
            );
          },
        );
      });
      r.if(eq(cancels.value, 1), () => cancel(k));
      r.if(
        eq(l.value, asExpr(k)),
        () => r.let(done, 1),
        () => sweep(k),
      );
    });
    r.if(lt(d.at(k), 0), () => {
      r.set(d.place(k), neg(d.at(k)));
      if (vectors) r.each(0, n, (j) => r.set(vectors.right.place(k, j), neg(vectors.right.at(k, j))));
    });
    r.if(eq(done.value, 0), () => r.set(d.place(k), r.number(Number.NaN)));
  });
}
