/** @file Reading and writing at positions that are themselves data. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { iota } from "../ops/create.ts";
import * as dynamic from "../ops/dynamic.ts";
import * as ops from "../ops/indexing.ts";
import { fail, requireArray, requireTensor, requireTypeOption, type TypeOption } from "../trace/arguments.ts";
import { numberOf, Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { cast, equal } from "./elementwise.ts";
import { stack } from "./join.ts";
import { constantOf, normalAxis } from "./operands.ts";
import { broadcastTo, expandDims, reshape, slice, transpose } from "./shape.ts";

const ONE_ROW = 'positions are an i32 tensor: tensor([0], { dtype: "i32" }); one row by its number is x.slice([0])';

/**
 * Whole rows by number: `indices` (i32, any shape) takes the place of the axis. Out of range gives NaN.
 *
 * @example
 * import { tensor } from "tidemark";
 *
 * const table = tensor([[0, 1], [10, 11], [20, 21]]);
 * console.log(table.take(tensor([2, 0], { dtype: "i32" })).toArray()); // [[20, 21], [0, 1]]
 */
export function take(x: Tensor, indices: Tensor, axis = 0): Tensor {
  requireTensor("take", "indices", indices, ONE_ROW);
  return applyOp(ops.take, [x, indices], { axis: normalAxis("take", axis, x), outside: "nan" });
}

/**
 * One element along an axis for each index: y[a, i, b] = x[a, indices[a, i, b], b]. Out of range gives NaN.
 *
 * @example
 * import { gather, tensor } from "tidemark";
 *
 * console.log(gather(tensor([[1, 2], [3, 4], [5, 6]]), tensor([[2, 0]], { dtype: "i32" })).toArray()); // → [[5, 2]]
 */
export function gather(x: Tensor, indices: Tensor, axis = 0): Tensor {
  requireTensor("gather", "indices", indices, ONE_ROW);
  return applyOp(ops.gather, [x, indices], { axis: normalAxis("gather", axis, x), outside: "nan" });
}

/**
 * x with rows of `updates` added at row numbers `indices`; repeated numbers add up, those out of range are dropped.
 *
 * @example
 * import { scatterAdd, tensor, zeros } from "tidemark";
 *
 * console.log(scatterAdd(zeros([3]), tensor([0, 2, 0], { dtype: "i32" }), tensor([1, 2, 3])).toArray()); // → [4, 0, 2]
 */
export function scatterAdd(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  requireTensor("scatterAdd", "indices", indices, ONE_ROW);
  requireTensor("scatterAdd", "updates", updates);
  return applyOp(ops.scatterAdd, [x, indices, updates], { axis: normalAxis("scatterAdd", axis, x) });
}

/**
 * x with single elements added: the counterpart of gather.
 *
 * @example
 * import { ones, scatterAddAlong, tensor, zeros } from "tidemark";
 *
 * console.log(scatterAddAlong(zeros([2, 2]), tensor([[0, 0], [1, 1]], { dtype: "i32" }), ones([2, 2])).toArray()); // → [[1, 1], [1, 1]]
 */
export function scatterAddAlong(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  requireTensor("scatterAddAlong", "indices", indices, ONE_ROW);
  requireTensor("scatterAddAlong", "updates", updates);
  return applyOp(ops.scatterAddAlong, [x, indices, updates], { axis: normalAxis("scatterAddAlong", axis, x) });
}

/**
 * One along a new last axis at the position each index names, zero elsewhere.
 *
 * @example
 * import { oneHot, tensor } from "tidemark";
 *
 * console.log(oneHot(tensor([2, 0], { dtype: "i32" }), 3).toArray()); // → [[0, 0, 1], [1, 0, 0]]
 */
export function oneHot(indices: Tensor, classes: number, type?: TypeOption): Tensor {
  return cast(oneHotMask(indices, classes), requireTypeOption("oneHot", type, "f32"));
}

/** The same as bools. @internal */
export function oneHotMask(indices: Tensor, classes: number): Tensor {
  requireTensor("oneHot", "indices", indices);
  if (!Number.isInteger(classes) || classes < 0) {
    fail("InvalidArgument", `oneHot: ${String(classes)} classes`, "the number of classes is a whole number ≥ 0");
  }
  if (!isIndexType(indices.dtype)) {
    fail(
      "DtypeMismatch",
      `oneHot: indices must be i32, got ${typeText(indices)}`,
      'convert them: cast(indices, "i32")',
    );
  }
  const shape = [...indices.shape, classes];
  const position = applyOp(iota, [], { shape, axis: indices.rank });
  return equal(position, broadcastTo(expandDims(indices, -1), shape));
}

/** Start positions, one for each axis: numbers, scalar tensors, or one i32 tensor. */
export type Starts = Tensor | readonly (number | Tensor)[];

function startsOf(name: string, x: Tensor, starts: Starts): Tensor {
  requireTensor(name, "x", x);
  if (starts instanceof Tensor) return starts;
  requireArray(name, "starts", starts, `${name}(x, [0, 0], …)`);
  if (starts.length !== x.rank) {
    fail("InvalidArgument", `${name}: ${starts.length} starts for ${typeText(x)}`, "give one start for each axis");
  }
  return stack(
    starts.map((start) => {
      return start instanceof Tensor && !numberOf(start) ? start : constantOf(name, start, "i32", []);
    }),
  );
}

/**
 * A window of fixed sizes at a start known at run time; the start is moved so that the window fits.
 *
 * @example
 * import { dynamicSlice, tensor } from "tidemark";
 *
 * console.log(dynamicSlice(tensor([1, 2, 3, 4]), [tensor(1, { dtype: "i32" })], [2]).toArray()); // → [2, 3]
 */
export function dynamicSlice(x: Tensor, starts: Starts, sizes: readonly number[]): Tensor {
  requireArray("dynamicSlice", "sizes", sizes, "dynamicSlice(x, [0, 0], [1, 3])");
  return applyOp(dynamic.dynamicSlice, [x, startsOf("dynamicSlice", x, starts)], { sizes });
}

/**
 * x with a window overwritten; updates happen in place when x is not needed any more.
 *
 * @example
 * import { dynamicUpdate, tensor } from "tidemark";
 *
 * console.log(dynamicUpdate(tensor([1, 2, 3, 4]), tensor([8, 9]), [tensor(1, { dtype: "i32" })]).toArray()); // → [1, 8, 9, 4]
 */
export function dynamicUpdate(x: Tensor, update: Tensor, starts: Starts): Tensor {
  requireTensor("dynamicUpdate", "update", update);
  return applyOp(dynamic.dynamicUpdate, [x, update, startsOf("dynamicUpdate", x, starts)], {});
}

/**
 * The main diagonal over two axes, as a new last axis; of unequal extents the smaller one is its length.
 *
 * @example
 * import { diagonal, tensor } from "tidemark";
 *
 * console.log(diagonal(tensor([[1, 2], [3, 4]])).toArray()); // → [1, 4]
 */
export function diagonal(x: Tensor, axis1 = -2, axis2 = -1): Tensor {
  const [p, q] = [normalAxis("diagonal", axis1, x), normalAxis("diagonal", axis2, x)];
  if (p === q) fail("InvalidAxis", `diagonal: axis ${p} of ${typeText(x)} twice`, "a diagonal is over two axes");
  const rest = x.shape.map((_, axis) => axis).filter((axis) => axis !== p && axis !== q);
  const [rows, columns] = [at(x.shape, p), at(x.shape, q)];
  const length = Math.min(rows, columns);
  const moved = transpose(x, [...rest, p, q]);
  // element (i, i) of a matrix is number i (columns + 1) of its elements
  const flat = reshape(moved, [...moved.shape.slice(0, -2), rows * columns]);
  const end = Math.max(0, (length - 1) * (columns + 1) + 1);
  return slice(flat, [...rest.map(() => null), [0, end, columns + 1]]);
}
