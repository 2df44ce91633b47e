/** @file Reading and writing at positions as other frameworks number them: negative ones count from the end, several axes at once. */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import { elementsOf } from "../../ir/type.ts";
import type { Tensor } from "../../trace/tensor.ts";

/** Positions below zero count from the end of an axis. */
export function fromEnd(indices: Tensor, extent: number): Tensor {
  return t.where(t.less(indices, 0), t.add(indices, extent), indices);
}

/** How updates meet what is there. */
export type Reduction = "none" | "add" | "mul" | "max" | "min";

const ROWS: Readonly<Record<Reduction, typeof t.scatterSet>> = {
  none: t.scatterSet,
  add: t.scatterAdd,
  mul: t.scatterMul,
  max: t.scatterMax,
  min: t.scatterMin,
};
const ALONG: Readonly<Record<Reduction, typeof t.scatterSetAlong>> = {
  none: t.scatterSetAlong,
  add: t.scatterAddAlong,
  mul: t.scatterMulAlong,
  max: t.scatterMaxAlong,
  min: t.scatterMinAlong,
};

/** Whether a table of indices covers x on every axis but one. */
const covers = (x: Tensor, indices: Tensor, axis: number): boolean =>
  x.shape.every((extent, a) => a === axis || extent === indices.shape[a]);

/** For each element of `indices` its place among the elements of x: its own position, along one axis the index. */
function places(x: Tensor, indices: Tensor, axis: number): Tensor {
  const strides = x.shape.map((_, a) => elementsOf(x.shape.slice(a + 1)));
  const parts = indices.shape.map((extent, a) => {
    if (a === axis) return t.mul(indices, at(strides, a));
    const shape = indices.shape.map((_, b) => (b === a ? extent : 1));
    return t.mul(t.reshape(t.arange(extent), shape), at(strides, a));
  });
  return parts.reduce((sum, part) => t.add(sum, part));
}

/** One element along an axis for each index; `indices` may be smaller than x on other axes. */
export function gatherAlong(x: Tensor, given: Tensor, axis: number): Tensor {
  const indices = fromEnd(given, at(x.shape, axis));
  if (covers(x, indices, axis)) return t.gather(x, indices, axis);
  return t.take(t.reshape(x, [-1]), places(x, indices, axis));
}

/** The counterpart of `gatherAlong`. */
export function scatterAlong(
  x: Tensor,
  given: Tensor,
  updates: Tensor,
  how: { axis: number; reduction: Reduction },
): Tensor {
  const { axis, reduction } = how;
  const indices = fromEnd(given, at(x.shape, axis));
  if (covers(x, indices, axis)) return ALONG[reduction](x, indices, updates, axis);
  const flat = t.reshape(places(x, indices, axis), [-1]);
  return t.reshape(ROWS[reduction](t.reshape(x, [-1]), flat, t.reshape(updates, [-1])), x.shape);
}

/** Row numbers of x over its first axes, for tuples of positions along the last axis of `indices`. */
export function rowNumbers(shape: readonly number[], indices: Tensor): Tensor {
  const depth = at(indices.shape, indices.rank - 1);
  const columns = Array.from({ length: depth }, (_, k) => {
    const one = t.slice(indices, [...indices.shape.slice(0, -1).map(() => null), k]);
    return t.mul(fromEnd(one, at(shape, k)), elementsOf(shape.slice(k + 1, depth)));
  });
  return columns.reduce((sum, one) => t.add(sum, one));
}

/** Rows replaced or combined at tuples of positions. */
export function scatterRows(x: Tensor, indices: Tensor, updates: Tensor, reduction: Reduction): Tensor {
  const depth = at(indices.shape, indices.rank - 1);
  const [count, width] = [elementsOf(x.shape.slice(0, depth)), elementsOf(x.shape.slice(depth))];
  const numbers = t.reshape(rowNumbers(x.shape, indices), [-1]);
  const rows = t.reshape(updates, [at(numbers.shape, 0), width]);
  return t.reshape(ROWS[reduction](t.reshape(x, [count, width]), numbers, rows), x.shape);
}
