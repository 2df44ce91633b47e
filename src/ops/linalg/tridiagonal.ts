/** @file Eigenvalues of symmetric matrices within routines: reflections to three diagonals, then rotations until one is left. */
import type { Expr, Index } from "../../kernel/expr.ts";
import { asExpr } from "../../kernel/loops.ts";
import {
  least,
  type Matrix,
  plus,
  type RoutineBuilder,
  type Single,
  type Vector,
} from "../../kernel/routine-builder.ts";
import { partialSums, sumOf, update } from "../../kernel/routine-products.ts";
import { abs, add, div, eq, le, lt, mul, ne, neg, sub } from "../../kernel/scalar-ops.ts";
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

/** The product of the reflections, its columns as rows; `work` has room for it. */
export function formRows(
  r: RoutineBuilder,
  of: Reflectors,
  { to, work }: { readonly to: Matrix; readonly work: Matrix },
  [rows, columns]: readonly [number, number],
): void {
  const blocks = new Blocks(r, of, columns);
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
export function diagonalize(r: RoutineBuilder, of: Tridiagonal, n: number, z: Matrix | null): void {
  new OneSide(r, of, n, z).run();
}

class OneSide {
  readonly #r: RoutineBuilder;
  readonly #d: Vector;
  readonly #e: Vector;
  readonly #n: number;
  readonly #z: Matrix | null;
  readonly #cos: Vector;
  readonly #sin: Vector;
  /** Where the part that is worked on ends, and where its rotations stopped. */
  readonly #m: Single;
  readonly #last: Single;
  readonly #done: Single;
  readonly #stopped: Single;

  constructor(r: RoutineBuilder, { d, e }: Tridiagonal, n: number, z: Matrix | null) {
    this.#r = r;
    this.#d = d;
    this.#e = e;
    this.#n = n;
    this.#z = z;
    this.#cos = r.vector(n);
    this.#sin = r.vector(n);
    this.#m = r.single("i32");
    this.#last = r.single("i32");
    this.#done = r.single("i32");
    this.#stopped = r.single("i32");
  }

  get #end(): Index {
    return this.#r.index(this.#m, 0, this.#n - 1);
  }

  run(): void {
    const [r, d] = [this.#r, this.#d];
    r.for(0, this.#n, (l) => {
      r.let(this.#done, 0);
      r.while(eq(this.#done.value, 0), MOST, () => {
        this.#find(l);
        r.if(
          eq(this.#m.value, asExpr(l)),
          () => r.let(this.#done, 1),
          () => this.#sweep(l),
        );
      });
      r.if(eq(this.#done.value, 0), () => r.set(d.place(l), r.number(Number.NaN)));
    });
  }

  /** The part that begins at l ends in front of a zero beside the diagonal. */
  #find(l: Index): void {
    const [r, d, n] = [this.#r, this.#d, this.#n];
    r.let(this.#m, asExpr(l));
    r.let(this.#stopped, 0);
    r.while(eq(this.#stopped.value, 0), n, () => {
      r.if(
        lt(this.#m.value, n - 1),
        () => {
          const sum = add(abs(d.at(this.#end)), abs(d.at(plus(r.index(this.#m, 0, n - 2), 1))));
          r.if(
            le(abs(this.#e.at(this.#end)), mul(sum, epsilonOf(r))),
            () => r.let(this.#stopped, 1),
            () => r.let(this.#m, add(this.#m.value, 1)),
          );
        },
        () => r.let(this.#stopped, 1),
      );
    });
  }

  /** What the first rotation of a sweep is of, from the eigenvalue of the first two rows that is nearer; l is not the last. */
  #shifted(l: Index): Expr {
    const [r, d] = [this.#r, this.#d];
    const [own, beside] = [r.named(d.at(l)), r.named(this.#e.at(l))];
    const next = r.named(d.at(r.fixed(least(plus(l, 1), this.#n - 1))));
    const ratio = r.named(div(sub(next, own), mul(beside, 2)));
    const shifted = add(ratio, withSign(length(ratio, r.number(1)), ratio));
    return r.named(add(sub(d.at(this.#end), own), div(beside, shifted)));
  }

  /** Rotations from the end up to l. */
  #sweep(l: Index): void {
    const [r, d, e, end] = [this.#r, this.#d, this.#e, this.#end];
    const [c, s, p, g] = [r.single(), r.single(), r.single(), r.single()];
    r.let(g, this.#shifted(l));
    r.let(s, 1);
    r.let(c, 1);
    r.let(p, 0);
    r.let(this.#stopped, 0);
    r.let(this.#last, asExpr(l));
    r.down(l, end, (i) => {
      r.if(eq(this.#stopped.value, 0), () => {
        const below = plus(i, 1);
        const [f, b] = [r.named(mul(s.value, e.at(i))), r.named(mul(c.value, e.at(i)))];
        const norm = r.named(length(f, g.value));
        r.set(e.place(below), norm);
        r.if(
          eq(norm, 0),
          () => {
            r.set(d.place(below), sub(d.at(below), p.value));
            r.set(e.place(end), r.number(0));
            r.let(this.#stopped, 1);
            r.let(this.#last, asExpr(below));
          },
          () => {
            r.let(s, div(f, norm));
            r.let(c, div(g.value, norm));
            r.let(g, sub(d.at(below), p.value));
            const turned = r.named(add(mul(sub(d.at(i), g.value), s.value), mul(mul(c.value, b), 2)));
            r.let(p, mul(s.value, turned));
            r.set(d.place(below), add(g.value, p.value));
            r.let(g, sub(mul(c.value, turned), b));
            r.set(this.#cos.place(i), c.value);
            r.set(this.#sin.place(i), neg(s.value));
          },
        );
      });
    });
    const range = [r.index(this.#last, 0, this.#n - 1), end] as const;
    if (this.#z) rotate(r, this.#z, this.#n, { range, down: true, cos: this.#cos, sin: this.#sin });
    r.if(eq(this.#stopped.value, 0), () => {
      r.set(d.place(l), sub(d.at(l), p.value));
      r.set(e.place(l), g.value);
      r.set(e.place(end), r.number(0));
    });
  }
}
