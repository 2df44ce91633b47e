/** @file Systems of equations with a triangular matrix. */
import { TidemarkError } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { OpDef } from "../../ir/op.ts";
import { elementsOf, sameShape, type TensorType, typeText } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import type { Expr } from "../../kernel/expr.ts";
import { type Ix, least, type Matrix, minus, plus, type RoutineBuilder, times } from "../../kernel/routine-builder.ts";
import { update } from "../../kernel/routine-products.ts";
import { div } from "../../kernel/scalar-ops.ts";
import { requireInputs, requireSameDtype } from "../checks.ts";
import { apply, defineOp } from "../define.ts";
import { sub } from "../elementwise.ts";
import { samplesIn } from "../reference.ts";
import { matrixRoutine } from "./routine.ts";
import {
  batchOf,
  columnsOf,
  lowerPart,
  minus as negated,
  product,
  requireMatrix,
  requireSquare,
  rowsOf,
  upperPart,
} from "./rules.ts";

export type TriangularAttrs = {
  /** The upper triangle of the matrix is meant, not the lower. */
  readonly upper: boolean;
  /** The matrix is read transposed. */
  readonly transposed: boolean;
  /** Ones are meant on the diagonal. */
  readonly unit: boolean;
};

/** Both are matrices in the same batches, with as many rows. */
export function requireSystem(name: string, b: TensorType, a: TensorType): void {
  requireMatrix(name, "b", b);
  requireSameDtype(name, ["a", "b"], a, b);
  if (sameShape(batchOf(a), batchOf(b)) && rowsOf(a) === rowsOf(b)) return;
  throw new TidemarkError("ShapeMismatch", `${name}: a is ${typeText(a)}, b is ${typeText(b)}`, {
    help: "both need the same axes in front of the last two, and b as many rows as a",
  });
}

/** What is solved, by substitution. */
export interface Substitution {
  readonly r: RoutineBuilder;
  /** Rows and columns of the unknowns, which are in place of the right sides. */
  readonly extents: readonly [n: number, m: number];
  readonly x: Matrix;
  /** The triangle is above the diagonal: from the last row up. */
  readonly isUp: boolean;
  readonly unit: boolean;
  element(i: Ix, p: Ix): Expr;
}

/** Rows that are solved together, after all rows before them have been subtracted. */
const BLOCK = 32;

/** Row by row, each less the products of those that are known. */
export function substitute({ r, extents: [n, m], x, isUp, unit, element }: Substitution): void {
  const row = (i: Ix): Ix => (isUp ? minus(n - 1, i) : i);
  const reduced = (rows: readonly [Ix, Ix], terms: readonly [Ix, Ix]): void =>
    update(r, {
      ...{ rows, columns: [0, m], terms },
      target: (i, j) => x.place(row(i), j),
      value: (i, j) => x.at(row(i), j),
      left: (i, p) => element(row(i), row(p)),
      right: (p, j) => x.at(row(p), j),
    });
  r.for(0, Math.ceil(n / BLOCK), (block) => {
    const from = times(block, BLOCK);
    const to = r.fixed(least(plus(from, BLOCK), n));
    reduced([from, to], [0, from]);
    r.for(from, to, (i) => {
      reduced([i, plus(i, 1)], [from, i]);
      if (unit) return;
      const d = r.named(element(row(i), row(i)));
      r.each(0, m, (j) => r.set(x.place(row(i), j), div(x.at(row(i), j), d)));
    });
  });
}

/** The triangle that is read. */
function triangle(b: Build, x: Value, { upper, unit }: TriangularAttrs): Value {
  const above = unit ? 1 : 0;
  return upper ? upperPart(b, x, above) : lowerPart(b, x, above);
}

/**
 * x with a · x = b, a one triangle of a matrix; the other is not read. A zero on the diagonal gives infinities and NaN. Inputs: b, a.
 *
 *   x' = a⁻¹(b' - a' x)          b̄ = a⁻ᵀ x̄,   ā = -b̄ xᵀ          the rule keeps a and x
 */
export const triangularSolve: OpDef<TriangularAttrs> = defineOp<TriangularAttrs>({
  name: "triangular_solve",
  batch: LEADING,
  defaults: { upper: false, transposed: false, unit: false },
  infer(inputs) {
    requireInputs("triangular_solve", ["b", "a"], inputs);
    const [b, a] = [at(inputs, 0), at(inputs, 1)];
    requireSquare("triangular_solve", "a", a);
    requireSystem("triangular_solve", b, a);
    return [b];
  },
  derivative: {
    kind: "general",
    jvp(b, { x: [, a], y, tangents: [tb, ta], attrs }) {
      const part = ta ? product(b, triangle(b, ta, attrs), y, { ta: attrs.transposed }) : null;
      const right = tb && part ? apply(b, sub, tb, part) : (tb ?? (part && negated(b, part)));
      return right && b.call(triangularSolve, [right, a as Value], attrs);
    },
    vjp(b, { x: [, a], y, ct, input, attrs }) {
      const back = b.call(triangularSolve, [ct, a as Value], { ...attrs, transposed: !attrs.transposed });
      if (input === 0) return back;
      const outer = attrs.transposed ? product(b, y, back, { tb: true }) : product(b, back, y, { tb: true });
      return negated(b, triangle(b, outer, attrs));
    },
  },
  cost: ([b]) => ({ flops: b ? elementsOf(b.shape) * (rowsOf(b) + 1) : 0 }),
  lower: matrixRoutine({
    copies: true,
    write: ({ outType, attrs: { upper, transposed, unit } }, { r, out, read }) =>
      substitute({
        ...{ r, extents: [rowsOf(outType), columnsOf(outType)], x: out, isUp: upper !== transposed, unit },
        element: (i, p) => (transposed ? read(1, p, i) : read(1, i, p)),
      }),
  }),
  evaluate({ inputs: [b = new Float64Array(), a = new Float64Array()], inTypes, attrs: { upper, transposed, unit } }) {
    const [n, m] = [rowsOf(at(inTypes, 0)), columnsOf(at(inTypes, 0))];
    const x = Float64Array.from(b);
    for (let batch = 0; batch < elementsOf(batchOf(at(inTypes, 0))); batch++) {
      const [from, to] = [batch * n * n, batch * n * m];
      const element = (i: number, p: number): number => at(a, from + (transposed ? p * n + i : i * n + p));
      const isUp = upper !== transposed;
      for (let step = 0; step < n; step++) {
        const i = isUp ? n - 1 - step : step;
        for (let j = 0; j < m; j++) {
          let sum = at(x, to + i * m + j);
          for (let s = 0; s < step; s++) {
            const p = isUp ? n - 1 - s : s;
            sum -= element(i, p) * at(x, to + p * m + j);
          }
          x[to + i * m + j] = unit ? sum : sum / element(i, i);
        }
      }
    }
    return [x];
  },
  samples: () => {
    const small = [
      { upper: false, transposed: false, unit: true },
      { upper: true, transposed: false, unit: false },
      { upper: false, transposed: true, unit: false },
      { upper: true, transposed: true, unit: true },
    ].map((own) => ({
      shapes: [
        [2, 4, 3],
        [2, 4, 4],
      ],
      attrs: own,
    }));
    const attrs = { upper: false, transposed: false, unit: false };
    const cases = [
      ...small,
      {
        shapes: [
          [37, 5],
          [37, 37],
        ],
        attrs,
      },
      {
        shapes: [
          [3, 1],
          [3, 3],
        ],
        attrs,
      },
      {
        shapes: [
          [0, 2],
          [0, 0],
        ],
        attrs,
      },
      {
        shapes: [
          [2, 0],
          [2, 2],
        ],
        attrs,
      },
    ];
    return samplesIn(FLOAT_TYPES, cases).map((sample) => ({ ...sample, range: [-0.5, 0.5], diagonal: [0, 2] }));
  },
});
