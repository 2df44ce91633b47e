/** @file Systems of equations, inverses and determinants of square matrices, by elimination with exchanges of rows. */
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { NoAttrs, OpDef } from "../../ir/op.ts";
import { elementsOf, type TensorType, tensorType } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import { asExpr } from "../../kernel/loops.ts";
import { log } from "../../kernel/math-log.ts";
import { abs, add, convert, eq, lt, mul, ne, neg, pick } from "../../kernel/scalar-ops.ts";
import { sum } from "../broadcast.ts";
import { requireInputs, requireOne } from "../checks.ts";
import { concat } from "../concat.ts";
import { fullLike } from "../create.ts";
import { apply, defineOp } from "../define.ts";
import * as elementwise from "../elementwise.ts";
import { reshape } from "../movement.ts";
import { samplesIn } from "../reference.ts";
import { partAlong } from "../slice.ts";
import { eliminate, factorize, rowsFrom, solved, solveFactored } from "./lu.ts";
import { matrixRoutine } from "./routine.ts";
import { batchOf, columnsOf, minus, product, requireSquare, rowsOf, spread, turn } from "./rules.ts";
import { requireSystem } from "./triangular.ts";

export type SolveAttrs = {
  /** The matrix is read transposed. */
  readonly transposed: boolean;
};

const matrices = (type: TensorType): number => elementsOf(batchOf(type));

/**
 * x with a · x = b. Inputs: b, a. A singular matrix gives infinities and NaN.
 *
 *   x' = a⁻¹(b' - a' x)          b̄ = a⁻ᵀ x̄,   ā = -b̄ xᵀ          the rule keeps a and x, and factors a again
 */
export const solve: OpDef<SolveAttrs> = defineOp<SolveAttrs>({
  name: "solve",
  batch: LEADING,
  defaults: { transposed: false },
  infer(inputs) {
    requireInputs("solve", ["b", "a"], inputs);
    const [b, a] = [at(inputs, 0), at(inputs, 1)];
    requireSquare("solve", "a", a);
    requireSystem("solve", b, a);
    return [b];
  },
  derivative: {
    kind: "general",
    jvp(b, { x: [, a], y, tangents: [tb, ta], attrs }) {
      const part = ta ? product(b, ta, y, { ta: attrs.transposed }) : null;
      const right = tb && part ? apply(b, elementwise.sub, tb, part) : (tb ?? (part && minus(b, part)));
      return right && b.call(solve, [right, a as Value], attrs);
    },
    vjp(b, { x: [, a], y, ct, input, attrs }) {
      const back = b.call(solve, [ct, a as Value], { transposed: !attrs.transposed });
      if (input === 0) return back;
      return minus(b, attrs.transposed ? product(b, y, back, { tb: true }) : product(b, back, y, { tb: true }));
    },
  },
  cost: ([b]) => ({ flops: b ? matrices(b) * ((2 / 3) * rowsOf(b) ** 3 + 2 * rowsOf(b) ** 2 * columnsOf(b)) : 0 }),
  lower: matrixRoutine({
    copies: true,
    write({ outType, attrs: { transposed } }, { r, out, read }) {
      const [n, m] = [rowsOf(outType), columnsOf(outType)];
      const factored = factorize(r, n, (i, j) => (transposed ? read(1, j, i) : read(1, i, j)));
      solveFactored(r, factored, out, [n, m]);
    },
  }),
  evaluate({ inputs: [b = new Float64Array(), a = new Float64Array()], inTypes, attrs: { transposed } }) {
    const type = at(inTypes, 0);
    const [n, m] = [rowsOf(type), columnsOf(type)];
    return [
      Float64Array.from(
        Array.from({ length: matrices(type) }, (_, batch) => {
          const own = rowsFrom(a, batch * n * n, n, n);
          const turned = own.map((row, i) => row.map((_, j) => at(at(own, j), i)));
          return solved(transposed ? turned : own, rowsFrom(b, batch * n * m, n, m)).flat();
        }).flat(),
      ),
    ];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      {
        shapes: [
          [2, 4, 3],
          [2, 4, 4],
        ],
        attrs: { transposed: false },
      },
      {
        shapes: [
          [5, 2],
          [5, 5],
        ],
        attrs: { transposed: true },
      },
      {
        shapes: [
          [2, 0],
          [2, 2],
        ],
        attrs: { transposed: false },
      },
      {
        shapes: [
          [0, 3, 1],
          [0, 3, 3],
        ],
        attrs: { transposed: false },
      },
      {
        shapes: [
          [39, 2],
          [39, 39],
        ],
        attrs: { transposed: false },
      },
    ]).map((sample) => ({ ...sample, range: [-1, 1], diagonal: [0, 2] })),
});

/** a⁻¹. The rule keeps it and nothing else: y' = -y a' y, ā = -yᵀ ȳ yᵀ. */
export const inverse: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "inverse",
  batch: LEADING,
  infer(inputs) {
    const a = requireOne("inverse", inputs);
    requireSquare("inverse", "a", a);
    return [a];
  },
  derivative: {
    kind: "general",
    jvp: (b, { y, tangents: [t] }) => (t ? minus(b, product(b, product(b, y, t), y)) : null),
    vjp: (b, { y, ct }) => minus(b, product(b, product(b, y, ct, { ta: true }), y, { tb: true })),
  },
  cost: ([a]) => ({ flops: a ? (8 / 3) * matrices(a) * rowsOf(a) ** 3 : 0 }),
  lower: matrixRoutine({
    copies: false,
    write({ outType }, { r, out, read }) {
      const n = rowsOf(outType);
      const factored = factorize(r, n, (i, j) => read(0, i, j));
      r.for(0, n, (i) => {
        r.each(0, n, (j) => r.set(out.place(i, j), convert(eq(asExpr(i), asExpr(j)), r.dtype)));
      });
      solveFactored(r, factored, out, [n, n]);
    },
  }),
  evaluate({ inputs: [a = new Float64Array()], inTypes }) {
    const n = rowsOf(at(inTypes, 0));
    const one = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => Number(i === j)));
    return [
      Float64Array.from(
        Array.from({ length: matrices(at(inTypes, 0)) }, (_, batch) =>
          solved(rowsFrom(a, batch * n * n, n, n), one).flat(),
        ).flat(),
      ),
    ];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 4, 4]], attrs: {} },
      { shapes: [[1, 1]], attrs: {} },
      { shapes: [[0, 0]], attrs: {} },
      { shapes: [[36, 36]], attrs: {} },
    ]).map((sample) => ({ ...sample, range: [-1, 1], diagonal: 3 })),
});

/** Cotangents of the three parts, [..., 1] each. */
function parts(b: Build, ct: Value): readonly Value[] {
  return [0, 1, 2].map((part) => partAlong(b, ct, ct.type.shape.length - 1, [part, 1]));
}

/** A number for each matrix, [..., 1, 1], at every element of a matrix. */
function everywhere(b: Build, x: Value, n: number): Value {
  const batch = batchOf(x.type);
  const column = b.call(reshape, [x], { shape: [...batch, 1] });
  const row = spread(b, column, [n, 1]);
  return spread(b, b.call(reshape, [row], { shape: [...batch, n] }), [n, n], true);
}

/**
 * Of each matrix, [..., 1, 3]: the sign of its determinant (0 where that is zero), the logarithm of its magnitude, and the determinant
 * itself. The rule keeps a:
 *
 *   log|det a|' = tr(a⁻¹ a')          det a' = det a · tr(a⁻¹ a')
 */
export const determinant: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "determinant",
  batch: LEADING,
  infer(inputs) {
    const a = requireOne("determinant", inputs);
    requireSquare("determinant", "a", a);
    return [tensorType(a.dtype, [...batchOf(a), 1, 3])];
  },
  derivative: {
    kind: "general",
    jvp(b, { x: [a], y, tangents: [t] }) {
      if (!t) return null;
      const rank = t.type.shape.length;
      const back = turn(b, b.call(inverse, [a as Value], {}));
      const trace = b.call(sum, [apply(b, elementwise.mul, back, t)], { axes: [rank - 2, rank - 1] });
      const logarithm = b.call(reshape, [trace], { shape: [...batchOf(t.type), 1, 1] });
      const det = at(parts(b, y), 2);
      const all = [fullLike(b, logarithm, 0), logarithm, apply(b, elementwise.mul, det, logarithm)];
      return b.call(concat, all, { axis: rank - 1 });
    },
    vjp(b, { x: [a], y, ct }) {
      const n = rowsOf((a as Value).type);
      const [, logarithm, det] = parts(b, ct) as [Value, Value, Value];
      const factor = apply(b, elementwise.add, logarithm, apply(b, elementwise.mul, det, at(parts(b, y), 2)));
      return apply(b, elementwise.mul, turn(b, b.call(inverse, [a as Value], {})), everywhere(b, factor, n));
    },
  },
  cost: ([a]) => ({ flops: a ? (2 / 3) * matrices(a) * rowsOf(a) ** 3 : 0 }),
  lower: matrixRoutine({
    copies: false,
    write({ inTypes }, { r, out, read }) {
      const n = rowsOf(at(inTypes, 0));
      const { a, pivots } = factorize(r, n, (i, j) => read(0, i, j));
      const [sign, logarithm, det] = [r.single(), r.single(), r.single()];
      r.let(sign, 1);
      r.let(logarithm, 0);
      r.let(det, 1);
      r.for(0, n, (i) => {
        const d = r.named(a.at(i, i));
        const turned = lt(d, 0);
        r.if(ne(pivots.at(i), convert(asExpr(i), r.dtype)), () => {
          r.let(sign, neg(sign.value));
          r.let(det, neg(det.value));
        });
        r.let(sign, pick(eq(d, 0), 0, pick(turned, neg(sign.value), sign.value)));
        r.let(logarithm, add(logarithm.value, log(abs(d))));
        r.let(det, mul(det.value, d));
      });
      [sign, logarithm, det].forEach(({ value }, part) => {
        r.set(out.place(0, part), value);
      });
    },
  }),
  evaluate({ inputs: [data = new Float64Array()], inTypes }) {
    const n = rowsOf(at(inTypes, 0));
    return [
      Float64Array.from(
        Array.from({ length: matrices(at(inTypes, 0)) }, (_, batch) => {
          const a = rowsFrom(data, batch * n * n, n, n);
          const first = eliminate(a, []);
          const diagonal = a.map((row, i) => at(row, i));
          const sign = diagonal.reduce((s, d) => s * Math.sign(d), first);
          const logarithm = diagonal.reduce((s, d) => s + Math.log(Math.abs(d)), 0);
          return [sign, logarithm, diagonal.reduce((s, d) => s * d, first)];
        }).flat(),
      ),
    ];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 4, 4]], attrs: {} },
      { shapes: [[1, 1]], attrs: {} },
      { shapes: [[2, 0, 0]], attrs: {} },
      { shapes: [[35, 35]], attrs: {} },
    ]).map((sample) => ({ ...sample, range: [-0.5, 0.5], diagonal: 1.2 })),
});
