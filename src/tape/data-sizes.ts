/**
 * @file Functions whose results are as large as data says. They count first, by reading a number, so they work on tapes and on concrete tensors,
 * and not inside of what is compiled; there `nonzero` and `unique` of `tidemark` take a size.
 */
import { cast, notEqual } from "../api/elementwise.ts";
import { take } from "../api/indexing.ts";
import { sum } from "../api/reduce.ts";
import { nonzero, unique } from "../api/search.ts";
import { reshape } from "../api/shape.ts";
import { shapeText, typeText } from "../ir/type.ts";
import { isBool } from "../kernel/dtype.ts";
import { fail, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { currentTrace } from "../trace/trace.ts";

/** Throws inside of a traced function: how many elements there are is not known before it runs. */
function requireValues(name: string, help: string): void {
  const trace = currentTrace();
  if (!trace || trace.hasValues) return;
  const inside = trace.build.name;
  fail("SideEffect", `${name}: the size of its result depends on values, and ${inside} is being traced without`, help);
}

function countOf(x: Tensor): number {
  const isThere = isBool(x.dtype) ? x : notEqual(x, 0);
  return sum(cast(isThere, "i32")).item();
}

/**
 * Positions of all elements that are not zero (or not false), row by row.
 *
 * @memory The number of positions is read: everything that `x` depends on is computed for it. Positions have no
 * derivative.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { nonzeroPositions } from "tidemark/tape";
 *
 * console.log(nonzeroPositions(tensor([[0, 7], [5, 0]])).toArray()); // [[0, 1], [1, 0]]
 */
export function nonzeroPositions(x: Tensor): Tensor {
  requireTensor("nonzeroPositions", "x", x);
  requireValues("nonzeroPositions", "give the most there can be: nonzero(x, size) of tidemark; or call it on a tape");
  return nonzero(x, countOf(x)).indices;
}

/**
 * The distinct elements in ascending order.
 *
 * @memory The number of values is read: everything that `x` depends on is computed for it.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { uniqueValues } from "tidemark/tape";
 *
 * console.log(uniqueValues(tensor([3, 1, 3, 2])).toArray()); // [1, 2, 3]
 */
export function uniqueValues(x: Tensor): Tensor {
  requireTensor("uniqueValues", "x", x);
  requireValues("uniqueValues", "give the most there can be: unique(x, size) of tidemark; or call it on a tape");
  return unique(x, unique(x, x.elements).count.item()).values;
}

/**
 * What a mask of booleans selects: rows of `x`, for a mask over its first axes, or elements, for a mask of its shape. Gradients go back
 * to where the elements came from.
 *
 * @memory The number of elements is read: everything that the mask depends on is computed for it. The derivative
 * reads positions, and nothing of `x`.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { maskedSelect } from "tidemark/tape";
 *
 * const x = tensor([[1, 2], [3, 4], [5, 6]]);
 * console.log(maskedSelect(x, tensor([true, false, true])).toArray()); // [[1, 2], [5, 6]]
 * console.log(maskedSelect(x, x.greater(3)).toArray()); // [4, 5, 6]
 */
export function maskedSelect(x: Tensor, mask: Tensor): Tensor {
  requireTensor("maskedSelect", "x", x);
  requireTensor("maskedSelect", "mask", mask);
  requireValues("maskedSelect", "keep the shape: where(mask, x, 0); or call it on a tape");
  if (!isBool(mask.dtype)) {
    fail(
      "DtypeMismatch",
      `maskedSelect: the mask is ${typeText(mask)}`,
      'compare: x.greater(0); or cast it: mask.cast("bool")',
    );
  }
  const leading = x.shape.slice(0, mask.rank);
  if (shapeText(leading) !== shapeText(mask.shape)) {
    const help = "the mask has the shape of x, or of its first axes";
    fail("ShapeMismatch", `maskedSelect: a mask ${typeText(mask)} for ${typeText(x)}`, help);
  }
  const count = countOf(mask);
  const rows = reshape(nonzero(reshape(mask, [mask.elements]), count).indices, [count]);
  return take(reshape(x, [mask.elements, ...x.shape.slice(mask.rank)]), rows);
}
