/** @file Eigenvalues and eigenvectors of symmetric matrices. */
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { OpDef } from "../../ir/op.ts";
import { elementsOf, tensorType } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import { greatest, least } from "../../kernel/routine-builder.ts";
import { mul } from "../../kernel/scalar-ops.ts";
import { sum } from "../broadcast.ts";
import { requireOne } from "../checks.ts";
import { concat } from "../concat.ts";
import { apply, defineOp } from "../define.ts";
import * as elementwise from "../elementwise.ts";
import { reshape } from "../movement.ts";
import { samplesIn } from "../reference.ts";
import { partAlong } from "../slice.ts";
import { type Rows, rowsFrom } from "./lu.ts";
import { numberAt, ordered, signOfLargest } from "./rotations.ts";
import { matrixRoutine, type RoutineSite } from "./routine.ts";
import {
  batchOf,
  diagonalOf,
  differences,
  onDiagonal,
  ontoLower,
  product,
  requireSquare,
  rowsOf,
  symmetricOf,
} from "./rules.ts";
import { diagonalize, formRows, tridiagonalize } from "./tridiagonal.ts";

export type EighAttrs = {
  /** Eigenvectors too. */
  readonly vectors: boolean;
};

/** The result: a row of eigenvalues above eigenvectors in columns. */
export function eighParts(b: Build, y: Value): readonly [values: Value, vectors: Value] {
  const axis = y.type.shape.length - 2;
  const n = at(y.type.shape, axis + 1);
  const row = partAlong(b, y, axis, [0, 1]);
  return [b.call(reshape, [row], { shape: [...batchOf(y.type), n] }), partAlong(b, y, axis, [1, n])];
}

function decompose({ r, out, read }: RoutineSite, n: number, vectors: boolean): void {
  const a = r.matrix(n, n);
  // from the lower triangle
  r.for(0, n, (i) => r.for(0, n, (j) => r.set(a.place(i, j), read(0, greatest(i, j), least(i, j)))));
  const tridiagonal = tridiagonalize(r, a, n);
  const z = vectors ? r.matrix(n, n) : null;
  if (z) formRows(r, tridiagonal.reflectors, { to: z, work: a }, [n, n]);
  diagonalize(r, tridiagonal, n, z);
  const order = ordered(r, tridiagonal.d, n, false);
  r.for(0, n, (j) => {
    const row = r.fixed(numberAt(order, j, n));
    r.set(out.place(0, j), tridiagonal.d.at(row));
    if (!z) return;
    const sign = signOfLargest(r, z, row, n);
    r.each(0, n, (i) => r.set(out.from(1, 0).place(i, j), mul(sign, z.at(row, i))));
  });
}

const withVectors = (b: Build, x: Value): Value => b.call(eigh, [x], { vectors: true });

/**
 * Eigenvalues in ascending order, and with `vectors` unit eigenvectors as columns below them, from the lower triangle; of each
 * eigenvector the first of its largest elements is positive. The rule keeps both. Eigenvectors of equal eigenvalues have no derivative:
 *
 *   w' = diag(vᵀ a' v),   v' = v (F ∘ vᵀ a' v)          ā = v (diag(w̄) + F ∘ vᵀ v̄) vᵀ          F_ij = 1 / (w_j - w_i), 0 for i = j
 */
export const eigh: OpDef<EighAttrs> = defineOp<EighAttrs>({
  name: "eigh",
  batch: LEADING,
  defaults: { vectors: true },
  infer(inputs, { vectors }) {
    const a = requireOne("eigh", inputs);
    requireSquare("eigh", "a", a);
    const n = rowsOf(a);
    return [tensorType(a.dtype, [...batchOf(a), vectors ? n + 1 : 1, n])];
  },
  derivative: {
    kind: "general",
    jvp(b, { x: [a], y, tangents: [t], attrs: { vectors } }) {
      if (!t) return null;
      const [w, v] = eighParts(b, vectors ? y : withVectors(b, a as Value));
      const n = rowsOf(t.type);
      const inner = product(b, product(b, v, symmetricOf(b, t), { ta: true }), v);
      const rank = inner.type.shape.length;
      const values = b.call(sum, [onDiagonal(b, inner)], { axes: [rank - 2] });
      const row = b.call(reshape, [values], { shape: [...batchOf(t.type), 1, n] });
      if (!vectors) return row;
      const turned = product(b, v, apply(b, elementwise.mul, differences(b, w), inner));
      return b.call(concat, [row, turned], { axis: rank - 2 });
    },
    vjp(b, { x: [a], y, ct, attrs: { vectors } }) {
      const [w, v] = eighParts(b, vectors ? y : withVectors(b, a as Value));
      const n = rowsOf(v.type);
      const row = partAlong(b, ct, ct.type.shape.length - 2, [0, 1]);
      const own = diagonalOf(b, row, n);
      if (!vectors) return ontoLower(b, product(b, product(b, v, own), v, { tb: true }));
      const inner = product(b, v, partAlong(b, ct, ct.type.shape.length - 2, [1, n]), { ta: true });
      const all = apply(b, elementwise.add, own, apply(b, elementwise.mul, differences(b, w), inner));
      return ontoLower(b, product(b, product(b, v, all), v, { tb: true }));
    },
  },
  cost: ([a], _, { vectors }) => ({ flops: a ? (vectors ? 9 : 4 / 3) * elementsOf(a.shape) * rowsOf(a) : 0 }),
  lower: matrixRoutine({
    copies: false,
    write: ({ inTypes, attrs: { vectors } }, site) => decompose(site, rowsOf(at(inTypes, 0)), vectors),
  }),
  evaluate({ inputs: [a = new Float64Array()], inTypes, attrs: { vectors } }) {
    const type = at(inTypes, 0);
    const n = rowsOf(type);
    const all = Array.from({ length: elementsOf(batchOf(type)) }, (_, batch) => {
      const rows = rowsFrom(a, batch * n * n, n, n);
      return decomposed(rows.map((row, i) => row.map((x, j) => (j > i ? at(at(rows, j), i) : x)))).slice(
        0,
        vectors ? n + 1 : 1,
      );
    });
    return [Float64Array.from(all.flat(2))];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 4, 4]], attrs: { vectors: true } },
      { shapes: [[5, 5]], attrs: { vectors: false } },
      { shapes: [[0, 0]], attrs: { vectors: true } },
      { shapes: [[0, 2, 2]], attrs: { vectors: true } },
    ]).map((sample) => ({ ...sample, range: [-2, 2] })),
});

/** In doubles: rotations of two rows and columns until nothing is left beside the diagonal (Jacobi). */
function decomposed(a: Rows): Rows {
  const n = a.length;
  const v = a.map((_, i) => a.map((_, j) => Number(i === j)));
  const turn = (rows: Rows, [p, q]: readonly [number, number], [c, s]: readonly [number, number]): void => {
    for (const row of rows) {
      const [x, y] = [at(row, p), at(row, q)];
      row[p] = c * x - s * y;
      row[q] = s * x + c * y;
    }
  };
  const flipped = (rows: Rows): Rows => rows.map((_, i) => rows.map((row) => at(row, i)));
  let rows = a;
  for (let sweep = 0; sweep < 30; sweep++) {
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        const beside = at(at(rows, p), q);
        if (Math.abs(beside) < 1e-300) continue;
        const theta = (at(at(rows, q), q) - at(at(rows, p), p)) / (2 * beside);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1));
        const c = 1 / Math.hypot(t, 1);
        turn(rows, [p, q], [c, t * c]);
        rows = flipped(rows);
        turn(rows, [p, q], [c, t * c]);
        rows = flipped(rows);
        turn(v, [p, q], [c, t * c]);
      }
    }
  }
  const order = rows.map((row, i) => ({ i, w: at(row, i) })).sort((x, y) => x.w - y.w);
  const columns = order.map(({ i }) => {
    const column = v.map((row) => at(row, i));
    const largest = column.reduce((best, x) => (Math.abs(x) > Math.abs(best) ? x : best), 0);
    return largest < 0 ? column.map((x) => -x) : column;
  });
  return [order.map(({ w }) => w), ...columns.map((_, i) => columns.map((column) => at(column, i)))];
}
