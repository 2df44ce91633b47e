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
  type Single,
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
        const value = (s: number, j: Index): Expr => mul(a.at(plus(i, s), j), right.rows.at(inside, j));
        sums(r, { range: [next, n], parts, results: own, value });
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
export function diagonalizeBoth(r: RoutineBuilder, of: Bidiagonal, n: number, vectors: Vectors | null): void {
  new BothSides(r, of, n, vectors).run();
}

class BothSides {
  readonly #r: RoutineBuilder;
  readonly #d: Vector;
  readonly #e: Vector;
  readonly #n: number;
  readonly #vectors: Vectors | null;
  readonly #u: Turns;
  readonly #v: Turns;
  /** Numbers up to this count as zero. */
  readonly #limit: Expr;
  /** Where the part that is worked on begins. */
  readonly #l: Single;
  readonly #done: Single;
  readonly #going: Single;
  readonly #cancels: Single;
  readonly #c: Single;
  readonly #s: Single;

  constructor(r: RoutineBuilder, { d, e }: Bidiagonal, n: number, vectors: Vectors | null) {
    this.#r = r;
    this.#d = d;
    this.#e = e;
    this.#n = n;
    this.#vectors = vectors;
    this.#u = { cos: r.vector(n), sin: r.vector(n) };
    this.#v = { cos: r.vector(n), sin: r.vector(n) };
    this.#l = r.single("i32");
    this.#done = r.single("i32");
    this.#going = r.single("i32");
    this.#cancels = r.single("i32");
    this.#c = r.single();
    this.#s = r.single();
    const norm = r.single();
    r.let(norm, 0);
    r.for(0, n, (i) => r.let(norm, max(norm.value, add(abs(d.at(i)), abs(e.at(i))))));
    this.#limit = r.named(mul(norm.value, epsilonOf(r)));
  }

  get #start(): Index {
    return this.#r.index(this.#l, 0, this.#n - 1);
  }

  #isSmall(value: Expr): Expr {
    return le(abs(value), this.#limit);
  }

  run(): void {
    const [r, d, n, vectors] = [this.#r, this.#d, this.#n, this.#vectors];
    r.down(0, n, (k) => {
      r.let(this.#done, 0);
      r.while(eq(this.#done.value, 0), MOST, () => {
        this.#find(k);
        r.if(eq(this.#cancels.value, 1), () => this.#cancel(k));
        r.if(
          eq(this.#l.value, asExpr(k)),
          () => r.let(this.#done, 1),
          () => this.#sweep(k),
        );
      });
      r.if(lt(d.at(k), 0), () => {
        r.set(d.place(k), neg(d.at(k)));
        if (vectors) r.each(0, n, (j) => r.set(vectors.right.place(k, j), neg(vectors.right.at(k, j))));
      });
      r.if(eq(this.#done.value, 0), () => r.set(d.place(k), r.number(Number.NaN)));
    });
  }

  /** The part that ends at k begins behind a zero above the diagonal; or behind one on it, which cancels what is right of it. */
  #find(k: Index): void {
    const r = this.#r;
    r.let(this.#l, asExpr(k));
    r.let(this.#going, 1);
    r.let(this.#cancels, 0);
    r.while(eq(this.#going.value, 1), this.#n + 1, () => {
      r.if(
        or(eq(this.#l.value, 0), this.#isSmall(this.#e.at(this.#start))),
        () => r.let(this.#going, 0),
        () => {
          r.if(
            this.#isSmall(this.#d.at(r.fixed(greatest(minus(this.#start, 1), 0)))),
            () => {
              r.let(this.#going, 0);
              r.let(this.#cancels, 1);
            },
            () => r.let(this.#l, sub(this.#l.value, 1)),
          );
        },
      );
    });
  }

  /** What is right of a zero on the diagonal goes by rotations of its row with those below. */
  #cancel(k: Index): void {
    const [r, d, e, c, s] = [this.#r, this.#d, this.#e, this.#c, this.#s];
    const above = r.fixed(greatest(minus(this.#start, 1), 0));
    r.let(c, 0);
    r.let(s, 1);
    r.let(this.#going, 1);
    r.for(this.#start, plus(k, 1), (i) => {
      r.if(eq(this.#going.value, 1), () => {
        const f = r.named(mul(s.value, e.at(i)));
        r.set(e.place(i), mul(c.value, e.at(i)));
        r.if(
          this.#isSmall(f),
          () => r.let(this.#going, 0),
          () => {
            const g = r.named(d.at(i));
            const h = r.named(length(f, g));
            r.set(d.place(i), h);
            r.let(c, div(g, h));
            r.let(s, div(neg(f), h));
            if (this.#vectors) this.#turnLeft(this.#vectors, above, i);
          },
        );
      });
    });
  }

  #turnLeft({ left, leftLength }: Vectors, above: Index, i: Index): void {
    const [r, c, s] = [this.#r, this.#c.value, this.#s.value];
    r.each(0, leftLength, (j) =>
      r.setAll([
        [left.place(above, j), add(mul(left.at(above, j), c), mul(left.at(i, j), s))],
        [left.place(i, j), sub(mul(left.at(i, j), c), mul(left.at(above, j), s))],
      ]),
    );
  }

  /** What the first rotation of a sweep is of, from the eigenvalue of the last two rows that is nearer. */
  #shifted(k: Index): Expr {
    const [r, d, e] = [this.#r, this.#d, this.#e];
    const above = r.fixed(greatest(minus(k, 1), 0));
    const [x, y, z] = [r.named(d.at(this.#start)), r.named(d.at(above)), r.named(d.at(k))];
    const [g, h] = [r.named(e.at(above)), r.named(e.at(k))];
    const top = add(mul(sub(y, z), add(y, z)), mul(sub(g, h), add(g, h)));
    const f = r.named(div(top, mul(mul(h, y), 2)));
    const shift = sub(div(y, add(f, withSign(length(f, r.number(1)), f))), h);
    return r.named(div(add(mul(sub(x, z), add(x, z)), mul(h, shift)), x));
  }

  /** Rotations from both sides chase what is beside the two diagonals from the top to row k. */
  #sweep(k: Index): void {
    const [r, d, e, c, s] = [this.#r, this.#d, this.#e, this.#c, this.#s];
    const [x, f] = [r.single(), r.single()];
    r.let(f, this.#shifted(k));
    r.let(x, d.at(this.#start));
    r.let(c, 1);
    r.let(s, 1);
    r.for(this.#start, k, (j) => {
      const i = plus(j, 1);
      const h = r.named(mul(s.value, e.at(i)));
      const g = r.named(mul(c.value, e.at(i)));
      const first = r.named(length(f.value, h));
      r.set(e.place(j), first);
      r.let(c, div(f.value, first));
      r.let(s, div(h, first));
      r.let(f, add(mul(x.value, c.value), mul(g, s.value)));
      const across = r.named(sub(mul(g, c.value), mul(x.value, s.value)));
      const below = r.named(mul(d.at(i), s.value));
      const y = r.named(mul(d.at(i), c.value));
      keep(r, this.#v, j, [c.value, s.value]);
      const second = r.named(length(f.value, below));
      r.set(d.place(j), second);
      r.if(ne(second, 0), () => {
        r.let(c, div(f.value, second));
        r.let(s, div(below, second));
      });
      keep(r, this.#u, j, [c.value, s.value]);
      r.let(f, add(mul(c.value, across), mul(s.value, y)));
      r.let(x, sub(mul(c.value, y), mul(s.value, across)));
    });
    r.set(e.place(this.#start), r.number(0));
    r.set(e.place(k), f.value);
    r.set(d.place(k), x.value);
    if (!this.#vectors) return;
    const { left, leftLength, right } = this.#vectors;
    const range = [this.#start, k] as const;
    rotate(r, right, this.#n, { range, down: false, ...this.#v });
    rotate(r, left, leftLength, { range, down: false, ...this.#u });
  }
}

/** Rotations of a sweep, by row. */
interface Turns {
  readonly cos: Vector;
  readonly sin: Vector;
}

function keep(r: RoutineBuilder, { cos, sin }: Turns, j: Index, [c, s]: readonly [Expr, Expr]): void {
  r.set(cos.place(j), c);
  r.set(sin.place(j), s);
}
