/** @file The exponential of square matrices. */
import { at } from "../../base/invariant.ts";
import { LEADING } from "../../ir/batch.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import type { NoAttrs, OpDef } from "../../ir/op.ts";
import { elementsOf } from "../../ir/type.ts";
import { FLOAT_TYPES } from "../../kernel/dtype.ts";
import type { Expr, Index } from "../../kernel/expr.ts";
import type { Matrix, RoutineBuilder } from "../../kernel/routine-builder.ts";
import { update } from "../../kernel/routine-products.ts";
import { abs, add, lt, max, mul, sub } from "../../kernel/scalar-ops.ts";
import { requireOne } from "../checks.ts";
import { concat } from "../concat.ts";
import { fullLike } from "../create.ts";
import { defineOp } from "../define.ts";
import { samplesIn } from "../reference.ts";
import { partAlong } from "../slice.ts";
import { isSame } from "./householder.ts";
import { factorize, type Rows, rowsFrom, solveFactored } from "./lu.ts";
import { matrixRoutine, type RoutineSite } from "./routine.ts";
import { batchOf, requireSquare, rowsOf, turn } from "./rules.ts";

/** Padé's approximation of degree 13, and the norm up to which it has the precision of f64 (N. J. Higham, 2005). */
const PADE: readonly number[] = [
  64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
  670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
];
const LIMIT = 5.371920351148152;
/** Halvings that the largest number takes. */
const MOST = 1100;

/** to = x · y, none of them the same. */
function multiply(r: RoutineBuilder, n: number, to: Matrix, [x, y]: readonly [Matrix, Matrix]): void {
  r.for(0, n, (i) => r.each(0, n, (j) => r.set(to.place(i, j), r.number(0))));
  update(r, {
    ...{ rows: [0, n], columns: [0, n], terms: [0, n], adds: true },
    target: (i, j) => to.place(i, j),
    value: (i, j) => to.at(i, j),
    left: (i, p) => x.at(i, p),
    right: (p, j) => y.at(p, j),
  });
}

/** Scaled by a power of two until it is small, approximated, and squared as often. */
function exponential({ r, out, read }: RoutineSite, n: number): void {
  const matrix = (): Matrix => r.matrix(n, n);
  const [a, a2, a4, a6, u, v, w] = [matrix(), matrix(), matrix(), matrix(), matrix(), matrix(), matrix()];
  const all = (to: Matrix, value: (i: Index, j: Index) => Expr): void =>
    r.for(0, n, (i) => r.each(0, n, (j) => r.set(to.place(i, j), value(i, j))));
  const [norm, scale, times, column] = [r.single(), r.single(), r.single("i32"), r.vector(n)];
  all(a, (i, j) => read(0, i, j));
  r.each(0, n, (j) => r.set(column.place(j), r.number(0)));
  r.for(0, n, (i) => r.each(0, n, (j) => r.set(column.place(j), add(column.at(j), abs(a.at(i, j))))));
  r.let(norm, 0);
  r.for(0, n, (j) => r.let(norm, max(norm.value, column.at(j))));
  r.let(scale, 1);
  r.let(times, 0);
  r.while(lt(LIMIT, norm.value), MOST, () => {
    r.let(norm, mul(norm.value, 0.5));
    r.let(scale, mul(scale.value, 0.5));
    r.let(times, add(times.value, 1));
  });
  all(a, (i, j) => mul(scale.value, a.at(i, j)));
  multiply(r, n, a2, [a, a]);
  multiply(r, n, a4, [a2, a2]);
  multiply(r, n, a6, [a4, a2]);
  /** Σ of even powers with every other coefficient, from one on: x⁶ (c₁₂ x⁶ + c₁₀ x⁴ + c₈ x²) + c₆ x⁶ + c₄ x⁴ + c₂ x² + c₀. */
  const series = (to: Matrix, first: number): void => {
    const c = (power: number): number => at(PADE, first + power);
    const sum = (x: number, y: number, z: number) => (i: Index, j: Index) =>
      add(add(mul(a6.at(i, j), c(x)), mul(a4.at(i, j), c(y))), mul(a2.at(i, j), c(z)));
    all(w, sum(12, 10, 8));
    multiply(r, n, to, [a6, w]);
    const rest = sum(6, 4, 2);
    all(to, (i, j) => add(add(to.at(i, j), rest(i, j)), mul(isSame(r, i, j), c(0))));
  };
  series(v, 1);
  multiply(r, n, u, [a, v]);
  series(v, 0);
  all(out, (i, j) => add(v.at(i, j), u.at(i, j)));
  const factored = factorize(r, n, (i, j) => sub(v.at(i, j), u.at(i, j)));
  solveFactored(r, factored, out, [n, n]);
  r.while(lt(0, times.value), MOST, () => {
    all(w, (i, j) => out.at(i, j));
    multiply(r, n, out, [w, w]);
    r.let(times, sub(times.value, 1));
  });
}

/** The derivative of the exponential along a direction: the upper right part of exp [[a, e], [0, a]]. */
function along(b: Build, a: Value, e: Value): Value {
  const [rank, n] = [a.type.shape.length, rowsOf(a.type)];
  const join = (x: Value, y: Value, axis: number): Value => b.call(concat, [x, y], { axis });
  const above = join(a, e, rank - 1);
  const below = join(fullLike(b, a, 0), a, rank - 1);
  const y = b.call(matrixExp, [join(above, below, rank - 2)], {});
  return partAlong(b, partAlong(b, y, rank - 2, [0, n]), rank - 1, [n, n]);
}

/**
 * eᵃ, by scaling and squaring with Padé's approximation. The rule keeps a, and computes an exponential of twice as many rows:
 *
 *   y' = L(a, a')          ā = L(aᵀ, ȳ)          exp [[a, e], [0, a]] = [[eᵃ, L(a, e)], [0, eᵃ]]
 */
export const matrixExp: OpDef<NoAttrs> = defineOp<NoAttrs>({
  name: "matrix_exp",
  batch: LEADING,
  infer(inputs) {
    const a = requireOne("matrix_exp", inputs);
    requireSquare("matrix_exp", "a", a);
    return [a];
  },
  derivative: {
    kind: "general",
    jvp: (b, { x: [a], tangents: [t] }) => (t ? along(b, a as Value, t) : null),
    vjp: (b, { x: [a], ct }) => along(b, turn(b, a as Value), ct),
  },
  cost: ([a]) => ({ flops: a ? 20 * elementsOf(a.shape) * rowsOf(a) : 0 }),
  lower: matrixRoutine({
    copies: false,
    write: ({ outType }, site) => exponential(site, rowsOf(outType)),
  }),
  evaluate({ inputs: [a = new Float64Array()], inTypes }) {
    const n = rowsOf(at(inTypes, 0));
    const all = Array.from({ length: elementsOf(batchOf(at(inTypes, 0))) }, (_, batch) =>
      exponentialOf(rowsFrom(a, batch * n * n, n, n)),
    );
    return [Float64Array.from(all.flat(2))];
  },
  samples: () =>
    samplesIn(FLOAT_TYPES, [
      { shapes: [[2, 3, 3]], attrs: {} },
      { shapes: [[0, 0]], attrs: {} },
    ])
      .map((sample): typeof sample => ({ ...sample, range: [-1, 1] }))
      .concat(
        samplesIn(FLOAT_TYPES, [{ shapes: [[6, 6]], attrs: {} }]).map((s) => ({ ...s, range: [-3, 3], smooth: false })),
      ),
});

/** In doubles: the series of a small part, squared. */
function exponentialOf(a: Rows): Rows {
  const times = (x: Rows, y: Rows): Rows =>
    x.map((row) => row.map((_, j) => row.reduce((s, v, p) => s + v * at(at(y, p), j), 0)));
  const squarings = 10;
  const small = a.map((row) => row.map((v) => v / 2 ** squarings));
  let term = a.map((_, i) => a.map((_, j) => Number(i === j)));
  let sum = term;
  for (let k = 1; k <= 16; k++) {
    term = times(term, small).map((row) => row.map((v) => v / k));
    sum = sum.map((row, i) => row.map((v, j) => v + at(at(term, i), j)));
  }
  for (let k = 0; k < squarings; k++) sum = times(sum, sum);
  return sum;
}
