/** @file Singular values and vectors of matrices with at least as many rows as columns. */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { OpDef } from "../../ir/op.ts";
import { elementsOf, tensorType, typeText } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import type { Vector } from "../../kernel/routine-builder.ts";
import { mul } from "../../kernel/scalar-ops.ts";
import { sum } from "../broadcast.ts";
import { requireOne } from "../checks.ts";
import { concat } from "../concat.ts";
import { apply, defineOp } from "../define.ts";
import * as elementwise from "../elementwise.ts";
import { reshape } from "../movement.ts";
import { samplesIn } from "../reference.ts";
import { partAlong } from "../slice.ts";
import { bidiagonalize, diagonalizeBoth, type Vectors } from "./bidiagonal.ts";
import { type Rows, rowsFrom } from "./lu.ts";
import { numberAt, ordered, signOfLargest } from "./rotations.ts";
import { matrixRoutine, type RoutineSite } from "./routine.ts";
import {
  batchOf,
  columnsOf,
  diagonalOf,
  differences,
  onDiagonal,
  product,
  requireMatrix,
  rowsOf,
  spread,
  turn,
} from "./rules.ts";
import { formRows } from "./tridiagonal.ts";

export type SvdAttrs = {
  /** Singular vectors too. */
  readonly vectors: boolean;
};

/** The result of a matrix of m rows: singular values [..., n], left vectors in columns [..., m, n], right ones in rows [..., n, n]. */
export function svdParts(b: Build, y: Value, m: number): readonly [s: Value, u: Value, vh: Value] {
  const axis = y.type.shape.length - 2;
  const n = at(y.type.shape, axis + 1);
  const row = partAlong(b, y, axis, [0, 1]);
  return [
    b.call(reshape, [row], { shape: [...batchOf(y.type), n] }),
    partAlong(b, y, axis, [1, m]),
    partAlong(b, y, axis, [1 + m, n]),
  ];
}

/** Singular values, not in order, and vectors as rows. */
export function singular(
  { r, read }: RoutineSite,
  [m, n]: readonly [number, number],
  isWhole: boolean,
): { readonly values: Vector; readonly vectors: Vectors | null } {
  const a = r.matrix(m, n);
  r.for(0, m, (i) => r.each(0, n, (j) => r.set(a.place(i, j), read(0, i, j))));
  const bidiagonal = bidiagonalize(r, a, m, n);
  const vectors = isWhole ? { left: r.matrix(n, m), leftLength: m, right: r.matrix(n, n) } : null;
  if (vectors) {
    formRows(r, bidiagonal.left, { to: vectors.left, work: a }, [m, n]);
    formRows(r, bidiagonal.right, { to: vectors.right, work: a }, [n, n]);
  }
  diagonalizeBoth(r, bidiagonal, n, vectors);
  return { values: bidiagonal.d, vectors };
}

function decompose(site: RoutineSite, [m, n]: readonly [number, number], isWhole: boolean): void {
  const { r, out } = site;
  const { values, vectors } = singular(site, [m, n], isWhole);
  const order = ordered(r, values, n, true);
  r.for(0, n, (j) => {
    const row = r.fixed(numberAt(order, j, n));
    r.set(out.place(0, j), values.at(row));
    if (!vectors) return;
    const sign = signOfLargest(r, vectors.left, row, m);
    r.each(0, m, (i) => r.set(out.from(1, 0).place(i, j), mul(sign, vectors.left.at(row, i))));
    r.each(0, n, (i) => r.set(out.from(1 + m, 0).place(j, i), mul(sign, vectors.right.at(row, i))));
  });
}

const whole = (b: Build, x: Value): Value => b.call(svd, [x], { vectors: true });

/** 1 / (s_j² - s_i²), 0 on the diagonal. */
const gaps = (b: Build, s: Value): Value => differences(b, apply(b, elementwise.square, s));

/** x with its columns multiplied by s; or its rows. */
const byColumns = (b: Build, x: Value, s: Value): Value =>
  apply(b, elementwise.mul, x, spread(b, s, [rowsOf(x.type), columnsOf(x.type)]));
const byRows = (b: Build, x: Value, s: Value): Value =>
  apply(b, elementwise.mul, x, spread(b, s, [rowsOf(x.type), columnsOf(x.type)], true));

const plus = (b: Build, x: Value, y: Value): Value => apply(b, elementwise.add, x, y);
const less = (b: Build, x: Value, y: Value): Value => apply(b, elementwise.sub, x, y);

/** x less what of it is in the space of the columns of u, divided by s. */
function outside(b: Build, u: Value, x: Value, s: Value): Value {
  const rest = less(b, x, product(b, u, product(b, u, x, { ta: true })));
  return apply(b, elementwise.div, rest, spread(b, s, [rowsOf(x.type), columnsOf(x.type)]));
}

/**
 * a = u · diag(s) · vᵀ: singular values in descending order, and with `vectors` below them u in columns and v in rows; of each left vector
 * the first of its largest elements is positive. The rule keeps all of it. Vectors of equal singular values, and of zero, have no
 * derivative. With p = uᵀ a' v and F_ij = 1 / (s_j² - s_i²), 0 for i = j:
 *
 *   s' = diag(p),   u' = u (F ∘ (p s + s pᵀ)) + (1 - u uᵀ) a' v / s,   v' = v (F ∘ (s p + pᵀ s))
 *   ā = (u (F ∘ (uᵀ ū - ūᵀ u)) s + (1 - u uᵀ) ū / s + u s (F ∘ (vᵀ v̄ - v̄ᵀ v)) + u diag(s̄)) vᵀ
 */
export const svd: OpDef<SvdAttrs> = defineOp<SvdAttrs>({
  name: "svd",
  batch: LEADING,
  defaults: { vectors: true },
  infer(inputs, { vectors }) {
    const a = requireOne("svd", inputs);
    requireMatrix("svd", "a", a);
    const [m, n] = [rowsOf(a), columnsOf(a)];
    if (m >= n) return [tensorType(a.dtype, [...batchOf(a), vectors ? 1 + m + n : 1, n])];
    throw new TidemarkError("ShapeMismatch", `svd: ${typeText(a)} has more columns than rows`, {
      help: "decompose its transpose, and exchange the two sides",
    });
  },
  derivative: {
    kind: "general",
    jvp(b, { x: [a], y, tangents: [t], attrs: { vectors } }) {
      if (!t) return null;
      const [m, n] = [rowsOf(t.type), columnsOf(t.type)];
      const axis = t.type.shape.length - 2;
      const [s, u, vh] = svdParts(b, vectors ? y : whole(b, a as Value), m);
      const right = product(b, t, vh, { tb: true });
      const p = product(b, u, right, { ta: true });
      const values = b.call(sum, [onDiagonal(b, p)], { axes: [axis] });
      const row = b.call(reshape, [values], { shape: [...batchOf(t.type), 1, n] });
      if (!vectors) return row;
      const f = gaps(b, s);
      const inU = apply(b, elementwise.mul, f, plus(b, byColumns(b, p, s), byRows(b, turn(b, p), s)));
      const inV = apply(b, elementwise.mul, f, plus(b, byRows(b, p, s), byColumns(b, turn(b, p), s)));
      const du = plus(b, product(b, u, inU), outside(b, u, right, s));
      return b.call(concat, [row, du, product(b, inV, vh, { ta: true })], { axis });
    },
    vjp(b, { x: [a], y, ct, attrs: { vectors } }) {
      const m = rowsOf((a as Value).type);
      const n = columnsOf((a as Value).type);
      const [s, u, vh] = svdParts(b, vectors ? y : whole(b, a as Value), m);
      const own = diagonalOf(b, partAlong(b, ct, ct.type.shape.length - 2, [0, 1]), n);
      if (!vectors) return product(b, product(b, u, own), vh);
      const [, cu, cv] = svdParts(b, ct, m);
      const f = gaps(b, s);
      const gu = product(b, u, cu, { ta: true });
      const gv = product(b, vh, cv, { tb: true });
      const inU = byColumns(b, apply(b, elementwise.mul, f, less(b, gu, turn(b, gu))), s);
      const inV = byRows(b, apply(b, elementwise.mul, f, less(b, gv, turn(b, gv))), s);
      const inside = product(b, u, plus(b, plus(b, inU, inV), own));
      return product(b, plus(b, inside, outside(b, u, cu, s)), vh);
    },
  },
  cost: ([a], _, { vectors }) => {
    const each = a ? elementsOf(a.shape) * columnsOf(a) : 0;
    return { flops: (vectors ? 18 : 8 / 3) * each };
  },
  lower: matrixRoutine({
    copies: false,
    write: ({ inTypes: [a], attrs: { vectors } }, site) => {
      if (a) decompose(site, [rowsOf(a), columnsOf(a)], vectors);
    },
  }),
  evaluate({ inputs: [a = new Float64Array()], inTypes, attrs: { vectors } }) {
    const type = at(inTypes, 0);
    const [m, n] = [rowsOf(type), columnsOf(type)];
    const all = Array.from({ length: elementsOf(batchOf(type)) }, (_, batch) =>
      decomposed(rowsFrom(a, batch * m * n, m, n), n).slice(0, vectors ? 1 + m + n : 1),
    );
    return [Float64Array.from(all.flat(2))];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 4, 3]], attrs: { vectors: true } },
      { shapes: [[5, 4]], attrs: { vectors: false } },
      { shapes: [[3, 0]], attrs: { vectors: true } },
      { shapes: [[0, 2, 2]], attrs: { vectors: true } },
    ]).map((sample) => ({ ...sample, range: [-2, 2] })),
});

/** In doubles: columns are rotated, two by two, until all are at right angles to each other (Hestenes). */
export function decomposed(a: Rows, n: number): Rows {
  const v = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => Number(i === j)));
  const dot = (p: number, q: number): number => a.reduce((s, row) => s + at(row, p) * at(row, q), 0);
  for (let sweep = 0; sweep < 40; sweep++) {
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        const beside = dot(p, q);
        if (Math.abs(beside) < 1e-300) continue;
        const theta = (dot(q, q) - dot(p, p)) / (2 * beside);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1));
        const c = 1 / Math.hypot(t, 1);
        for (const row of [...a, ...v]) {
          const [x, y] = [at(row, p), at(row, q)];
          row[p] = c * (x - t * y);
          row[q] = c * (t * x + y);
        }
      }
    }
  }
  const order = Array.from({ length: n }, (_, i) => ({ i, s: Math.sqrt(dot(i, i)) })).sort((x, y) => y.s - x.s);
  const all = order.map(({ i, s }) => {
    const column = a.map((row) => at(row, i) / s);
    const largest = column.reduce((best, x) => (Math.abs(x) > Math.abs(best) ? x : best), 0);
    const sign = largest < 0 ? -1 : 1;
    return { u: column.map((x) => sign * x), v: v.map((row) => sign * at(row, i)) };
  });
  const left = a.map((_, i) => all.map(({ u }) => at(u, i)));
  return [order.map(({ s }) => s), ...left, ...all.map((column) => column.v)];
}
