/**
 * @file Writing and combining at positions that are themselves data, and sums, means and extrema of rows by number. Updates are
 * taken one after the other in their order; those out of range are dropped.
 */
import { withLocation } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import type { OpDef } from "../ir/op.ts";
import { elementsOf, sameShape, typeText } from "../ir/type.ts";
import { typeOf } from "../kernel/dtype.ts";
import { iota } from "../ops/create.ts";
import { type AxisAttrs, aligned, rows as byRows, type PairSpec, requireUpdates } from "../ops/indexing.ts";
import * as ops from "../ops/scatter.ts";
import { fail, requireTensor } from "../trace/arguments.ts";
import { sourceLocation } from "../trace/source-location.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { arange } from "./create.ts";
import { cast, div, less, maximum, where } from "./elementwise.ts";
import { gather, scatterAdd, take } from "./indexing.ts";
import { broadcastToShape, fullOf, normalAxis, requireFloat, type TensorLike } from "./operands.ts";
import { reshape } from "./shape.ts";

interface Scatter {
  readonly name: string;
  readonly indices: Tensor;
  readonly updates: Tensor;
  readonly axis: number;
}

function combined(op: OpDef<AxisAttrs>, x: Tensor, { name, indices, updates, axis }: Scatter): Tensor {
  requireTensor(name, "indices", indices);
  requireTensor(name, "updates", updates);
  return applyOp(op, [x, indices, updates], { axis: normalAxis(name, axis, x) });
}

/**
 * x with the larger of each row of `updates` and the row with its number; NaN wins. Ties share a cotangent evenly.
 *
 * @example
 * import { scatterMax, tensor, zeros } from "tidemark";
 *
 * console.log(scatterMax(zeros([3]), tensor([0, 2, 0], { dtype: "i32" }), tensor([1, 2, 3])).toArray()); // → [3, 0, 2]
 */
export function scatterMax(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return combined(ops.scatterMax, x, { name: "scatterMax", indices, updates, axis });
}

/**
 * x with the smaller of each row of `updates` and the row with its number; NaN wins. Ties share a cotangent evenly.
 *
 * @example
 * import { ones, scatterMin, tensor } from "tidemark";
 *
 * console.log(scatterMin(ones([3]), tensor([0, 2, 0], { dtype: "i32" }), tensor([0.5, 2, -3])).toArray()); // → [-3, 1, 1]
 */
export function scatterMin(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return combined(ops.scatterMin, x, { name: "scatterMin", indices, updates, axis });
}

/**
 * x with rows multiplied by rows of `updates`; derivatives are right where factors are zero, too.
 *
 * @example
 * import { ones, scatterMul, tensor } from "tidemark";
 *
 * console.log(scatterMul(ones([3]), tensor([0, 2, 0], { dtype: "i32" }), tensor([2, 3, 4])).toArray()); // → [8, 1, 3]
 */
export function scatterMul(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return combined(ops.scatterMul, x, { name: "scatterMul", indices, updates, axis });
}

/**
 * `scatterMax` of single elements: the counterpart of gather.
 *
 * @example
 * import { ones, scatterMaxAlong, tensor, zeros } from "tidemark";
 *
 * console.log(scatterMaxAlong(zeros([2, 2]), tensor([[0, 0], [1, 1]], { dtype: "i32" }), ones([2, 2])).toArray()); // → [[1, 1], [1, 1]]
 */
export function scatterMaxAlong(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return combined(ops.scatterMaxAlong, x, { name: "scatterMaxAlong", indices, updates, axis });
}

/**
 * `scatterMin` of single elements: the counterpart of gather.
 *
 * @example
 * import { ones, scatterMinAlong, tensor, zeros } from "tidemark";
 *
 * console.log(scatterMinAlong(ones([2, 2]), tensor([[0, 0], [1, 1]], { dtype: "i32" }), zeros([2, 2])).toArray()); // → [[0, 0], [0, 0]]
 */
export function scatterMinAlong(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return combined(ops.scatterMinAlong, x, { name: "scatterMinAlong", indices, updates, axis });
}

/**
 * `scatterMul` of single elements: the counterpart of gather.
 *
 * @example
 * import { ones, scatterMulAlong, tensor } from "tidemark";
 *
 * console.log(scatterMulAlong(ones([1, 3]), tensor([[0, 2, 0]], { dtype: "i32" }), tensor([[2, 3, 4]]), 1).toArray()); // → [[8, 1, 3]]
 */
export function scatterMulAlong(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return combined(ops.scatterMulAlong, x, { name: "scatterMulAlong", indices, updates, axis });
}

/** Checks x, indices and updates as an operation does. */
function requireFitting(name: string, spec: PairSpec, tensors: readonly Tensor[], axis: number): void {
  try {
    requireUpdates(name, spec, tensors, axis);
  } catch (error) {
    throw withLocation(error, sourceLocation());
  }
}

/** Of each row number below `extent` the last place in a list that names it, or -1. @internal */
export function lastSources(rows: Tensor, extent: number): Tensor {
  const count = rows.elements;
  return applyOp(ops.scatterMax, [fullOf("i32", [extent], -1), reshape(rows, [count]), arange(count)], { axis: 0 });
}

/**
 * x with rows replaced by rows of `updates`; of equal numbers the last one counts, and only it has a derivative.
 *
 * @example
 * import { scatterSet, tensor, zeros } from "tidemark";
 *
 * console.log(scatterSet(zeros([3]), tensor([2, 0, 2], { dtype: "i32" }), tensor([5, 6, 7])).toArray()); // [6, 0, 7]
 */
export function scatterSet(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  requireTensor("scatterSet", "indices", indices);
  requireTensor("scatterSet", "updates", updates);
  const along = normalAxis("scatterSet", axis, x);
  requireFitting("scatterSet", byRows, [x, indices, updates], along);
  const [lead, extent, rest] = [x.shape.slice(0, along), at(x.shape, along), x.shape.slice(along + 1)];
  const count = elementsOf(indices.shape);
  if (count === 0 || extent === 0) return x;
  return asFunction("scatterSet", () => {
    const source = lastSources(indices, extent);
    const given = take(reshape(updates, [...lead, count, ...rest]), maximum(source, 0), along);
    return where(reshape(less(source, 0), [extent, ...rest.map(() => 1)]), x, given);
  });
}

/**
 * `scatterSet` of single elements: the counterpart of gather.
 *
 * @example
 * import { scatterSetAlong, tensor, zeros } from "tidemark";
 *
 * console.log(scatterSetAlong(zeros([1, 3]), tensor([[2, 0]], { dtype: "i32" }), tensor([[5, 6]]), 1).toArray()); // → [[6, 0, 5]]
 */
export function scatterSetAlong(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  requireTensor("scatterSetAlong", "indices", indices);
  requireTensor("scatterSetAlong", "updates", updates);
  const along = normalAxis("scatterSetAlong", axis, x);
  requireFitting("scatterSetAlong", aligned, [x, indices, updates], along);
  if (indices.elements === 0 || x.elements === 0) return x;
  return asFunction("scatterSetAlong", () => {
    const order = applyOp(iota, [], { shape: indices.shape, axis: along });
    const source = applyOp(ops.scatterMaxAlong, [fullOf("i32", x.shape, -1), indices, order], { axis: along });
    return where(less(source, 0), x, gather(updates, maximum(source, 0), along));
  });
}

/**
 * x where the mask is false, a number or another tensor where it is true.
 *
 * @example
 * import { maskedFill, tensor } from "tidemark";
 *
 * console.log(maskedFill(tensor([1, 2]), tensor([true, false]), 0).toArray()); // → [0, 2]
 */
export function maskedFill(x: Tensor, mask: Tensor, value: TensorLike): Tensor {
  requireTensor("maskedFill", "x", x);
  requireTensor("maskedFill", "mask", mask);
  return where(mask, value, x);
}

// ---- segments -----------------------------------------------------------------------------------------------------

function segments(name: string, x: Tensor, ids: Tensor, count: number): readonly number[] {
  requireTensor(name, "x", x);
  requireTensor(name, "ids", ids);
  if (!Number.isInteger(count) || count < 0) {
    fail("InvalidArgument", `${name}: ${String(count)} segments`, "the number of segments is a whole number ≥ 0");
  }
  if (ids.rank >= 1 && sameShape(ids.shape, x.shape.slice(0, ids.rank))) return x.shape.slice(ids.rank);
  const summary = `${name}: ids ${typeText(ids)} for ${typeText(x)}`;
  return fail("ShapeMismatch", summary, "ids have the first axes of x: one number for each row");
}

/**
 * Sums of the rows of x with the same number: row s of the result is that of all rows whose id (i32) is s. Ids need not be in order;
 * those out of range are left out.
 *
 * @example
 * import { segmentSum, tensor } from "tidemark";
 *
 * console.log(segmentSum(tensor([1, 2, 3]), tensor([0, 1, 0], { dtype: "i32" }), 2).toArray()); // [4, 2]
 */
export function segmentSum(x: Tensor, ids: Tensor, count: number): Tensor {
  const rest = segments("segmentSum", x, ids, count);
  return asFunction("segmentSum", () => scatterAdd(fullOf(x.dtype, [count, ...rest], 0), ids, x));
}

/**
 * Means of the rows of x with the same number; 0 for a number without rows.
 *
 * @example
 * import { segmentMean, tensor } from "tidemark";
 *
 * console.log(segmentMean(tensor([1, 4, 2]), tensor([0, 0, 1], { dtype: "i32" }), 2).toArray()); // → [2.5, 2]
 */
export function segmentMean(x: Tensor, ids: Tensor, count: number): Tensor {
  const rest = segments("segmentMean", x, ids, count);
  const dtype = requireFloat("segmentMean", x);
  return asFunction("segmentMean", () => {
    const rows = scatterAdd(fullOf("i32", [count], 0), ids, fullOf("i32", ids.shape, 1));
    const divisor = reshape(cast(maximum(rows, 1), dtype), [count, ...rest.map(() => 1)]);
    return div(segmentSum(x, ids, count), broadcastToShape(divisor, [count, ...rest]));
  });
}

/**
 * The largest of the rows of x with the same number, element by element; -∞, or the least i32, for a number without rows.
 *
 * @example
 * import { segmentMax, tensor } from "tidemark";
 *
 * console.log(segmentMax(tensor([1, 4, 2]), tensor([0, 0, 1], { dtype: "i32" }), 2).toArray()); // → [4, 2]
 */
export function segmentMax(x: Tensor, ids: Tensor, count: number): Tensor {
  const rest = segments("segmentMax", x, ids, count);
  return asFunction("segmentMax", () => scatterMax(fullOf(x.dtype, [count, ...rest], typeOf(x.dtype).lowest), ids, x));
}

/**
 * The smallest of the rows of x with the same number, element by element; ∞, or the greatest i32, for a number without rows.
 *
 * @example
 * import { segmentMin, tensor } from "tidemark";
 *
 * console.log(segmentMin(tensor([1, 4, 2]), tensor([0, 0, 1], { dtype: "i32" }), 2).toArray()); // → [1, 2]
 */
export function segmentMin(x: Tensor, ids: Tensor, count: number): Tensor {
  const rest = segments("segmentMin", x, ids, count);
  return asFunction("segmentMin", () => scatterMin(fullOf(x.dtype, [count, ...rest], typeOf(x.dtype).highest), ids, x));
}
