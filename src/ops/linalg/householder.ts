/**
 * @file Reflections H = 1 - τ v vᵀ within routines. Reflector k is row k of a tile: zeros, a one at k + `offset`, and the rest of v.
 * Thirty-two of them at a time are applied as one, 1 - Vᵀ T V (R. Schreiber, C. Van Loan, "A storage-efficient WY representation for
 * products of Householder transformations", 1989), so that most of the work is products of matrices.
 */
import type { Expr, Index } from "../../kernel/expr.ts";
import {
  type Ix,
  least,
  type Matrix,
  minus,
  plus,
  type RoutineBuilder,
  type Single,
  times,
  type Vector,
} from "../../kernel/routine-builder.ts";
import { sumOf, update } from "../../kernel/routine-products.ts";
import { add, div, lt, mul, ne, neg, pick, sqrt, sub } from "../../kernel/scalar-ops.ts";

/** Reflectors of a block. */
export const BLOCK = 32;

/** Reflectors as rows of a tile, with what the reflection needs beside them. */
export interface Reflectors {
  readonly rows: Matrix;
  readonly count: number;
  readonly length: number;
  readonly tau: Vector;
  /** The first element of reflector k is at k + offset. */
  readonly offset: number;
  /** Room for partial sums. */
  readonly parts: Vector;
}

/**
 * Turns row k, from its first element on, into the reflector that makes all of it but that element zero; `first` is set to what
 * that element becomes. A row of zeros behind its first element is not reflected.
 */
export function reflect(
  r: RoutineBuilder,
  { rows, length, tau, offset, parts }: Reflectors,
  k: Index,
  first: Single,
): void {
  const start = plus(k, offset);
  const square = sumOf(r, [plus(start, 1), length], parts, (i) => mul(rows.at(k, i), rows.at(k, i)));
  const alpha = r.named(rows.at(k, start));
  r.let(first, alpha);
  r.set(tau.place(k), r.number(0));
  r.if(ne(square.value, 0), () => {
    const norm = sqrt(add(mul(alpha, alpha), square.value));
    r.let(first, pick(lt(alpha, 0), norm, neg(norm)));
    r.set(tau.place(k), div(sub(first.value, alpha), first.value));
    const by = r.named(sub(alpha, first.value));
    r.each(plus(start, 1), length, (i) => r.set(rows.place(k, i), div(rows.at(k, i), by)));
  });
  r.set(rows.place(k, start), r.number(1));
  r.each(0, start, (i) => r.set(rows.place(k, i), r.number(0)));
}

/** The triangles T of all blocks of some reflectors, and room for products. */
export class Blocks {
  readonly #r: RoutineBuilder;
  readonly #of: Reflectors;
  readonly #t: Matrix;
  readonly #w: readonly [Matrix, Matrix];

  /** `columns`: of what reflections are applied to, at most. */
  constructor(r: RoutineBuilder, of: Reflectors, columns: number) {
    this.#r = r;
    this.#of = of;
    this.#t = r.matrix(of.count, BLOCK);
    this.#w = [r.matrix(BLOCK, columns), r.matrix(BLOCK, columns)];
  }

  get count(): number {
    return Math.ceil(this.#of.count / BLOCK);
  }

  /** The first reflector of a block, and the one behind its last. */
  range(block: Index): readonly [Index, Index] {
    const from = times(block, BLOCK);
    return [from, this.#r.fixed(least(plus(from, BLOCK), this.#of.count))];
  }

  /** T of a block: τ on the diagonal, T[s, q] = -τ_q Σ_u T[s, u] (v_u · v_q) above it. */
  join(block: Index): void {
    const { rows, length, tau, offset, parts } = this.#of;
    const r = this.#r;
    const [t, dots] = [this.#t, this.#w[0]];
    const [from, to] = this.range(block);
    r.for(from, to, (q) => {
      const own = minus(q, from);
      const tq = r.named(tau.at(q));
      r.for(from, q, (u) => {
        const dot = sumOf(r, [plus(q, offset), length], parts, (i) => mul(rows.at(u, i), rows.at(q, i)));
        r.set(dots.place(0, minus(u, from)), dot.value);
      });
      const sum = r.single();
      r.for(from, q, (s) => {
        r.let(sum, 0);
        r.for(s, q, (u) => {
          const inner = minus(u, from);
          r.let(sum, add(sum.value, mul(t.at(s, inner), dots.at(0, inner))));
        });
        r.set(t.place(s, own), neg(mul(tq, sum.value)));
      });
      r.set(t.place(q, own), tq);
    });
  }

  /** a = (1 - Vᵀ T V) a, or with T transposed, on columns of a from `column` on. */
  apply(block: Index, a: Matrix, [column, columns]: readonly [Ix, number], transposed: boolean): void {
    const r = this.#r;
    const { rows, length, offset } = this.#of;
    const [first, second] = this.#w;
    const [from, to] = this.range(block);
    const [begin, width] = [plus(from, offset), minus(to, from)];
    const zero = (w: Matrix): void => {
      r.for(0, width, (p) => r.each(column, columns, (j) => r.set(w.place(p, j), r.number(0))));
    };
    const into = (w: Matrix) => ({
      target: (p: Index, j: Index) => w.place(p, j),
      value: (p: Index, j: Index) => w.at(p, j),
    });
    zero(first);
    update(r, {
      ...{ rows: [0, width], columns: [column, columns], terms: [begin, length], adds: true, ...into(first) },
      left: (p, i) => rows.at(plus(from, p), i),
      right: (i, j) => a.at(i, j),
    });
    zero(second);
    r.for(0, width, (q) => {
      const terms: readonly [Ix, Ix] = transposed ? [0, plus(q, 1)] : [q, width];
      update(r, {
        ...{ rows: [q, plus(q, 1)], columns: [column, columns], terms, adds: true, ...into(second) },
        left: (_, p) => (transposed ? this.#t.at(plus(from, p), q) : this.#t.at(plus(from, q), p)),
        right: (p, j) => first.at(p, j),
      });
    });
    update(r, {
      ...{ rows: [begin, length], columns: [column, columns], terms: [0, width], ...into(a) },
      left: (i, q) => rows.at(plus(from, q), i),
      right: (q, j) => second.at(q, j),
    });
  }

  /** The product of all reflections, its first `columns` columns. */
  form(a: Matrix, columns: number): void {
    const r = this.#r;
    const { length } = this.#of;
    r.for(0, length, (i) => r.each(0, columns, (j) => r.set(a.place(i, j), isSame(r, i, j))));
    r.down(0, this.count, (block) => this.apply(block, a, [times(block, BLOCK), columns], false));
  }
}

/** 1 where two indices are equal, else 0. */
export function isSame(r: RoutineBuilder, i: Ix, j: Ix): Expr {
  const zero: Expr = r.number(0);
  const index = minus(i, j);
  return { kind: "guard", dtype: r.dtype, bounds: [{ index, lo: 0, hi: 1 }], then: r.number(1), otherwise: zero };
}
