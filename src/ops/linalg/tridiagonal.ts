/** @file Eigenvalues of symmetric matrices within routines: reflections to three diagonals, then rotations until one is left. */
import type { Expr } from "../../kernel/expr.ts";
import { asExpr } from "../../kernel/loops.ts";
import { least, type Matrix, plus, type RoutineBuilder, type Vector } from "../../kernel/routine-builder.ts";
import { partialSums, sumOf, update } from "../../kernel/routine-products.ts";
import { abs, add, div, eq, le, lt, mul, ne, neg, or, sub } from "../../kernel/scalar-ops.ts";
import { Blocks, type Reflectors, reflect } from "./householder.ts";
import { epsilonOf, length, rotate, withSign } from "./rotations.ts";

/** The diagonal, what is beside it, and the reflections that lead there. */
export interface Tridiagonal {
  readonly d: Vector;
  /** Element k is beside diagonal elements k and k + 1. */
  readonly e: Vector;
  readonly reflectors: Reflectors;
}

/** Row by row: a = a - v wᵀ - w vᵀ with w = p - τ/2 (pᵀ v) v, p = τ a v. The matrix is used up. */
export function tridiagonalize(r: RoutineBuilder, a: Matrix, n: number): Tridiagonal {
  const [d, e, w] = [r.vector(n), r.vector(n), r.vector(n)];
  const count = Math.max(1, n - 1);
  const reflectors = {
    ...{ rows: r.matrix(count, n), count, length: n, tau: r.vector(count), offset: 1, parts: partialSums(r, 1) },
  };
  const { rows, tau, parts } = reflectors;
  const first = r.single();
  r.for(0, n - 1, (k) => {
    const start = plus(k, 1);
    r.set(d.place(k), a.at(k, k));
    r.each(start, n, (j) => r.set(rows.place(k, j), a.at(k, j)));
    reflect(r, reflectors, k, first);
    r.set(e.place(k), first.value);
    const t = r.named(tau.at(k));
    r.if(ne(t, 0), () => {
      r.each(start, n, (j) => r.set(w.place(j), r.number(0)));
      update(r, {
        ...{ rows: [0, 1], columns: [start, n], terms: [start, n], adds: true },
        target: (_, j) => w.place(j),
        value: (_, j) => w.at(j),
        left: (_, i) => rows.at(k, i),
        right: (i, j) => a.at(i, j),
      });
      const dot = sumOf(r, [start, n], parts, (j) => mul(w.at(j), rows.at(k, j)));
      const by = r.named(mul(mul(mul(t, t), dot.value), 0.5));
      r.each(start, n, (j) => r.set(w.place(j), sub(mul(t, w.at(j)), mul(by, rows.at(k, j)))));
      r.inGroups(start, n, 4, (i, many) => {
        const own = Array.from({ length: many }, (_, s) => plus(i, s));
        r.each(start, n, (j) =>
          r.setAll(
            own.map((row) => {
              const less = sub(a.at(row, j), mul(rows.at(k, row), w.at(j)));
              return [a.place(row, j), sub(less, mul(w.at(row), rows.at(k, j)))] as const;
            }),
          ),
        );
      });
    });
  });
  if (n > 0) {
    r.set(d.place(n - 1), a.at(n - 1, n - 1));
    r.set(e.place(n - 1), r.number(0));
  }
  return { d, e, reflectors };
}

/** The product of the reflections, its columns as rows. */
export function formRows(
  r: RoutineBuilder,
  of: Reflectors,
  to: Matrix,
  [rows, columns]: readonly [number, number],
): void {
  const blocks = new Blocks(r, of, columns);
  const work = r.matrix(rows, columns);
  r.for(0, blocks.count, (block) => blocks.join(block));
  blocks.form(work, columns);
  r.for(0, rows, (i) => r.each(0, columns, (j) => r.set(to.place(j, i), work.at(i, j))));
}

/** Iterations for one eigenvalue, which takes two on average. */
const MOST = 60;

/**
 * Implicit QL with shifts (H. Bowdler, R. S. Martin, C. Reinsch, J. H. Wilkinson, "The QR and QL algorithms for symmetric matrices",
 * 1968). `z`: n rows that are rotated alike, or null. An eigenvalue that is not found becomes NaN.
 */
export function diagonalize(r: RoutineBuilder, { d, e }: Tridiagonal, n: number, z: Matrix | null): void {
  const [cos, sin] = [r.vector(n), r.vector(n)];
  const [m, done, stopped, last] = [r.single("i32"), r.single("i32"), r.single("i32"), r.single("i32")];
  const [c, s, p, g] = [r.single(), r.single(), r.single(), r.single()];
  const end = r.index(m, 0, n - 1);
  const isSmall = (k: Expr, sum: Expr): Expr => le(abs(k), mul(sum, epsilonOf(r)));
  r.for(0, n, (l) => {
    r.let(done, 0);
    r.while(eq(done.value, 0), MOST, () => {
      r.let(m, asExpr(l));
      r.let(stopped, 0);
      r.while(eq(stopped.value, 0), n, () => {
        r.if(
          lt(m.value, n - 1),
          () => {
            const sum = add(abs(d.at(end)), abs(d.at(plus(r.index(m, 0, n - 2), 1))));
            r.if(
              isSmall(e.at(end), sum),
              () => r.let(stopped, 1),
              () => r.let(m, add(m.value, 1)),
            );
          },
          () => r.let(stopped, 1),
        );
      });
      r.if(
        eq(m.value, asExpr(l)),
        () => r.let(done, 1),
        () => {
          // here l < m, so that l + 1 is there
          const [own, beside] = [r.named(d.at(l)), r.named(e.at(l))];
          const next = r.named(d.at(r.fixed(least(plus(l, 1), n - 1))));
          const ratio = r.named(div(sub(next, own), mul(beside, 2)));
          const shifted = add(ratio, withSign(length(ratio, r.number(1)), ratio));
          r.let(g, add(sub(d.at(end), own), div(beside, shifted)));
          r.let(s, 1);
          r.let(c, 1);
          r.let(p, 0);
          r.let(stopped, 0);
          r.let(last, asExpr(l));
          r.down(l, end, (i) => {
            r.if(eq(stopped.value, 0), () => {
              const [f, b] = [r.named(mul(s.value, e.at(i))), r.named(mul(c.value, e.at(i)))];
              const norm = r.named(length(f, g.value));
              r.set(e.place(plus(i, 1)), norm);
              r.if(
                eq(norm, 0),
                () => {
                  r.set(d.place(plus(i, 1)), sub(d.at(plus(i, 1)), p.value));
                  r.set(e.place(end), r.number(0));
                  r.let(stopped, 1);
                  r.let(last, asExpr(plus(i, 1)));
                },
                () => {
                  r.let(s, div(f, norm));
                  r.let(c, div(g.value, norm));
                  r.let(g, sub(d.at(plus(i, 1)), p.value));
                  const turned = r.named(add(mul(sub(d.at(i), g.value), s.value), mul(mul(c.value, b), 2)));
                  r.let(p, mul(s.value, turned));
                  r.set(d.place(plus(i, 1)), add(g.value, p.value));
                  r.let(g, sub(mul(c.value, turned), b));
                  r.set(cos.place(i), c.value);
                  r.set(sin.place(i), neg(s.value));
                },
              );
            });
          });
          if (z) rotate(r, z, n, { range: [r.index(last, 0, n - 1), end], down: true, cos, sin });
          r.if(eq(stopped.value, 0), () => {
            r.set(d.place(l), sub(d.at(l), p.value));
            r.set(e.place(l), g.value);
            r.set(e.place(end), r.number(0));
          });
        },
      );
    });
    r.if(or(eq(done.value, 0), ne(d.at(l), d.at(l))), () => r.set(d.place(l), r.number(Number.NaN)));
  });
}
