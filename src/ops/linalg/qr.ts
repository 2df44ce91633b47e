/** @file The factors of matrices with at least as many rows as columns: orthogonal columns times an upper triangle. */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { NoAttrs, OpDef } from "../../ir/op.ts";
import { elementsOf, tensorType, typeText } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import { plus } from "../../kernel/routine-builder.ts";
import { partialSums, sumOf } from "../../kernel/routine-products.ts";
import { mul, sub } from "../../kernel/scalar-ops.ts";
import { requireOne } from "../checks.ts";
import { concat } from "../concat.ts";
import { apply, defineOp } from "../define.ts";
import * as elementwise from "../elementwise.ts";
import { samplesIn } from "../reference.ts";
import { partAlong } from "../slice.ts";
import { Blocks, reflect } from "./householder.ts";
import { type Rows, rowsFrom } from "./lu.ts";
import { matrixRoutine, type RoutineSite } from "./routine.ts";
import {
  batchOf,
  columnsOf,
  lowerPart,
  product,
  requireMatrix,
  rowsOf,
  symmetricOf,
  turn,
  upperPart,
} from "./rules.ts";
import { triangularSolve } from "./triangular.ts";

/** The result of a matrix of m rows: m rows of q, then those of r. */
export function qrParts(b: Build, y: Value, m: number): readonly [q: Value, r: Value] {
  const axis = y.type.shape.length - 2;
  const n = columnsOf(y.type);
  return [partAlong(b, y, axis, [0, m]), partAlong(b, y, axis, [m, n])];
}

/** Block by block: columns as rows of a tile become reflectors; what is right of the block is reflected by all of them. */
function factor({ r, out, read }: RoutineSite, m: number, n: number): void {
  const a = out;
  const upper = out.from(m, 0);
  r.for(0, m, (i) => r.each(0, n, (j) => r.set(a.place(i, j), read(0, i, j))));
  const of = { rows: r.matrix(n, m), count: n, length: m, tau: r.vector(n), offset: 0, parts: partialSums(r, 1) };
  const blocks = new Blocks(r, of, n);
  const first = r.single();
  r.for(0, blocks.count, (block) => {
    const [from, to] = blocks.range(block);
    r.for(0, m, (i) => r.each(from, to, (k) => r.set(of.rows.place(k, i), a.at(i, k))));
    r.for(from, to, (k) => {
      // of the triangle: what is above the diagonal, and behind the reflection the diagonal
      r.for(0, k, (i) => r.set(upper.place(i, k), of.rows.at(k, i)));
      reflect(r, of, k, first);
      r.set(upper.place(k, k), first.value);
      r.for(plus(k, 1), to, (s) => {
        const dot = sumOf(r, [k, m], of.parts, (i) => mul(of.rows.at(k, i), of.rows.at(s, i)));
        const by = r.named(mul(of.tau.at(k), dot.value));
        r.each(k, m, (i) => r.set(of.rows.place(s, i), sub(of.rows.at(s, i), mul(by, of.rows.at(k, i)))));
      });
    });
    blocks.join(block);
    blocks.apply(block, a, [to, n], true);
  });
  r.for(0, n, (i) => r.each(0, i, (j) => r.set(upper.place(i, j), r.number(0))));
  blocks.form(a, n);
}

/** x · r⁻¹. */
function divided(b: Build, x: Value, r: Value): Value {
  return turn(b, b.call(triangularSolve, [turn(b, x), r], { upper: true, transposed: true, unit: false }));
}

/** x · r⁻ᵀ. */
function dividedTurned(b: Build, x: Value, r: Value): Value {
  return turn(b, b.call(triangularSolve, [turn(b, x), r], { upper: true, transposed: false, unit: false }));
}

const stack = (b: Build, parts: readonly Value[]): Value =>
  b.call(concat, parts, { axis: at(parts, 0).type.shape.length - 2 });

/**
 * a = q · r, by reflections: the diagonal of r has the sign that LAPACK's has. The result is q [m, n] above r [n, n]. The rule keeps it, and
 * r must be regular. With o = qᵀ a' r⁻¹ and the antisymmetric matrix Ω that has its lower triangle:
 *
 *   q' = q (Ω - o) + a' r⁻¹,   r' = (o - Ω) r          ā = (q̄ + q · sym(r r̄ᵀ - q̄ᵀ q)) r⁻ᵀ
 */
export const qr: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "qr",
  batch: LEADING,
  infer(inputs) {
    const a = requireOne("qr", inputs);
    requireMatrix("qr", "a", a);
    const [m, n] = [rowsOf(a), columnsOf(a)];
    if (m >= n) return [tensorType(a.dtype, [...batchOf(a), m + n, n])];
    throw new TidemarkError("ShapeMismatch", `qr: ${typeText(a)} has more columns than rows`, {
      help: "factor its first columns, and multiply the others by the transpose of q",
    });
  },
  derivative: {
    kind: "general",
    jvp(b, { x: [a], y, tangents: [t] }) {
      if (!t) return null;
      const [q, r] = qrParts(b, y, rowsOf((a as Value).type));
      const right = divided(b, t, r);
      const o = product(b, q, right, { ta: true });
      const lower = lowerPart(b, o, 1);
      const rest = apply(b, elementwise.sub, apply(b, elementwise.sub, lower, turn(b, lower)), o);
      const dq = apply(b, elementwise.add, product(b, q, rest), right);
      return stack(b, [dq, upperPart(b, product(b, apply(b, elementwise.neg, rest), r))]);
    },
    vjp(b, { x: [a], y, ct }) {
      const m = rowsOf((a as Value).type);
      const [q, r] = qrParts(b, y, m);
      const [cq, cr] = qrParts(b, ct, m);
      const inner = apply(
        b,
        elementwise.sub,
        product(b, r, upperPart(b, cr), { tb: true }),
        product(b, cq, q, { ta: true }),
      );
      return dividedTurned(b, apply(b, elementwise.add, cq, product(b, q, symmetricOf(b, inner))), r);
    },
  },
  cost: ([a]) => ({ flops: a ? 4 * elementsOf(a.shape) * columnsOf(a) : 0 }),
  lower: matrixRoutine({
    copies: false,
    write: ({ inTypes }, site) => factor(site, rowsOf(at(inTypes, 0)), columnsOf(at(inTypes, 0))),
  }),
  evaluate({ inputs: [a = new Float64Array()], inTypes }) {
    const type = at(inTypes, 0);
    const [m, n] = [rowsOf(type), columnsOf(type)];
    const all = Array.from({ length: elementsOf(batchOf(type)) }, (_, batch) =>
      factored(rowsFrom(a, batch * m * n, m, n), n),
    );
    return [Float64Array.from(all.flat(2))];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 4, 3]], attrs: {} },
      { shapes: [[5, 0]], attrs: {} },
      { shapes: [[0, 3, 2]], attrs: {} },
      { shapes: [[37, 34]], attrs: {} },
    ]).map((sample) => ({ ...sample, range: [-1, 1], diagonal: 2 })),
});

/** In doubles, one reflection after the other. */
function factored(a: Rows, n: number): Rows {
  const m = a.length;
  const q = a.map((_, i) => a.map((_, j) => Number(i === j)));
  for (let k = 0; k < n; k++) {
    const v = a.map((row, i) => (i < k ? 0 : at(row, k)));
    const rest = v.reduce((s, x, i) => (i > k ? s + x * x : s), 0);
    if (rest === 0) continue;
    const alpha = at(v, k);
    const beta = (alpha < 0 ? 1 : -1) * Math.sqrt(alpha * alpha + rest);
    v[k] = alpha - beta;
    const by = 2 / v.reduce((s, x) => s + x * x, 0);
    for (let j = 0; j < n; j++) {
      const dot = by * v.reduce((s, x, i) => s + x * at(at(a, i), j), 0);
      for (let i = k; i < m; i++) at(a, i)[j] = at(at(a, i), j) - dot * at(v, i);
    }
    for (const row of q) {
      const dot = by * v.reduce((s, x, i) => s + x * at(row, i), 0);
      for (let i = k; i < m; i++) row[i] = at(row, i) - dot * at(v, i);
    }
  }
  const upper = Array.from({ length: n }, (_, i) => at(a, i).map((x, j) => (j < i ? 0 : x)));
  return [...q.map((row) => row.slice(0, n)), ...upper];
}
