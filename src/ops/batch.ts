/** @file What rules for batches share: an operand repeated along the batch, and axes moved from one place to another. */
import { at } from "../base/invariant.ts";
import type { BatchSite } from "../ir/batch.ts";
import type { Build } from "../ir/build.ts";
import type { Value } from "../ir/graph.ts";
import type { Shape } from "../ir/type.ts";
import { broadcast } from "./broadcast.ts";
import { reshape, transpose } from "./movement.ts";

/** A value with a new first axis along which it does not vary. */
export function repeated(b: Build, x: Value, size: number): Value {
  const { shape } = x.type;
  return b.call(broadcast, [x], { shape: [size, ...shape], axes: shape.map((_, axis) => axis + 1) });
}

/** An operand with the batch's axis. */
export function withAxis(b: Build, { x, batched, size }: BatchSite<unknown>, i: number): Value {
  return batched[i] ? at(x, i) : repeated(b, at(x, i), size);
}

/** A value with one axis at another place, the others in their order. */
export function movedAxis(b: Build, x: Value, from: number, to: number): Value {
  if (from === to) return x;
  const perm = x.type.shape.map((_, axis) => axis).filter((axis) => axis !== from);
  perm.splice(to, 0, from);
  return b.call(transpose, [x], { perm });
}

export const reshaped = (b: Build, x: Value, shape: Shape): Value => b.call(reshape, [x], { shape });

/** A value without its axis `axis + 1`, which is joined to axis `axis`. */
export function joinedAxes(b: Build, x: Value, axis: number): Value {
  const { shape } = x.type;
  return reshaped(b, x, [...shape.slice(0, axis), at(shape, axis) * at(shape, axis + 1), ...shape.slice(axis + 2)]);
}

/** A value whose axis `axis` is two: `outer` times the rest. */
export function splitAxis(b: Build, x: Value, axis: number, outer: number): Value {
  const { shape } = x.type;
  const inner = outer === 0 ? 0 : at(shape, axis) / outer;
  return reshaped(b, x, [...shape.slice(0, axis), outer, inner, ...shape.slice(axis + 1)]);
}
