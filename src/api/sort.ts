/** @file The order of elements along an axis: sorted values, their positions, the largest or smallest of them. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import * as indexing from "../ops/indexing.ts";
import * as ops from "../ops/sort.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { normalAxis } from "./operands.ts";

export interface SortOptions {
  /** From the largest down. Default: from the smallest up. */
  readonly descending?: boolean;
}

export interface TopKOptions {
  /** Default: the last. */
  readonly axis?: number;
  /** The largest, from the largest down; otherwise the smallest, from the smallest up. Default: true. */
  readonly largest?: boolean;
}

/** Elements in order, and where along the axis they were. */
export interface TopK {
  readonly values: Tensor;
  readonly indices: Tensor;
}

const SORT_OPTIONS: OptionKinds<SortOptions> = { descending: "a boolean" };
const TOP_K_OPTIONS: OptionKinds<TopKOptions> = { axis: "a number", largest: "a boolean" };

/** Positions of all elements along an axis in order. @internal */
export function orderOf(name: string, x: Tensor, axis: number, options: SortOptions): Tensor {
  requireOptions(name, options, SORT_OPTIONS);
  const along = normalAxis(name, axis, x);
  return applyOp(ops.argsort, [x], { axis: along, descending: options.descending ?? false, count: at(x.shape, along) });
}

/** The elements at positions along an axis, which are in range. @internal */
export function elementsInOrder(x: Tensor, indices: Tensor, axis: number): Tensor {
  return applyOp(indexing.gather, [x, indices], { axis, outside: "zero" });
}

/**
 * Positions (i32) along an axis, the last by default, of the elements in order: those of `sort`. Equal elements stay in the order
 * that they have, in both directions; -0 equals 0; NaN is above all numbers, so it comes last, or first with `descending`.
 *
 * @example
 * import { argsort, tensor } from "tidemark";
 *
 * console.log(argsort(tensor([3, 1, 2])).toArray()); // [1, 2, 0]
 */
export function argsort(x: Tensor, axis = -1, options: SortOptions = {}): Tensor {
  return orderOf("argsort", x, axis, options);
}

/**
 * The elements along an axis, the last by default, in order; `argsort` says which comes where. What a backward pass keeps is the
 * positions, not the elements.
 *
 * @example
 * import { sort, tensor } from "tidemark";
 *
 * const x = tensor([3, 1, 2]);
 * console.log(sort(x).toArray(), sort(x, 0, { descending: true }).toArray()); // [1, 2, 3] [3, 2, 1]
 */
export function sort(x: Tensor, axis = -1, options: SortOptions = {}): Tensor {
  return asFunction("sort", () => elementsInOrder(x, orderOf("sort", x, axis, options), normalAxis("sort", axis, x)));
}

/**
 * The k largest elements along an axis, the last by default, from the largest down, and their positions (i32); with `largest: false`
 * the smallest, from the smallest up. Of equal elements those that come first are taken first; NaN is above all numbers.
 *
 * @example
 * import { tensor, topK } from "tidemark";
 *
 * const { values, indices } = topK(tensor([[1, 5, 2], [7, 3, 9]]), 2);
 * console.log(values.toArray(), indices.toArray()); // [[5, 2], [9, 7]] [[1, 2], [2, 0]]
 */
export function topK(x: Tensor, k: number, options: TopKOptions = {}): TopK {
  requireOptions("topK", options, TOP_K_OPTIONS);
  const along = normalAxis("topK", options.axis ?? -1, x);
  const extent = at(x.shape, along);
  if (!Number.isInteger(k) || k < 0 || k > extent) {
    const summary = `topK: ${String(k)} of ${extent} elements along axis ${along} of ${typeText(x)}`;
    fail("InvalidArgument", summary, `k is a whole number from 0 to ${extent}`);
  }
  return asFunction("topK", () => {
    const indices = applyOp(ops.argsort, [x], { axis: along, descending: options.largest ?? true, count: k });
    return { values: elementsInOrder(x, indices, along), indices };
  });
}
