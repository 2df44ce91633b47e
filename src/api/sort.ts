/** @file The order of elements along an axis: sorted values, their positions, the largest or smallest of them. */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import * as indexing from "../ops/indexing.ts";
import * as ops from "../ops/sort.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { add, isnan, mul, sub, where } from "./elementwise.ts";
import { stack } from "./join.ts";
import { normalAxis, requireFloat } from "./operands.ts";
import type { ReduceOptions } from "./reduce.ts";
import { reshape, slice, squeeze } from "./shape.ts";

/** Options of {@link sort} and {@link argsort}. */
export interface SortOptions {
  /** From the largest down. Default: from the smallest up. */
  readonly descending?: boolean;
}

/** Options of {@link topK}. */
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

/** Options of {@link quantile}. */
export interface QuantileOptions extends ReduceOptions {
  /**
   * Between the two elements nearest to a place that is not whole: in proportion ("linear"), the lower or the higher one, the
   * middle of both, or the nearer one (of two equally near the one whose number is even).
   */
  readonly method?: "linear" | "lower" | "higher" | "midpoint" | "nearest";
}

const QUANTILE_OPTIONS: OptionKinds<QuantileOptions> = { keepDims: "a boolean", method: "a text" };

const toEven = (p: number): number => (Math.abs(p % 1) === 0.5 ? 2 * Math.round(p / 2) : Math.round(p));

/** Of a place p: the elements around it in order, and the share of the second one. */
const AROUND: Readonly<Record<string, (p: number) => readonly [number, number, number]>> = {
  linear: (p) => [Math.floor(p), Math.ceil(p), p - Math.floor(p)],
  lower: (p) => [Math.floor(p), Math.floor(p), 0],
  higher: (p) => [Math.ceil(p), Math.ceil(p), 0],
  midpoint: (p) => [Math.floor(p), Math.ceil(p), p % 1 === 0 ? 0 : 0.5],
  nearest: (p) => [toEven(p), toEven(p), 0],
};

function aroundOf(name: string, method: string): (p: number) => readonly [number, number, number] {
  const around = Object.hasOwn(AROUND, method) ? AROUND[method] : undefined;
  return around ?? fail("InvalidArgument", `${name}: method ${method}`, `use one of ${Object.keys(AROUND).join(", ")}`);
}

function quantilesOf(
  name: string,
  x: Tensor,
  q: readonly number[],
  options: QuantileOptions & { axis?: number },
): Tensor[] {
  requireFloat(name, x);
  const flat = options.axis === undefined ? reshape(x, [-1]) : x;
  const axis = options.axis === undefined ? 0 : normalAxis(name, options.axis, x);
  const n = at(flat.shape, axis);
  if (n === 0) fail("InvalidArgument", `${name}: no elements in ${typeText(x)}`, "check for emptiness first");
  const wrong = q.find((p) => !(typeof p === "number" && p >= 0 && p <= 1));
  if (wrong !== undefined) fail("InvalidArgument", `${name}: quantile ${String(wrong)}`, "quantiles are from 0 to 1");
  const around = aroundOf(name, options.method ?? "linear");
  return [
    ...asFunction(name, () => {
      const order = orderOf(name, flat, axis, {});
      const element = (i: number): Tensor => {
        const ranges = flat.shape.map((_, a) => (a === axis ? ([i, i + 1] as const) : null));
        return elementsInOrder(flat, slice(order, ranges), axis);
      };
      // NaN is last in order
      const isUnknown = isnan(element(n - 1));
      return q.map((p) => {
        const [lower, higher, share] = around(p * (n - 1));
        const [a, b] = [element(lower), share === 0 ? null : element(higher)];
        const between = b ? add(a, mul(sub(b, a), share)) : a;
        const kept = where(isUnknown, Number.NaN, between);
        if (options.axis === undefined) return reshape(kept, options.keepDims ? x.shape.map(() => 1) : []);
        return options.keepDims ? kept : squeeze(kept, axis);
      });
    }),
  ];
}

/**
 * Quantiles, from 0 for the smallest to 1 for the largest element, along an axis or of all elements; for a list of them along a new
 * first axis. NaN where an element is NaN. What a backward pass keeps is the positions of the elements used.
 *
 * @example
 * import { quantile, tensor } from "tidemark";
 *
 * console.log(quantile(tensor([4, 1, 3, 2]), [0, 0.5, 1]).toArray()); // [1, 2.5, 4]
 */
export function quantile(
  x: Tensor,
  q: number | readonly number[],
  axis?: number,
  options: QuantileOptions = {},
): Tensor {
  requireOptions("quantile", options, QUANTILE_OPTIONS);
  const all = { ...options, ...(axis === undefined ? {} : { axis }) };
  if (Array.isArray(q)) return stack(quantilesOf("quantile", x, q as readonly number[], all));
  return at(quantilesOf("quantile", x, [q as number], all), 0);
}

/**
 * The middle element in order along an axis or of all elements; of an even number of elements the mean of the two in the middle, as
 * in NumPy (PyTorch takes the lower one: `quantile(x, 0.5, axis, { method: "lower" })`). NaN where an element is NaN.
 *
 * @example
 * import { median, tensor } from "tidemark";
 *
 * console.log(median(tensor([3, 1, 2, 10])).item()); // → 2.5
 */
export function median(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor {
  requireOptions("median", options, { keepDims: "a boolean" });
  return at(quantilesOf("median", x, [0.5], { ...options, ...(axis === undefined ? {} : { axis }) }), 0);
}
