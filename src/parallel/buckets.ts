/**
 * @file Exchanges of many tensors as few of their own: tensors that are small travel together, in buckets of a limited size, because
 * every exchange has a latency. Large ones travel alone, without a copy. Gradients come out of the backward pass in the order from
 * the last parameter to the first, so that is the order in which buckets are filled.
 */
import { concat } from "../api/join.ts";
import { reshape, slice } from "../api/shape.ts";
import { at } from "../base/invariant.ts";
import { byteLength, elementsOf, type Shape } from "../ir/type.ts";
import { type Tensor, tensorTypeOf } from "../trace/tensor.ts";

/** Tensors in buckets of at most so many bytes, the last first: their numbers. One that does not fit is alone. */
export function bucketsOf(tensors: readonly Tensor[], limit: number): readonly (readonly number[])[] {
  const open = new Map<string, { numbers: number[]; bytes: number }>();
  const made: number[][] = [];
  for (const [i, x] of [...tensors.entries()].reverse()) {
    const type = tensorTypeOf(x);
    const [key, bytes] = [`${type.dtype} ${type.varies?.over}`, byteLength(type)];
    const bucket = open.get(key);
    if (bucket && bucket.bytes + bytes <= limit) {
      bucket.numbers.push(i);
      bucket.bytes += bytes;
      continue;
    }
    const next = { numbers: [i], bytes };
    made.push(next.numbers);
    if (bytes <= limit) open.set(key, next);
  }
  return made;
}

/** Applies an exchange to tensors joined along their last axis, and takes the result apart. */
function together(rows: readonly Tensor[], limit: number, exchange: (x: Tensor) => Tensor): readonly Tensor[] {
  const made: Tensor[] = [];
  for (const numbers of bucketsOf(rows, limit)) {
    const own = numbers.map((i) => at(rows, i));
    const last = at(own, 0).rank - 1;
    const whole = exchange(own.length === 1 ? at(own, 0) : concat(own, last));
    let from = 0;
    for (const [n, i] of numbers.entries()) {
      const width = at(at(own, n).shape, last);
      const ranges = whole.shape.map((_, axis) => (axis === whole.rank - 1 ? ([from, from + width] as const) : null));
      made[i] = own.length === 1 ? whole : slice(whole, ranges);
      from += width;
    }
  }
  return made;
}

/** An exchange that keeps sizes, of tensors of any shapes. */
export function sameTogether(xs: readonly Tensor[], limit: number, exchange: (x: Tensor) => Tensor): readonly Tensor[] {
  const flat = xs.map((x) => reshape(x, [x.elements]));
  return together(flat, limit, exchange).map((y, i) => reshape(y, at(xs, i).shape));
}

/** An exchange of rows [p, …] that are joined along the last axis; it may take or make the first one. */
export const rowsTogether = together;

/** The shape of a tensor without elements that says another's: its axes but for the first. */
export const shapeOf = (x: Tensor): Shape => x.shape.slice(1);

/** Whether there is anything to send. */
export const isEmpty = (shape: Shape): boolean => elementsOf(shape) === 0;
