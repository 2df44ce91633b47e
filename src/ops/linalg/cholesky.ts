/** @file The Cholesky factor of symmetric positive definite matrices. */
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { NoAttrs, OpDef } from "../../ir/op.ts";
import { elementsOf } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import type { Index } from "../../kernel/expr.ts";
import { least, minus, plus, times } from "../../kernel/routine-builder.ts";
import { update } from "../../kernel/routine-products.ts";
import { div, sqrt } from "../../kernel/scalar-ops.ts";
import { requireOne } from "../checks.ts";
import { defineOp } from "../define.ts";
import { samplesIn } from "../reference.ts";
import { matrixRoutine, type RoutineSite } from "./routine.ts";
import { batchOf, halfLower, ontoLower, product, requireSquare, rowsOf, symmetricOf, turn } from "./rules.ts";
import { triangularSolve } from "./triangular.ts";

/** Rows up to which loops over them are written out: there is little work in each iteration. */
const UNROLLED = 16;
/** Columns that are factored together. */
const PANEL = 32;

/**
 * Panel by panel: its columns lie as rows of a tile, are reduced by those before them in the panel, and then all that is to the
 * right of it is reduced by the panel.
 */
function factor({ r, out }: RoutineSite, n: number): void {
  if (n <= UNROLLED) r.unrolls = n;
  const panel = r.matrix(Math.min(n, PANEL), n + 8);
  const d = r.single();
  r.for(0, Math.ceil(n / PANEL), (block) => {
    const from = times(block, PANEL);
    const to = r.fixed(least(plus(from, PANEL), n));
    const width = minus(to, from);
    r.for(0, width, (p) => {
      r.each(plus(from, p), n, (i) => r.set(panel.place(p, i), out.at(i, plus(from, p))));
    });
    r.for(0, width, (q) => {
      const column = plus(from, q);
      update(r, {
        ...{ rows: [q, plus(q, 1)], columns: [column, n], terms: [0, q] },
        target: (i, j) => panel.place(i, j),
        value: (i, j) => panel.at(i, j),
        left: (_, p) => panel.at(p, column),
        right: (p, j) => panel.at(p, j),
      });
      r.let(d, sqrt(panel.at(q, column)));
      r.each(column, n, (i) => r.set(panel.place(q, i), div(panel.at(q, i), d.value)));
      r.set(panel.place(q, column), d.value);
    });
    r.for(from, n, (i) => {
      r.each(0, least(width, plus(minus(i, from), 1)), (p) => r.set(out.place(i, plus(from, p)), panel.at(p, i)));
    });
    update(r, {
      ...{ rows: [to, n], columns: [to, n], terms: [0, width] },
      target: (i, j) => out.place(i, j),
      value: (i, j) => out.at(i, j),
      left: (i, p) => panel.at(p, i),
      right: (p, j) => panel.at(p, j),
      until: (last) => plus(last, 1),
    });
  });
  r.for(0, n, (i: Index) => r.each(plus(i, 1), n, (j) => r.set(out.place(i, j), r.number(0))));
}

const solve = (b: Build, l: Value, x: Value, transposed: boolean): Value =>
  b.call(triangularSolve, [x, l], { upper: false, transposed, unit: false });

/** L⁻¹ x L⁻ᵀ. */
function both(b: Build, l: Value, x: Value): Value {
  return turn(b, solve(b, l, turn(b, solve(b, l, x, false)), false));
}

/**
 * a = l · lᵀ, l lower triangular with a positive diagonal, from the lower triangle of a; NaN from the first column on at which a is
 * not positive definite. The rule keeps l alone (I. Murray, "Differentiation of the Cholesky decomposition", 2016):
 *
 *   l' = l · Φ(l⁻¹ a' l⁻ᵀ)          ā = l⁻ᵀ Φ(lᵀ l̄) l⁻¹, made symmetric          Φ: the lower triangle, half of its diagonal
 */
export const cholesky: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "cholesky",
  batch: LEADING,
  infer(inputs) {
    const a = requireOne("cholesky", inputs);
    requireSquare("cholesky", "a", a);
    return [a];
  },
  derivative: {
    kind: "general",
    jvp(b, { y, tangents: [t] }) {
      return t ? product(b, y, halfLower(b, both(b, y, symmetricOf(b, t)))) : null;
    },
    vjp(b, { y, ct }) {
      const inner = halfLower(b, product(b, y, ct, { ta: true }));
      const left = solve(b, y, inner, true);
      const s = turn(b, solve(b, y, turn(b, left), true));
      return ontoLower(b, s);
    },
  },
  cost: ([a]) => ({ flops: a ? (elementsOf(batchOf(a)) * rowsOf(a) ** 3) / 3 + elementsOf(a.shape) : 0 }),
  lower: matrixRoutine({ copies: true, write: ({ outType }, site) => factor(site, rowsOf(outType)) }),
  evaluate({ inputs: [a = new Float64Array()], inTypes }) {
    const n = rowsOf(at(inTypes, 0));
    const l = new Float64Array(a.length);
    for (let start = 0; start < a.length; start += n * n) {
      for (let i = 0; i < n; i++) {
        for (let j = 0; j <= i; j++) {
          let sum = at(a, start + i * n + j);
          for (let k = 0; k < j; k++) sum -= at(l, start + i * n + k) * at(l, start + j * n + k);
          l[start + i * n + j] = i === j ? Math.sqrt(sum) : sum / at(l, start + j * n + j);
        }
      }
    }
    return [l];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 6, 6]], attrs: {} },
      { shapes: [[1, 1]], attrs: {} },
      { shapes: [[0, 2, 2]], attrs: {} },
      { shapes: [[2, 0, 0]], attrs: {} },
      { shapes: [[41, 41]], attrs: {} },
    ]).map((sample) => ({ ...sample, range: [-1, 1], diagonal: 2 * rowsOf(at(sample.inputs, 0)) })),
});
