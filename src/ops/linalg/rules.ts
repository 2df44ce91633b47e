/** @file What derivative rules of matrix operations are written in: products, transposes and triangles of matrices in batches. */
import { TidemarkError } from "../../base/errors.ts";
import type { Build } from "../../ir/build.ts";
import type { Value } from "../../ir/graph.ts";
import { type TensorType, typeText } from "../../ir/type.ts";
import { broadcast } from "../broadcast.ts";
import { fullLike, iota } from "../create.ts";
import { apply, requireDomain } from "../define.ts";
import { add, div, eq, ge, mul, neg, sub } from "../elementwise.ts";
import { matmul } from "../matmul.ts";
import { reshape, transpose } from "../movement.ts";
import { where } from "../select.ts";

/** Rows and columns: the last two axes. */
export const rowsOf = ({ shape }: TensorType): number => shape.at(-2) ?? 1;
export const columnsOf = ({ shape }: TensorType): number => shape.at(-1) ?? 1;
/** The axes in front of them. */
export const batchOf = ({ shape }: TensorType): readonly number[] => shape.slice(0, -2);

export function requireMatrix(name: string, role: string, type: TensorType): void {
  requireDomain(name, "float", [type]);
  if (type.shape.length >= 2) return;
  throw new TidemarkError("ShapeMismatch", `${name}: ${role} must have at least two axes, got ${typeText(type)}`, {
    help: "matrices are the last two axes: [..., rows, columns]",
  });
}

export function requireSquare(name: string, role: string, type: TensorType): void {
  requireMatrix(name, role, type);
  if (rowsOf(type) === columnsOf(type)) return;
  throw new TidemarkError("ShapeMismatch", `${name}: ${role} must be square, got ${typeText(type)}`, {
    help: "its last two axes must have one extent",
  });
}

const matmulAttrs = { ta: false, tb: false, xNonzero: [], wNonzero: [] };

/** x · y, of which sides are read transposed. */
export function product(
  b: Build,
  x: Value,
  y: Value,
  turned: { readonly ta?: boolean; readonly tb?: boolean } = {},
): Value {
  return b.call(matmul, [x, y], { ...matmulAttrs, ...turned });
}

export function turn(b: Build, x: Value): Value {
  const rank = x.type.shape.length;
  const perm = Array.from({ length: rank }, (_, axis) => axis);
  return b.call(transpose, [x], { perm: [...perm.slice(0, -2), rank - 1, rank - 2] });
}

/** The elements whose row is at least `above` more than their column; zeros elsewhere. */
export function lowerPart(b: Build, x: Value, above = 0): Value {
  const { shape } = x.type;
  const counter = (axis: number): Value => b.call(iota, [], { shape, axis: shape.length - axis });
  const [row, column] = [counter(2), counter(1)];
  const limit = above === 0 ? column : apply(b, add, column, fullLike(b, column, above));
  return apply(b, where, apply(b, ge, row, limit), x, fullLike(b, x, 0));
}

/** The elements whose column is at least `above` more than their row. */
export const upperPart = (b: Build, x: Value, above = 0): Value => turn(b, lowerPart(b, turn(b, x), above));

export const scaled = (b: Build, x: Value, by: number): Value => apply(b, mul, x, fullLike(b, x, by));

export const minus = (b: Build, x: Value): Value => apply(b, neg, x);

/** The symmetric matrix whose lower triangle this is. */
export const symmetricOf = (b: Build, x: Value): Value => apply(b, add, lowerPart(b, x), turn(b, lowerPart(b, x, 1)));

/** The transpose of that: cotangents of a symmetric matrix as those of its lower triangle. */
export const ontoLower = (b: Build, ct: Value): Value => apply(b, add, lowerPart(b, ct), lowerPart(b, turn(b, ct), 1));

/** The lower triangle with half of the diagonal. */
export const halfLower = (b: Build, x: Value): Value =>
  scaled(b, apply(b, add, lowerPart(b, x), lowerPart(b, x, 1)), 0.5);

/** A vector of each batch along the rows of a matrix: y[i, j] = x[j]; `down`: y[i, j] = x[i]. */
export function spread(b: Build, x: Value, [rows, columns]: readonly [number, number], down = false): Value {
  const { shape } = x.type;
  const batch = shape.slice(0, -1);
  const axes = [...batch.keys(), down ? batch.length : batch.length + 1];
  return b.call(broadcast, [x], { shape: [...batch, rows, columns], axes });
}

/** The elements on the diagonal; zeros elsewhere. */
export function onDiagonal(b: Build, x: Value): Value {
  const { shape } = x.type;
  const counter = (axis: number): Value => b.call(iota, [], { shape, axis: shape.length - axis });
  return apply(b, where, apply(b, eq, counter(2), counter(1)), x, fullLike(b, x, 0));
}

/** A matrix with a row [..., 1, n] on its diagonal. */
export function diagonalOf(b: Build, row: Value, n: number): Value {
  const values = b.call(reshape, [row], { shape: [...batchOf(row.type), n] });
  return onDiagonal(b, spread(b, values, [n, n]));
}

/** F[i, j] = 1 / (x_j - x_i), and 0 on the diagonal. */
export function differences(b: Build, x: Value): Value {
  const n = x.type.shape.at(-1) ?? 0;
  const difference = apply(b, sub, spread(b, x, [n, n]), spread(b, x, [n, n], true));
  const one = onDiagonal(b, fullLike(b, difference, 1));
  return apply(b, sub, apply(b, div, fullLike(b, difference, 1), apply(b, add, difference, one)), one);
}

/** Rows up to which loops over them are written out. */
export const FEW_ROWS = 4;
