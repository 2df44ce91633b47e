/** @file Tensors put together, taken apart and repeated. */
import { at } from "../base/invariant.ts";
import { sameShape, shapeText, typeText } from "../ir/type.ts";
import * as ops from "../ops/concat.ts";
import { fail, requireArray, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { applyOp, ownCopy } from "./apply.ts";
import { broadcastToShape, normalAxis } from "./operands.ts";
import { expandDims, reshape, slice } from "./shape.ts";

function firstOf(name: string, tensors: readonly Tensor[]): Tensor {
  requireArray(name, "the tensors", tensors, `${name}([x, y])`);
  tensors.forEach((x, i) => {
    requireTensor(name, `item ${i}`, x);
  });
  return (
    tensors[0] ??
    fail("InvalidArgument", `${name}: needs at least one tensor, got none`, "check the list for emptiness first")
  );
}

/**
 * Tensors one after the other along an axis.
 *
 * @example
 * import { concat, tensor } from "tidemark";
 *
 * console.log(concat([tensor([1, 2]), tensor([3])]).toArray()); // [1, 2, 3]
 */
export function concat(tensors: readonly Tensor[], axis = 0): Tensor {
  const first = firstOf("concat", tensors);
  return tensors.length === 1
    ? ownCopy(first)
    : applyOp(ops.concat, tensors, { axis: normalAxis("concat", axis, first) });
}

/**
 * Tensors of one shape along a new axis.
 *
 * @example
 * import { stack, tensor } from "tidemark";
 *
 * console.log(stack([tensor([1, 2]), tensor([3, 4])]).toArray()); // → [[1, 2], [3, 4]]
 */
export function stack(tensors: readonly Tensor[], axis = 0): Tensor {
  const first = firstOf("stack", tensors);
  const other = tensors.find((x) => !sameShape(x.shape, first.shape));
  if (other)
    fail(
      "ShapeMismatch",
      `stack: shapes differ: ${typeText(first)}, ${typeText(other)}`,
      "use concat to join unequal ones",
    );
  const place = normalAxis("stack", axis, first, first.rank + 1);
  return concat(
    tensors.map((x) => expandDims(x, place)),
    place,
  );
}

/** None unless the number of parts is one. */
const equalParts = (extent: number, parts: number): readonly number[] =>
  Number.isInteger(parts) && parts > 0 ? new Array<number>(parts).fill(extent / parts) : [-1];

/**
 * Cut along an axis into equal parts, or into parts of the given extents.
 *
 * @example
 * import { split, tensor } from "tidemark";
 *
 * console.log(split(tensor([1, 2, 3, 4]), [1, 3]).map((part) => part.toArray())); // → [[1], [2, 3, 4]]
 */
export function split(x: Tensor, parts: number | readonly number[], axis = 0): readonly Tensor[] {
  const along = normalAxis("split", axis, x);
  const extent = at(x.shape, along);
  if (typeof parts !== "number") requireArray("split", "parts", parts, "x.split([2, 3]); a number makes equal parts");
  const sizes = typeof parts === "number" ? equalParts(extent, parts) : parts;
  if (sizes.reduce((n, size) => n + size, 0) !== extent || sizes.some((size) => !Number.isInteger(size) || size < 0)) {
    const wanted = typeof parts === "number" ? `${parts} equal parts` : `parts of ${shapeText(parts)}`;
    fail(
      "ShapeMismatch",
      `split: axis ${along} of ${typeText(x)} does not split into ${wanted}`,
      `the parts must add up to ${extent}`,
    );
  }
  let start = 0;
  return sizes.map((size) => {
    start += size;
    return slice(
      x,
      x.shape.map((_, a) => (a === along ? ([start - size, start] as const) : null)),
    );
  });
}

/**
 * The whole tensor, `counts` times along each axis; counts for missing axes in front are allowed.
 *
 * @example
 * import { tensor, tile } from "tidemark";
 *
 * console.log(tile(tensor([1, 2]), [2]).toArray()); // → [1, 2, 1, 2]
 */
export function tile(x: Tensor, counts: readonly number[]): Tensor {
  requireTensor("tile", "x", x);
  requireArray("tile", "counts", counts, "x.tile([2, 1])");
  const rank = Math.max(x.rank, counts.length);
  const shape = [...new Array<number>(rank - x.rank).fill(1), ...x.shape];
  const times = [...new Array<number>(rank - counts.length).fill(1), ...counts];
  if (times.some((n) => !Number.isInteger(n) || n < 0)) {
    fail("InvalidArgument", `tile: counts ${shapeText(counts)}`, "counts are whole numbers ≥ 0");
  }
  // [n] → [1, n] → [count, n] → [count · n]
  const spread = reshape(
    x,
    shape.flatMap((extent) => [1, extent]),
  );
  const repeated = broadcastToShape(
    spread,
    shape.flatMap((extent, axis) => [at(times, axis), extent]),
  );
  return ownCopy(
    reshape(
      repeated,
      shape.map((extent, axis) => extent * at(times, axis)),
    ),
  );
}

/**
 * Every element `count` times in a row along an axis.
 *
 * @example
 * import { repeat, tensor } from "tidemark";
 *
 * console.log(repeat(tensor([1, 2]), 2).toArray()); // → [1, 1, 2, 2]
 */
export function repeat(x: Tensor, count: number, axis = 0): Tensor {
  if (!Number.isInteger(count) || count < 0)
    fail("InvalidArgument", `repeat: count ${count}`, "a count is a whole number ≥ 0");
  const along = normalAxis("repeat", axis, x);
  const wide = expandDims(x, along + 1);
  const spread = broadcastToShape(wide, wide.shape.with(along + 1, count));
  return ownCopy(reshape(spread, x.shape.with(along, at(x.shape, along) * count)));
}
