/**
 * @file Linear algebra on the last two axes, in batches of the others: users have these as `linalg.cholesky`, `linalg.solve` and so on
 * (docs/linalg.md). No matrix is an error when a program runs: what a matrix does not have is NaN or infinite.
 */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { significandBits } from "../kernel/dtype.ts";
import { cholesky as choleskyOp } from "../ops/linalg/cholesky.ts";
import { eigh as eighOp } from "../ops/linalg/eigh.ts";
import { matrixExp as matrixExpOp } from "../ops/linalg/matrix-exp.ts";
import { pinv as pinvOp } from "../ops/linalg/pinv.ts";
import { qr as qrOp } from "../ops/linalg/qr.ts";
import { determinant, inverse, solve as solveOp } from "../ops/linalg/solve.ts";
import { svd as svdOp } from "../ops/linalg/svd.ts";
import { triangularSolve } from "../ops/linalg/triangular.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { agreed } from "../trace/weak.ts";
import { applyOp } from "./apply.ts";
import { add, mul } from "./elementwise.ts";
import { concat } from "./join.ts";
import { matmul } from "./linear.ts";
import { broadcastShapes, broadcastToShape, requireFloat } from "./operands.ts";
import { reshape, slice, swapAxes } from "./shape.ts";

/** Options of `linalg.cholesky`. */
export interface CholeskyOptions {
  /** The upper factor, lᵀ. Default: false. */
  readonly upper?: boolean;
}

/** Options of `linalg.solveTriangular`. */
export interface SolveTriangularOptions {
  /** The upper triangle of `a` is meant. Default: the lower. */
  readonly upper?: boolean;
  /** Solve with aᵀ. Default: false. */
  readonly transposed?: boolean;
  /** Ones are meant on the diagonal, whatever is there. Default: false. */
  readonly unitriangular?: boolean;
}

/** Options of `linalg.pinv`. */
export interface PinvOptions {
  /** Singular values up to this part of the largest count as zero. Default: the larger side times the distance from 1 to the next number. */
  readonly rtol?: number;
}

/** Orthogonal columns and an upper triangle. */
export interface Qr {
  readonly q: Tensor;
  readonly r: Tensor;
}

/** Eigenvalues [..., n], and eigenvectors as columns [..., n, n]. */
export interface Eigh {
  readonly values: Tensor;
  readonly vectors: Tensor;
}

/** Left singular vectors as columns, singular values, and right ones as rows. */
export interface Svd {
  readonly u: Tensor;
  readonly s: Tensor;
  readonly vh: Tensor;
}

/** The sign of a determinant, and the logarithm of its magnitude. */
export interface Slogdet {
  readonly sign: Tensor;
  readonly logabsdet: Tensor;
}

const CHOLESKY: OptionKinds<CholeskyOptions> = { upper: "a boolean" };
const TRIANGULAR: OptionKinds<SolveTriangularOptions> = {
  upper: "a boolean",
  transposed: "a boolean",
  unitriangular: "a boolean",
};
const PINV: OptionKinds<PinvOptions> = { rtol: "a number" };

function requireMatrices(name: string, role: string, a: Tensor): void {
  requireTensor(name, role, a);
  requireFloat(name, a);
  if (a.rank >= 2) return;
  fail("ShapeMismatch", `${name}: ${role} is ${typeText(a)}`, "matrices are the last two axes: [..., rows, columns]");
}

function requireSquare(name: string, a: Tensor): void {
  requireMatrices(name, "a", a);
  if (a.shape.at(-1) === a.shape.at(-2)) return;
  fail("ShapeMismatch", `${name}: a is ${typeText(a)}, which is not square`, "its last two axes must have one extent");
}

const turned = (a: Tensor): Tensor => swapAxes(a, -1, -2);
/** What of a matrix is symmetric: derivatives are then symmetric too, and a symmetric one keeps its bits. */
const symmetric = (a: Tensor): Tensor => mul(add(a, turned(a)), 0.5);

/** `count` rows of each matrix. */
function rows(a: Tensor, start: number, count: number): Tensor {
  return slice(a, [...a.shape.slice(0, -2).map(() => null), [start, start + count]]);
}

/** The only row of each matrix. */
const onlyRow = (a: Tensor): Tensor => reshape(a, [...a.shape.slice(0, -2), at(a.shape, a.rank - 1)]);

/** a and b with the same axes in front, b of at least two axes; and what makes the solution one of b's form. */
function system(name: string, first: Tensor, second: Tensor): readonly [a: Tensor, b: Tensor, (x: Tensor) => Tensor] {
  requireSquare(name, first);
  requireTensor(name, "b", second, "one column is a vector: tensor([1, 2])");
  const [a, given] = agreed([first, second]) as readonly [Tensor, Tensor];
  const isVector = given.rank === 1;
  const b = isVector ? reshape(given, [-1, 1]) : given;
  if (b.rank < 2 || b.shape.at(-2) !== a.shape.at(-1)) {
    fail(
      "ShapeMismatch",
      `${name}: a is ${typeText(a)}, b is ${typeText(given)}`,
      "b needs as many rows as a; vectors of a batch are columns: b.unsqueeze(-1)",
    );
  }
  const lead = (t: Tensor) => ({ dtype: t.dtype, shape: t.shape.slice(0, -2) });
  const batch = broadcastShapes(name, [lead(a), lead(b)], [a, given]);
  const wide = (t: Tensor): Tensor => broadcastToShape(t, [...batch, ...t.shape.slice(-2)]);
  return [wide(a), wide(b), (x) => (isVector ? reshape(x, x.shape.slice(0, -1)) : x)];
}

/**
 * The lower triangular l with a positive diagonal and l · lᵀ = a, of symmetric positive definite matrices; with `upper` its transpose.
 * Of a matrix that is not symmetric (a + aᵀ) / 2 is taken. Where a matrix is not positive definite the result is NaN from the
 * first column on at which that shows.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.cholesky(tensor([[4, 2], [2, 5]])).toArray()); // [[2, 0], [1, 2]]
 */
export function cholesky(a: Tensor, options: CholeskyOptions = {}): Tensor {
  requireSquare("cholesky", a);
  requireOptions("cholesky", options, CHOLESKY);
  return asFunction("cholesky", () => {
    const l = applyOp(choleskyOp, [symmetric(a)], {});
    return options.upper ? turned(l) : l;
  });
}

/**
 * x with a · x = b, where one triangle of `a` is meant: the lower, or with `upper` the upper. The other is not read. `b` is a vector,
 * or matrices [..., n, m]; leading axes broadcast.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.solveTriangular(tensor([[2, 0], [1, 4]]), tensor([2, 9])).toArray()); // [1, 2]
 */
export function solveTriangular(a: Tensor, b: Tensor, options: SolveTriangularOptions = {}): Tensor {
  requireOptions("solveTriangular", options, TRIANGULAR);
  const [left, right, formed] = system("solveTriangular", a, b);
  const { upper = false, transposed = false, unitriangular = false } = options;
  return asFunction("solveTriangular", () =>
    formed(applyOp(triangularSolve, [right, left], { upper, transposed, unit: unitriangular })),
  );
}

/**
 * x with a · x = b, by elimination with exchanges of rows. `b` is a vector, or matrices [..., n, m]; leading axes broadcast. A singular
 * matrix gives infinities and NaN.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.solve(tensor([[0, 2], [1, 1]]), tensor([4, 3])).toArray()); // [1, 2]
 */
export function solve(a: Tensor, b: Tensor): Tensor {
  const [left, right, formed] = system("solve", a, b);
  return asFunction("solve", () => formed(applyOp(solveOp, [right, left], { transposed: false })));
}

/**
 * The inverse of square matrices; infinities and NaN where there is none. To solve equations, `solve` is faster and more exact.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.inv(tensor([[2, 0], [0, 4]])).toArray()); // → [[0.5, 0], [0, 0.25]]
 */
export function inv(a: Tensor): Tensor {
  requireSquare("inv", a);
  return applyOp(inverse, [a], {});
}

/**
 * The determinant of square matrices. Its derivative is NaN where it is zero.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.det(tensor([[2, 0], [0, 4]])).item()); // → 8
 */
export function det(a: Tensor): Tensor {
  requireSquare("det", a);
  return asFunction("det", () =>
    slice(onlyRow(applyOp(determinant, [a], {})), [...a.shape.slice(0, -2).map(() => null), 2]),
  );
}

/**
 * The sign of the determinant (0 where it is zero) and the logarithm of its magnitude, which neither overflows nor vanishes.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * const { sign, logabsdet } = linalg.slogdet(tensor([[0, 1], [1, 0]]));
 * console.log(sign.item(), logabsdet.item()); // -1 0
 */
export function slogdet(a: Tensor): Slogdet {
  requireSquare("slogdet", a);
  return asFunction("slogdet", () => {
    const all = onlyRow(applyOp(determinant, [a], {}));
    const part = (i: number): Tensor => slice(all, [...a.shape.slice(0, -2).map(() => null), i]);
    return { sign: part(0), logabsdet: part(1) };
  });
}

/**
 * q · r = a with k = min(m, n) orthogonal columns q [..., m, k] and the upper triangle r [..., k, n]. The diagonal of r has the signs that
 * LAPACK gives it. There is a derivative where the first k columns are independent.
 *
 * @example
 * import { linalg, matmul, tensor } from "tidemark";
 *
 * const { q, r } = linalg.qr(tensor([[3, 1], [4, 2]], { dtype: "f64" }));
 * console.log(r.mul(10).round().toArray()); // [[-50, -22], [0, 4]]
 */
export function qr(a: Tensor): Qr {
  requireMatrices("qr", "a", a);
  const [m, n] = [at(a.shape, a.rank - 2), at(a.shape, a.rank - 1)];
  return asFunction("qr", () => {
    const isWide = m < n;
    const columns = (from: number, to: number): Tensor =>
      slice(a, [...a.shape.slice(0, -1).map(() => null), [from, to]]);
    const y = applyOp(qrOp, [isWide ? columns(0, m) : a], {});
    const k = Math.min(m, n);
    const [q, r] = [rows(y, 0, m), rows(y, m, k)];
    return { q, r: isWide ? concat([r, matmul(q, columns(m, n), { ta: true })], -1) : r };
  });
}

/**
 * Eigenvalues of symmetric matrices in ascending order, and unit eigenvectors as columns, of which the largest element is positive. Of a
 * matrix that is not symmetric (a + aᵀ) / 2 is taken. Eigenvectors of equal eigenvalues have no derivative: it is infinite or NaN.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.eigh(tensor([[2, 0], [0, 1]])).values.toArray()); // [1, 2]
 */
export function eigh(a: Tensor): Eigh {
  requireSquare("eigh", a);
  return asFunction("eigh", () => {
    const y = applyOp(eighOp, [symmetric(a)], { vectors: true });
    return { values: onlyRow(rows(y, 0, 1)), vectors: rows(y, 1, at(a.shape, a.rank - 1)) };
  });
}

/**
 * The eigenvalues that `eigh` gives, without eigenvectors. A derivative computes those.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.eigvalsh(tensor([[2, 0], [0, 4]])).toArray()); // → [2, 4]
 */
export function eigvalsh(a: Tensor): Tensor {
  requireSquare("eigvalsh", a);
  return asFunction("eigvalsh", () => onlyRow(applyOp(eighOp, [symmetric(a)], { vectors: false })));
}

/**
 * a = u · diag(s) · vh: singular values in descending order with k = min(m, n) left vectors as columns [..., m, k] and right ones as rows
 * [..., k, n]; the largest element of each vector on the longer side is positive. Vectors of equal singular values, or of zero, have no
 * derivative: it is infinite or NaN.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.svd(tensor([[0, 2], [1, 0]])).s.toArray()); // [2, 1]
 */
export function svd(a: Tensor): Svd {
  requireMatrices("svd", "a", a);
  const [m, n] = [at(a.shape, a.rank - 2), at(a.shape, a.rank - 1)];
  return asFunction("svd", () => {
    const isWide = m < n;
    const [long, short] = [Math.max(m, n), Math.min(m, n)];
    const y = applyOp(svdOp, [isWide ? turned(a) : a], { vectors: true });
    const [s, left, right] = [onlyRow(rows(y, 0, 1)), rows(y, 1, long), rows(y, 1 + long, short)];
    return isWide ? { u: turned(right), s, vh: turned(left) } : { u: left, s, vh: right };
  });
}

/**
 * The singular values that `svd` gives, without vectors. A derivative computes those.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.svdvals(tensor([[2, 0], [0, 4]])).toArray()); // → [4, 2]
 */
export function svdvals(a: Tensor): Tensor {
  requireMatrices("svdvals", "a", a);
  const isWide = at(a.shape, a.rank - 2) < at(a.shape, a.rank - 1);
  return asFunction("svdvals", () => onlyRow(applyOp(svdOp, [isWide ? turned(a) : a], { vectors: false })));
}

/**
 * The pseudo-inverse (of Moore and Penrose), from singular values. Its derivative holds where the rank does not change.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.pinv(tensor([[2, 0], [0, 0], [0, 4]])).toArray()); // [[0.5, 0, 0], [0, 0, 0.25]]
 */
export function pinv(a: Tensor, options: PinvOptions = {}): Tensor {
  requireMatrices("pinv", "a", a);
  requireOptions("pinv", options, PINV);
  const [m, n] = [at(a.shape, a.rank - 2), at(a.shape, a.rank - 1)];
  const rtol = options.rtol ?? Math.max(m, n) * 2 ** (1 - significandBits(requireFloat("pinv", a)));
  if (!(rtol >= 0)) fail("InvalidArgument", `pinv: rtol is ${rtol}`, "give a number of at least 0");
  return asFunction("pinv", () => {
    const isWide = m < n;
    const y = applyOp(pinvOp, [isWide ? turned(a) : a], { rtol });
    return isWide ? turned(y) : y;
  });
}

/**
 * The exponential of square matrices, Σ aᵏ / k!, by scaling and squaring.
 *
 * @example
 * import { linalg, tensor } from "tidemark";
 *
 * console.log(linalg.matrixExp(tensor([[0, 1], [0, 0]])).toArray()); // [[1, 1], [0, 1]]
 */
export function matrixExp(a: Tensor): Tensor {
  requireSquare("matrixExp", a);
  return applyOp(matrixExpOp, [a], {});
}
