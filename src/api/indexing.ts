/** @file Reading and writing at positions that are themselves data. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import type { DType } from "../kernel/dtype.ts";
import { iota } from "../ops/create.ts";
import * as dynamic from "../ops/dynamic.ts";
import * as ops from "../ops/indexing.ts";
import { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { cast, equal } from "./elementwise.ts";
import { stack } from "./join.ts";
import { constantOf, fail, normalAxis } from "./operands.ts";
import { broadcastTo, expandDims, reshape, slice, transpose } from "./shape.ts";

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
  return applyOp(ops.take, [x, indices], { axis: normalAxis("take", axis, x), outside: "nan" });
}

/** One element along an axis for each index: y[a, i, b] = x[a, indices[a, i, b], b]. Out of range gives NaN. */
export function gather(x: Tensor, indices: Tensor, axis = 0): Tensor {
  return applyOp(ops.gather, [x, indices], { axis: normalAxis("gather", axis, x), outside: "nan" });
}

/** x with rows of `updates` added at row numbers `indices`; repeated numbers add up, those out of range are dropped. */
export function scatterAdd(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return applyOp(ops.scatterAdd, [x, indices, updates], { axis: normalAxis("scatterAdd", axis, x) });
}

/** x with single elements added: the counterpart of gather. */
export function scatterAddAlong(x: Tensor, indices: Tensor, updates: Tensor, axis = 0): Tensor {
  return applyOp(ops.scatterAddAlong, [x, indices, updates], { axis: normalAxis("scatterAddAlong", axis, x) });
}

/** One along a new last axis at the position each index names, zero elsewhere. */
export function oneHot(indices: Tensor, classes: number, dtype: DType = "f32"): Tensor {
  return cast(oneHotMask(indices, classes), dtype);
}

/** The same as bools. @internal */
export function oneHotMask(indices: Tensor, classes: number): Tensor {
  if (indices.dtype !== "i32") {
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
  if (starts instanceof Tensor) return starts;
  if (starts.length !== x.rank) {
    fail("InvalidArgument", `${name}: ${starts.length} starts for ${typeText(x)}`, "give one start for each axis");
  }
  return stack(starts.map((start) => (typeof start === "number" ? constantOf(name, start, "i32", []) : start)));
}

/** A window of fixed sizes at a start known at run time; the start is moved so that the window fits. */
export function dynamicSlice(x: Tensor, starts: Starts, sizes: readonly number[]): Tensor {
  return applyOp(dynamic.dynamicSlice, [x, startsOf("dynamicSlice", x, starts)], { sizes });
}

/** x with a window overwritten; updates happen in place when x is not needed any more. */
export function dynamicUpdate(x: Tensor, update: Tensor, starts: Starts): Tensor {
  return applyOp(dynamic.dynamicUpdate, [x, update, startsOf("dynamicUpdate", x, starts)], {});
}

/** The main diagonal over two axes, as a new last axis. */
export function diagonal(x: Tensor, axis1 = -2, axis2 = -1): Tensor {
  const [p, q] = [normalAxis("diagonal", axis1, x), normalAxis("diagonal", axis2, x)];
  if (p === q || x.shape[p] !== x.shape[q]) {
    fail(
      "ShapeMismatch",
      `diagonal: axes ${p} and ${q} of ${typeText(x)} must be two of one extent`,
      "slice to a square first",
    );
  }
  const rest = x.shape.map((_, axis) => axis).filter((axis) => axis !== p && axis !== q);
  const n = at(x.shape, p);
  const moved = transpose(x, [...rest, p, q]);
  // element (i, i) of an n × n matrix is number i (n + 1) of its elements
  const flat = reshape(moved, [...moved.shape.slice(0, -2), n * n]);
  return n === 0 ? flat : slice(flat, [...rest.map(() => null), [0, null, n + 1]]);
}
