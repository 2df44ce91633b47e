/** @file Looking values up and counting them: places in sorted rows, histograms, distinct elements, elements that are not zero. */
import { at } from "../base/invariant.ts";
import { elementsOf, typeText } from "../ir/type.ts";
import { isBool, isFloat, isIndexType } from "../kernel/dtype.ts";
import * as ops from "../ops/sort.ts";
import { describe, fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { arange } from "./create.ts";
import { add, cast, div, equal, less, mul, notEqual, sub, where } from "./elementwise.ts";
import { scatterAdd, take } from "./indexing.ts";
import { concat, stack } from "./join.ts";
import { asTensor, fullOf, type TensorLike } from "./operands.ts";
import { cumsum, max, min } from "./reduce.ts";
import { reshape, slice } from "./shape.ts";
import { elementsInOrder, orderOf } from "./sort.ts";

function requireCount(name: string, what: string, count: number): void {
  if (Number.isInteger(count) && count >= 0) return;
  fail("InvalidArgument", `${name}: ${what} is ${describe(count)}`, `${what} is a whole number ≥ 0`);
}

/** Options of {@link searchsorted}. */
export interface SearchOptions {
  /** Behind elements that equal a value, not before them. */
  readonly side?: "left" | "right";
}

/**
 * Where values belong in rows that are in ascending order: how many elements of the row are below each value, or with `side: "right"`
 * not above it. `sorted` is one row [n], or has the axes of `values` but for the last. NaN is above all numbers. i32.
 *
 * @example
 * import { searchsorted, tensor } from "tidemark";
 *
 * console.log(searchsorted(tensor([1, 3, 5]), tensor([0, 3, 9])).toArray()); // [0, 1, 3]
 */
export function searchsorted(sorted: Tensor, values: TensorLike, options: SearchOptions = {}): Tensor {
  requireTensor("searchsorted", "sorted", sorted);
  requireOptions("searchsorted", options, { side: "a text" });
  const wanted = typeof values === "number" ? fullOf(sorted.dtype, [], values) : asTensor("searchsorted", values);
  return applyOp(ops.searchsorted, [sorted, wanted], { side: options.side ?? "left" });
}

function requireNumbers(name: string, x: Tensor): void {
  requireTensor(name, "x", x);
  if (isIndexType(x.dtype)) return;
  fail("DtypeMismatch", `${name}: takes whole numbers (i32), got ${typeText(x)}`, 'convert them: cast(x, "i32")');
}

/** Weights of all elements in a row: 1 where none are given. */
function weightsOf(name: string, x: Tensor, weights: Tensor | undefined): Tensor {
  if (weights === undefined) return fullOf("i32", [x.elements], 1);
  requireTensor(name, "weights", weights);
  if (weights.elements === x.elements) return reshape(weights, [x.elements]);
  const summary = `${name}: weights ${typeText(weights)} for ${typeText(x)}`;
  return fail("ShapeMismatch", summary, "give one weight for each element");
}

/**
 * How often each of 0 … length - 1 occurs in x (i32), or the sum of the weights that it occurs with. Other numbers are not counted.
 *
 * @example
 * import { bincount, tensor } from "tidemark";
 *
 * console.log(bincount(tensor([0, 2, 2], { dtype: "i32" }), 4).toArray()); // [1, 0, 2, 0]
 */
export function bincount(x: Tensor, length: number, weights?: Tensor): Tensor {
  requireNumbers("bincount", x);
  requireCount("bincount", "length", length);
  const given = weightsOf("bincount", x, weights);
  const none = fullOf(given.dtype, [length], 0);
  return asFunction("bincount", () => scatterAdd(none, reshape(x, [x.elements]), given));
}

/** Options of {@link histogram}. */
export interface HistogramOptions {
  /** From the left edge of the first bin to the right edge of the last one; by default from the smallest to the largest element. */
  readonly range?: readonly [number, number];
  /** A weight for each element in place of 1. */
  readonly weights?: Tensor;
}

/** Elements, or sums of weights, in each bin, and the edges of the bins. */
export interface Histogram {
  readonly counts: Tensor;
  readonly edges: Tensor;
}

const HISTOGRAM_OPTIONS: OptionKinds<HistogramOptions> = { range: "anything", weights: "anything" };

function edgesOf(x: Tensor, bins: number, range: readonly [number, number] | undefined): Tensor {
  requireCount("histogram", "bins", bins);
  if (bins === 0) fail("InvalidArgument", "histogram: 0 bins", "give at least one");
  const isRange =
    range === undefined || (Array.isArray(range) && range.length === 2 && Number(range[0]) < Number(range[1]));
  if (!isRange)
    fail("InvalidArgument", `histogram: range ${JSON.stringify(range)}`, "give [least, most], least < most");
  if (!range && x.elements === 0) return edgesOf(x, bins, [0, 1]);
  const flat = reshape(x, [x.elements]);
  const [least, most] = range ? [fullOf(x.dtype, [], range[0]), fullOf(x.dtype, [], range[1])] : [min(flat), max(flat)];
  // all elements alike: half a unit to both sides
  const half = where(equal(least, most), 0.5, fullOf(x.dtype, [], 0));
  const [from, to] = [sub(least, half), add(most, half)];
  const steps = div(mul(cast(arange(bins), x.dtype), sub(to, from)), bins);
  return concat([add(from, steps), reshape(to, [1])]);
}

/**
 * How many elements of x fall into each bin: `bins` equal ones, or those between edges in ascending order. A bin holds its left
 * edge, the last one also its right edge; elements outside, and NaN, are not counted.
 *
 * @example
 * import { histogram, tensor } from "tidemark";
 *
 * console.log(histogram(tensor([0, 1, 1, 2, 4]), 2).counts.toArray()); // [3, 2]
 */
export function histogram(x: Tensor, bins: number | Tensor, options: HistogramOptions = {}): Histogram {
  requireTensor("histogram", "x", x);
  requireOptions("histogram", options, HISTOGRAM_OPTIONS);
  if (!isFloat(x.dtype)) fail("DtypeMismatch", `histogram: takes floats, got ${typeText(x)}`, 'cast(x, "f32")');
  return asFunction("histogram", () => {
    const edges = bins instanceof Tensor ? bins : edgesOf(x, bins, options.range);
    const count = at(edges.shape, 0) - 1;
    const flat = reshape(x, [x.elements]);
    const bin = sub(searchsorted(edges, flat, { side: "right" }), 1);
    const last = slice(edges, [count]);
    return {
      counts: bincount(where(equal(flat, last), count - 1, bin), count, weightsOf("histogram", x, options.weights)),
      edges,
    };
  });
}

/** Options of {@link unique}. */
export interface UniqueOptions {
  /** In place of values beyond the last one; 0 by default. */
  readonly fill?: number;
}

/** The first `size` distinct elements in ascending order, and what they say about the elements of x. */
export interface Unique {
  readonly values: Tensor;
  /** How often each value occurs (i32). */
  readonly counts: Tensor;
  /** For each element of x, in its shape, the number of its value (i32). */
  readonly inverse: Tensor;
  /** How many distinct elements there are, also if they are more than `size` (i32). */
  readonly count: Tensor;
}

/**
 * The distinct elements of x in ascending order. Shapes are known before a program runs, so their number is an argument: where there
 * are fewer, `fill` follows; where there are more, the largest are left out, which `count` shows. NaN differs from itself, as in PyTorch.
 *
 * @example
 * import { tensor, unique } from "tidemark";
 *
 * const { values, counts } = unique(tensor([3, 1, 3, 2]), 4);
 * console.log(values.toArray(), counts.toArray()); // [1, 2, 3, 0] [1, 1, 2, 0]
 */
export function unique(x: Tensor, size: number, options: UniqueOptions = {}): Unique {
  requireTensor("unique", "x", x);
  requireCount("unique", "size", size);
  requireOptions("unique", options, { fill: "a number" });
  const n = x.elements;
  const none = (count: number): Tensor => fullOf("i32", [count], 0);
  const fill = fullOf(x.dtype, [size], options.fill ?? 0);
  if (n === 0)
    return { values: fill, counts: none(size), inverse: reshape(none(0), x.shape), count: fullOf("i32", [], 0) };
  return asFunction("unique", () => {
    const flat = reshape(x, [n]);
    const order = orderOf("unique", flat, 0, {});
    const sorted = elementsInOrder(flat, order, 0);
    const differs = notEqual(slice(sorted, [[1, null]]), slice(sorted, [[0, -1]]));
    const isFirst = concat([fullOf("bool", [1], 1), differs]);
    const group = sub(cumsum(cast(isFirst, "i32")), 1);
    const count = add(slice(group, [-1]), 1);
    const first = scatterAdd(none(size), where(isFirst, group, size), arange(n));
    const values = where(less(arange(size), count), take(sorted, first), fill);
    const counts = scatterAdd(none(size), group, fullOf("i32", [n], 1));
    return { values, counts, inverse: reshape(scatterAdd(none(n), order, group), x.shape), count };
  });
}

/** Positions of elements that are not zero, and their number. */
export interface Nonzero {
  /** A row of numbers along each axis for each element: i32 [size, rank]. */
  readonly indices: Tensor;
  /** How many there are, also if they are more than `size` (i32). */
  readonly count: Tensor;
}

/**
 * Positions of the first `size` elements that are not zero (or not false), row by row; where there are fewer, rows of -1 follow, which
 * `take` and `scatterAdd` know as out of range.
 *
 * @example
 * import { nonzero, tensor } from "tidemark";
 *
 * console.log(nonzero(tensor([[0, 7], [5, 0]]), 3).indices.toArray()); // [[0, 1], [1, 0], [-1, -1]]
 */
export function nonzero(x: Tensor, size: number): Nonzero {
  requireTensor("nonzero", "x", x);
  requireCount("nonzero", "size", size);
  const n = x.elements;
  if (n === 0) return { indices: fullOf("i32", [size, x.rank], -1), count: fullOf("i32", [], 0) };
  return asFunction("nonzero", () => {
    const flat = reshape(x, [n]);
    const isMeant = isBool(flat.dtype) ? flat : notEqual(flat, 0);
    const before = cumsum(cast(isMeant, "i32"));
    const count = slice(before, [-1]);
    const place = where(isMeant, sub(before, 1), size);
    const number = scatterAdd(fullOf("i32", [size], 0), place, arange(n));
    const isThere = less(arange(size), count);
    const along = x.shape.map((extent, axis) => {
      const over = div(number, elementsOf(x.shape.slice(axis + 1)));
      return where(isThere, sub(over, mul(div(over, extent), extent)), -1);
    });
    return { indices: along.length === 0 ? fullOf("i32", [size, 0], 0) : stack(along, 1), count };
  });
}
