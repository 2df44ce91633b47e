/** @file The pseudo-inverse of matrices with at least as many rows as columns. */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { OpDef } from "../../ir/op.ts";
import { elementsOf, tensorType, typeText } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import { update } from "../../kernel/routine-products.ts";
import { div, lt, max, mul, pick } from "../../kernel/scalar-ops.ts";
import { requireOne } from "../checks.ts";
import { apply, defineOp } from "../define.ts";
import * as elementwise from "../elementwise.ts";
import { samplesIn } from "../reference.ts";
import { rowsFrom } from "./lu.ts";
import { matrixRoutine, type RoutineSite } from "./routine.ts";
import { batchOf, columnsOf, minus, product, requireMatrix, rowsOf } from "./rules.ts";
import { decomposed, singular } from "./svd.ts";

export type PinvAttrs = {
  /** Singular values up to this part of the largest count as zero. */
  readonly rtol: number;
};

function invert(site: RoutineSite, [m, n]: readonly [number, number], rtol: number): void {
  const { r, out } = site;
  const { values, vectors } = singular(site, [m, n], true);
  const largest = r.single();
  r.let(largest, 0);
  r.for(0, n, (k) => r.let(largest, max(largest.value, values.at(k))));
  if (!vectors) return;
  const { left, right } = vectors;
  r.for(0, n, (k) => {
    const value = r.named(values.at(k));
    // not where there is NaN, which stays
    const isZero = lt(value, mul(largest.value, rtol));
    const by = r.named(pick(isZero, 0, pick(lt(0, value), div(1, value), value)));
    r.each(0, m, (j) => r.set(left.place(k, j), mul(by, left.at(k, j))));
  });
  r.for(0, n, (i) => r.each(0, m, (j) => r.set(out.place(i, j), r.number(0))));
  update(r, {
    ...{ rows: [0, n], columns: [0, m], terms: [0, n], adds: true },
    target: (i, j) => out.place(i, j),
    value: (i, j) => out.at(i, j),
    left: (i, k) => right.at(k, i),
    right: (k, j) => left.at(k, j),
  });
}

const plus = (b: Build, x: Value, y: Value): Value => apply(b, elementwise.add, x, y);
const less = (b: Build, x: Value, y: Value): Value => apply(b, elementwise.sub, x, y);

/**
 * p = a⁺ from singular values, those up to rtol · the largest left out. The rule keeps a and p, and holds where the rank does not change
 * (G. H. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems", 1973):
 *
 *   p' = -p a' p + p pᵀ a'ᵀ (1 - a p) + (1 - p a) a'ᵀ pᵀ p
 */
export const pinv: OpDef<PinvAttrs> = defineOp<PinvAttrs>({
  name: "pinv",
  batch: LEADING,
  infer(inputs, { rtol }) {
    const a = requireOne("pinv", inputs);
    requireMatrix("pinv", "a", a);
    const [m, n] = [rowsOf(a), columnsOf(a)];
    if (typeof rtol !== "number" || !(rtol >= 0)) {
      throw new TidemarkError("InvalidArgument", `pinv: rtol is ${String(rtol)}`, {
        help: "give a number of at least 0",
      });
    }
    if (m >= n) return [tensorType(a.dtype, [...batchOf(a), n, m])];
    throw new TidemarkError("ShapeMismatch", `pinv: ${typeText(a)} has more columns than rows`, {
      help: "the pseudo-inverse of the transpose is that of the matrix, transposed",
    });
  },
  derivative: {
    kind: "general",
    jvp(b, { x: [a], y: p, tangents: [t] }) {
      if (!t) return null;
      const first = minus(b, product(b, product(b, p, t), p));
      const pp = product(b, p, p, { tb: true });
      const left = product(b, pp, t, { tb: true });
      const second = less(b, left, product(b, product(b, left, a as Value), p));
      const right = product(b, product(b, t, p, { ta: true, tb: true }), p);
      const third = less(b, right, product(b, p, product(b, a as Value, right)));
      return plus(b, plus(b, first, second), third);
    },
    vjp(b, { x: [a], y: p, ct }) {
      const x = a as Value;
      const first = minus(b, product(b, product(b, p, ct, { ta: true }), p, { tb: true }));
      const left = product(b, product(b, ct, p, { ta: true }), p, { tb: true });
      const second = less(b, left, product(b, x, product(b, p, left)));
      const pp = product(b, p, p, { ta: true });
      const right = product(b, pp, ct, { tb: true });
      const third = less(b, right, product(b, product(b, right, p), x));
      return plus(b, plus(b, first, second), third);
    },
  },
  cost: ([a]) => ({ flops: a ? 20 * elementsOf(a.shape) * columnsOf(a) : 0 }),
  lower: matrixRoutine({
    copies: false,
    write: ({ inTypes: [a], attrs: { rtol } }, site) => {
      if (a) invert(site, [rowsOf(a), columnsOf(a)], rtol);
    },
  }),
  evaluate({ inputs: [a = new Float64Array()], inTypes, attrs: { rtol } }) {
    const type = at(inTypes, 0);
    const [m, n] = [rowsOf(type), columnsOf(type)];
    const all = Array.from({ length: elementsOf(batchOf(type)) }, (_, batch) => {
      const [s = [], ...rest] = decomposed(rowsFrom(a, batch * m * n, m, n), n);
      const [u, v] = [rest.slice(0, m), rest.slice(m)];
      const factors = s.map((value) => (value < rtol * Math.max(...s) || value === 0 ? 0 : 1 / value));
      return Array.from({ length: n }, (_, i) =>
        u.map((row) => factors.reduce((sum, f, k) => sum + (f === 0 ? 0 : at(at(v, k), i) * f * at(row, k)), 0)),
      );
    });
    return [Float64Array.from(all.flat(2))];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 4, 3]], attrs: { rtol: 1e-7 } },
      { shapes: [[3, 0]], attrs: { rtol: 0 } },
    ]).map((sample) => ({ ...sample, range: [-1, 1], diagonal: 1.5 })),
});
