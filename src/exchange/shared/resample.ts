/**
 * @file Images of another size, as a sum over neighbours along each axis: which elements, and how much of each, is known when the program
 * is made. Every way of other frameworks to say where pixels lie comes down to such tables.
 */
import * as t from "../../api/functions.ts";
import { at } from "../../base/invariant.ts";
import type { Tensor } from "../../trace/tensor.ts";

/** For each element of the result along an axis: elements of x with their weights. */
export type Taps = readonly (readonly (readonly [index: number, weight: number])[])[];

/** Beyond this, a product with a matrix is cheaper than reading one by one. */
const MOST_TAPS = 4;

/** x with one axis resampled. */
export function resampled(x: Tensor, taps: Taps, axis: number): Tensor {
  const count = Math.max(1, ...taps.map((list) => list.length));
  if (count > MOST_TAPS) return byMatrix(x, taps, axis);
  const parts = Array.from({ length: count }, (_, k) => {
    const rows = t.tensor(Int32Array.from(taps, (list) => list[k]?.[0] ?? 0));
    const weights = taps.map((list) => list[k]?.[1] ?? 0);
    const part = t.take(x, rows, axis);
    if (weights.every((weight) => weight === 1)) return part;
    const shape = part.shape.map((extent, a) => (a === axis ? extent : 1));
    return t.mul(part, t.tensor(Float64Array.from(weights), { dtype: x.dtype, shape }));
  });
  return parts.reduce((sum, part) => t.add(sum, part));
}

function byMatrix(x: Tensor, taps: Taps, axis: number): Tensor {
  const from = at(x.shape, axis);
  const matrix = new Float64Array(from * taps.length);
  taps.forEach((list, i) => {
    for (const [index, weight] of list)
      matrix[index * taps.length + i] = (matrix[index * taps.length + i] ?? 0) + weight;
  });
  const last = x.rank - 1;
  const w = t.tensor(matrix, { dtype: x.dtype, shape: [from, taps.length] });
  return t.swapAxes(t.matmul(t.swapAxes(x, axis, last), w), axis, last);
}

/** Weights of the elements around a place, by their distance. */
export interface Kernel {
  /** How far it reaches on either side. */
  readonly reach: number;
  weight(distance: number): number;
}

export const LINEAR: Kernel = { reach: 1, weight: (d) => Math.max(0, 1 - Math.abs(d)) };

/** Keys' cubic convolution. */
export const cubic = (a: number): Kernel => ({
  reach: 2,
  weight: (distance) => {
    const d = Math.abs(distance);
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
  },
});

export interface Resampling {
  readonly from: number;
  readonly kernel: Kernel;
  /** Makes the kernel wider where the result is smaller: below 1. */
  readonly shrink: number;
  /** Elements beyond the edge count nothing, and the others more. */
  readonly excludeOutside: boolean;
}

/** Weights around each place of x; elements beyond the edge are those at it. */
export function tapsAt(places: readonly number[], { from, kernel, shrink, excludeOutside }: Resampling): Taps {
  const reach = kernel.reach / shrink;
  return places.map((place) => {
    const first = Math.ceil(place - reach - 1e-9);
    const last = Math.floor(place + reach + 1e-9);
    const found = new Map<number, number>();
    for (let i = first; i <= last; i++) {
      const weight = kernel.weight((i - place) * shrink);
      if (weight === 0 || (excludeOutside && (i < 0 || i >= from))) continue;
      const index = Math.min(Math.max(i, 0), from - 1);
      found.set(index, (found.get(index) ?? 0) + weight);
    }
    const total = [...found.values()].reduce((sum, weight) => sum + weight, 0);
    const scale = excludeOutside || shrink !== 1 ? 1 / total : 1;
    return [...found].map(([index, weight]) => [index, weight * scale] as const);
  });
}
