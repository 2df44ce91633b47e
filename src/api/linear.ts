/** @file The matrix product for operands of any rank. */
import { at } from "../base/invariant.ts";
import { type TensorType, tensorType, typeText } from "../ir/type.ts";
import * as ops from "../ops/matmul.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { autocastMode, FULL, isHalf } from "./autocast-mode.ts";
import { broadcastShapes, broadcastToShape, fromRows, isRows, type NestedRows } from "./operands.ts";
import { reshape } from "./shape.ts";

/** Options of {@link matmul}. */
export interface MatmulOptions {
  /** Read the left side with its last two axes swapped. */
  readonly ta?: boolean;
  /** Read the right side with its last two axes swapped. */
  readonly tb?: boolean;
  /** `"f32"`: of bf16 and f16, the sums as they were added up, not rounded to the type of the operands. */
  readonly result?: "f32";
}

const OPTIONS: OptionKinds<MatmulOptions> = { ta: "a boolean", tb: "a boolean", result: "a text" };

/** The attributes of a product. */
interface Flags {
  readonly ta: boolean;
  readonly tb: boolean;
  readonly wide: boolean;
}

/** Whether the result is to be what products are added up in; of f32 it is in any case. */
function isWide({ dtype }: Tensor, result: string | undefined): boolean {
  if (result === undefined) return false;
  if (result === FULL && (isHalf(dtype) || dtype === FULL)) return isHalf(dtype) || autocastMode() !== null;
  return fail(
    "InvalidArgument",
    `matmul: a result of ${result} from products of ${dtype}`,
    'leave it out; "f32" is for bf16 and f16',
  );
}

/** Batches [..., m, k] · [k, n] with nothing on the right to batch over are one product [... m, k] · [k, n]. */
function flattenBatch(x: Tensor, w: Tensor, flags: Flags): Tensor {
  const lead = x.shape.slice(0, -1);
  const n = at(w.shape, flags.tb ? 0 : 1);
  const y = applyOp(ops.matmul, [reshape(x, [-1, at(x.shape, x.rank - 1)]), w], flags);
  return reshape(y, [...lead, n]);
}

/**
 * The matrix product over the last two axes; leading axes broadcast. A vector on the left is a row, on the right a
 * column, and its axis is not in the result.
 *
 * @example
 * import { matmul, tensor } from "tidemark";
 *
 * const w = tensor([[1, 2], [3, 4]]);
 * console.log(matmul(w, tensor([1, 1])).toArray()); // [3, 7]
 * console.log(matmul(w, w, { tb: true }).toArray()); // [[5, 11], [11, 25]]
 */
export function matmul(x: Tensor | NestedRows, w: Tensor | NestedRows, options: MatmulOptions = {}): Tensor {
  if (isRows(x)) return matmul(fromRows(x, isRows(w) ? undefined : w?.dtype), w, options);
  if (isRows(w)) return matmul(x, fromRows(w, x?.dtype), options);
  requireTensor("matmul", "x", x);
  requireTensor("matmul", "w", w, "a number scales: x.mul(2)");
  requireOptions("matmul", options, OPTIONS);
  const { ta = false, tb = false } = options;
  if (x.rank === 0 || w.rank === 0) {
    fail("ShapeMismatch", `matmul: a scalar has no product: ${typeText(x)}, ${typeText(w)}`, "use mul to scale");
  }
  const left = x.rank === 1 ? reshape(x, ta ? [-1, 1] : [1, -1]) : x;
  const right = w.rank === 1 ? reshape(w, tb ? [1, -1] : [-1, 1]) : w;
  const y = product(left, right, { ta, tb, wide: isWide(x, options.result) });
  if (x.rank > 1 && w.rank > 1) return y;
  const shape = [...y.shape];
  if (w.rank === 1) shape.pop();
  if (x.rank === 1) shape.splice(w.rank === 1 ? shape.length - 1 : shape.length - 2, 1);
  return reshape(y, shape);
}

function requireVectors(name: string, a: Tensor, b: Tensor, help: string): void {
  requireTensor(name, "a", a);
  requireTensor(name, "b", b);
  if (a.rank === 1 && b.rank === 1) return;
  fail("ShapeMismatch", `${name}: takes two vectors, got ${typeText(a)}, ${typeText(b)}`, help);
}

function product(left: Tensor, right: Tensor, flags: Flags): Tensor {
  const { ta, tb } = flags;
  const contracted = at(right.shape, tb ? 1 : 0) === at(left.shape, left.rank - 1);
  if (left.rank > 2 && right.rank === 2 && !ta && contracted && left.elements > 0)
    return flattenBatch(left, right, flags);
  const batch = (t: Tensor): TensorType => tensorType(t.dtype, t.shape.slice(0, -2));
  const lead = broadcastShapes("matmul", [batch(left), batch(right)], [left, right]);
  const wide = (t: Tensor): Tensor => broadcastToShape(t, [...lead, ...t.shape.slice(-2)]);
  return applyOp(ops.matmul, [wide(left), wide(right)], flags);
}

/**
 * Σ a·b over all elements of two vectors.
 *
 * @example
 * import { dot, tensor } from "tidemark";
 *
 * console.log(dot(tensor([1, 2, 3]), tensor([4, 5, 6])).item()); // → 32
 */
export function dot(a: Tensor, b: Tensor): Tensor {
  requireVectors("dot", a, b, "use matmul");
  return matmul(a, b);
}

/**
 * a[i] · b[j] of two vectors.
 *
 * @example
 * import { outer, tensor } from "tidemark";
 *
 * console.log(outer(tensor([1, 2]), tensor([3, 4])).toArray()); // → [[3, 4], [6, 8]]
 */
export function outer(a: Tensor, b: Tensor): Tensor {
  requireVectors("outer", a, b, "use reshape");
  return matmul(reshape(a, [-1, 1]), reshape(b, [1, -1]));
}
