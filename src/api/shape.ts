/** @file Operations that move elements about and compute nothing. */
import { grouped } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { elementsOf, type Shape, shapeText, typeText } from "../ir/type.ts";
import { concat } from "../ops/concat.ts";
import * as movement from "../ops/movement.ts";
import * as ops from "../ops/slice.ts";
import { describe, fail, requireArray, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { applyOp, ownCopy } from "./apply.ts";
import { type Axes, broadcastToShape, normalAxes, normalAxis } from "./operands.ts";

/**
 * The same elements in the same order under another shape; one extent may be -1 and is then computed.
 *
 * @example
 * import { arange } from "tidemark";
 *
 * console.log(arange(6).reshape([2, -1]).toArray()); // [[0, 1, 2], [3, 4, 5]]
 */
export function reshape(x: Tensor, shape: Shape): Tensor {
  requireTensor("reshape", "x", x);
  requireArray("reshape", "the shape", shape, "x.reshape([2, -1])");
  const open = shape.indexOf(-1);
  let wanted = shape;
  if (open >= 0) {
    const known = elementsOf(shape.filter((_, axis) => axis !== open));
    wanted = shape.with(open, known === 0 ? 0 : x.elements / known);
  }
  if (elementsOf(wanted) !== x.elements || wanted.some((extent) => !Number.isInteger(extent) || extent < 0)) {
    fail(
      "ShapeMismatch",
      `reshape: ${typeText(x)} has ${grouped(x.elements)} elements, which do not fill ${shapeText(shape)}`,
      "the product of the extents must stay the same; at most one extent may be -1",
    );
  }
  return wanted.length === x.rank && wanted.every((extent, axis) => extent === x.shape[axis])
    ? x
    : applyOp(movement.reshape, [x], { shape: wanted });
}

/**
 * The axes in another order: axis i of the result is axis perm[i]; reversed when no order is given.
 *
 * @example
 * import { ones, tensor, transpose } from "tidemark";
 *
 * console.log(transpose(tensor([[1, 2], [3, 4]])).toArray(), transpose(ones([2, 3, 4]), [2, 0, 1]).shape); // → [[1, 3], [2, 4]] [4, 2, 3]
 */
export function transpose(x: Tensor, perm?: readonly number[]): Tensor {
  requireTensor("transpose", "x", x);
  if (perm !== undefined) requireArray("transpose", "the order", perm, "x.transpose([1, 0])");
  const order = perm?.map((axis) => normalAxis("transpose", axis, x)) ?? x.shape.map((_, axis) => x.rank - 1 - axis);
  if (new Set(order).size !== x.rank || order.length !== x.rank) {
    fail(
      "InvalidAxis",
      `transpose: ${shapeText(perm ?? [])} is not an order of the axes of ${typeText(x)}`,
      "name every axis once",
    );
  }
  return order.every((axis, i) => axis === i) ? x : applyOp(movement.transpose, [x], { perm: order });
}

/**
 * Two axes exchanged.
 *
 * @example
 * import { ones, swapAxes } from "tidemark";
 *
 * console.log(swapAxes(ones([2, 3, 4]), 0, 2).shape); // → [4, 3, 2]
 */
export function swapAxes(x: Tensor, a: number, b: number): Tensor {
  const [p, q] = [normalAxis("swapAxes", a, x), normalAxis("swapAxes", b, x)];
  const partner = (axis: number): number => (axis === p ? q : p);
  return transpose(
    x,
    x.shape.map((_, axis) => (axis === p || axis === q ? partner(axis) : axis)),
  );
}

/**
 * Repeated along axes of extent 1 and along new axes in front.
 *
 * @example
 * import { broadcastTo, tensor } from "tidemark";
 *
 * console.log(broadcastTo(tensor([1, 2]), [3, 2]).toArray()); // → [[1, 2], [1, 2], [1, 2]]
 */
export function broadcastTo(x: Tensor, shape: Shape): Tensor {
  requireTensor("broadcastTo", "x", x);
  requireArray("broadcastTo", "the shape", shape, "x.broadcastTo([2, 3])");
  const from = shape.length - x.rank;
  const isExtents = shape.every((extent) => Number.isInteger(extent) && extent >= 0);
  const fits = isExtents && from >= 0 && x.shape.every((extent, axis) => extent === 1 || extent === shape[axis + from]);
  if (!fits) {
    fail(
      "ShapeMismatch",
      `broadcastTo: ${typeText(x)} does not broadcast to ${shapeText(shape)}`,
      "extents must be equal or 1, counted from the right",
    );
  }
  return broadcastToShape(x, shape);
}

/**
 * New axes of extent 1, at these places of the result.
 *
 * @example
 * import { expandDims, tensor } from "tidemark";
 *
 * console.log(expandDims(tensor([1, 2]), 0).shape); // → [1, 2]
 */
export function expandDims(x: Tensor, axes: Axes): Tensor {
  requireTensor("expandDims", "x", x);
  const list = Array.isArray(axes) ? (axes as readonly number[]) : [axes as number];
  const rank = x.rank + list.length;
  const places = new Set(list.map((axis) => normalAxis("expandDims", axis, x, rank)));
  let next = 0;
  return reshape(
    x,
    Array.from({ length: rank }, (_, axis) => (places.has(axis) ? 1 : at(x.shape, next++))),
  );
}

/**
 * Without axes of extent 1: all of them, or those given.
 *
 * @example
 * import { ones, squeeze } from "tidemark";
 *
 * console.log(squeeze(ones([1, 3, 1])).shape, squeeze(ones([1, 3, 1]), 0).shape); // → [3] [3, 1]
 */
export function squeeze(x: Tensor, axes?: Axes): Tensor {
  requireTensor("squeeze", "x", x);
  const ones = x.shape.flatMap((extent, axis) => (extent === 1 ? [axis] : []));
  const gone = axes === undefined ? ones : normalAxes("squeeze", axes, x);
  const wide = gone.find((axis) => x.shape[axis] !== 1);
  if (wide !== undefined) {
    fail(
      "ShapeMismatch",
      `squeeze: axis ${wide} of ${typeText(x)} has extent ${x.shape[wide]}, not 1`,
      "use reshape to merge axes",
    );
  }
  return reshape(
    x,
    x.shape.filter((_, axis) => !gone.includes(axis)),
  );
}

/**
 * The axes from one to another, both included, as one; all of them by default.
 *
 * @example
 * import { flatten, tensor } from "tidemark";
 *
 * console.log(flatten(tensor([[1, 2], [3, 4]])).toArray()); // → [1, 2, 3, 4]
 */
export function flatten(x: Tensor, from = 0, to = -1): Tensor {
  requireTensor("flatten", "x", x);
  if (x.rank === 0) return reshape(x, [1]);
  const [first, last] = [normalAxis("flatten", from, x), normalAxis("flatten", to, x)];
  if (first > last) {
    fail("InvalidAxis", `flatten: axis ${from} of ${typeText(x)} comes after axis ${to}`, "give the first axis first");
  }
  const merged = elementsOf(x.shape.slice(first, last + 1));
  return reshape(x, [...x.shape.slice(0, first), merged, ...x.shape.slice(last + 1)]);
}

/**
 * What to take along an axis: everything (null); from start up to, not including, stop, by step; or one position, whose
 * axis then disappears. Negative positions count from the end, and a negative step goes backwards.
 */
export type Range = null | number | readonly [start: number | null, stop?: number | null, step?: number];

interface Taken {
  readonly start: number;
  readonly limit: number;
  readonly stride: number;
  readonly flipped: boolean;
  readonly dropped: boolean;
}

const ALL = { stride: 1, flipped: false, dropped: false } as const;

function positionOf(range: number, extent: number, axis: number, x: Tensor): number {
  if (Number.isInteger(range) && range >= -extent && range < extent) return range < 0 ? range + extent : range;
  return fail(
    "InvalidArgument",
    `slice: position ${range} is out of range on axis ${axis} of ${typeText(x)}`,
    `the axis has extent ${extent}`,
  );
}

const isBound = (bound: unknown): boolean => bound === null || bound === undefined || Number.isInteger(bound);

function requireRange(range: readonly unknown[], axis: number, x: Tensor): void {
  if (Array.isArray(range) && range.length <= 3 && range.every(isBound)) return;
  const got = Array.isArray(range) ? `[${range.map(String).join(", ")}]` : describe(range);
  const help = "a range is null, a position, or [start, stop, step] with null for an open end";
  fail("InvalidArgument", `slice: ${got} on axis ${axis} of ${typeText(x)}`, help);
}

function takenOf(range: Range, extent: number, axis: number, x: Tensor): Taken {
  if (range === null) return { ...ALL, start: 0, limit: extent };
  if (typeof range === "number") {
    const start = positionOf(range, extent, axis, x);
    return { ...ALL, start, limit: start + 1, dropped: true };
  }
  requireRange(range, axis, x);
  const [from, to = null, step = 1] = range;
  if (!Number.isInteger(step) || step === 0) {
    fail("InvalidArgument", `slice: step ${step} on axis ${axis} of ${typeText(x)}`, "a step is a whole number, not 0");
  }
  const clamp = (n: number, lo: number, hi: number): number => Math.max(lo, Math.min(hi, n < 0 ? n + extent : n));
  if (step > 0) {
    const start = from === null ? 0 : clamp(from, 0, extent);
    const limit = to === null ? extent : clamp(to, 0, extent);
    return { ...ALL, start, limit: Math.max(start, limit), stride: step };
  }
  // backwards from `first` down to, not including, `last`: the same elements forwards, then reversed
  const first = from === null ? extent - 1 : clamp(from, -1, extent - 1);
  const last = to === null ? -1 : clamp(to, -1, extent - 1);
  const count = Math.max(0, Math.ceil((first - last) / -step));
  const start = count === 0 ? 0 : first + (count - 1) * step;
  return { start, limit: count === 0 ? 0 : first + 1, stride: -step, flipped: true, dropped: false };
}

/**
 * A part of a tensor, by ranges along its first axes.
 *
 * @example
 * import { arange } from "tidemark";
 *
 * const x = arange(12).reshape([3, 4]);
 * console.log(x.slice([[1, null], [0, 4, 2]]).toArray()); // [[4, 6], [8, 10]]
 * console.log(x.slice([-1, [null, null, -1]]).toArray()); // [11, 10, 9, 8]
 */
export function slice(x: Tensor, ranges: readonly Range[]): Tensor {
  requireTensor("slice", "x", x);
  requireArray("slice", "the ranges", ranges, "x.slice([1]) is row 1, x.slice([[1, 3]]) rows 1 and 2");
  if (ranges.length > x.rank) {
    fail(
      "InvalidAxis",
      `slice: ${ranges.length} ranges for ${typeText(x)}`,
      `give at most ${x.rank}, one for each axis`,
    );
  }
  const taken = x.shape.map((extent, axis) => takenOf(ranges[axis] ?? null, extent, axis, x));
  const whole = taken.every((t, axis) => t.start === 0 && t.limit === x.shape[axis] && t.stride === 1);
  const part = whole
    ? x
    : applyOp(ops.slice, [x], {
        start: taken.map((t) => t.start),
        limit: taken.map((t) => t.limit),
        stride: taken.map((t) => t.stride),
      });
  const reversed = taken.flatMap((t, axis) => (t.flipped ? [axis] : []));
  const turned = reversed.length > 0 ? flip(part, reversed) : part;
  return reshape(
    turned,
    turned.shape.filter((_, axis) => !taken[axis]?.dropped),
  );
}

/** In place of one value: elements mirrored at the edge, the elements at the edge, or those of the other end. */
export type PadMode = "reflect" | "replicate" | "circular";

/** Most elements that can be added at an end of an axis. */
const MOST_PADDED: Readonly<Record<PadMode, (extent: number) => number>> = {
  reflect: (extent) => Math.max(0, extent - 1),
  replicate: (extent) => (extent === 0 ? 0 : Number.POSITIVE_INFINITY),
  circular: (extent) => extent,
};

/** What comes before and behind the elements along an axis. */
function edgesOf(x: Tensor, axis: number, [lo, hi]: readonly [number, number], mode: PadMode): readonly Tensor[] {
  const n = at(x.shape, axis);
  const part = (from: number, to: number): Tensor =>
    slice(
      x,
      x.shape.map((_, a) => (a === axis ? ([from, to] as const) : null)),
    );
  if (mode === "reflect") return [flip(part(1, lo + 1), axis), flip(part(n - 1 - hi, n - 1), axis)];
  if (mode === "circular") return [part(n - lo, n), part(0, hi)];
  const many = (edge: Tensor, count: number): Tensor => broadcastToShape(edge, x.shape.with(axis, count));
  return [many(part(0, 1), lo), many(part(n - 1, n), hi)];
}

function paddedWith(x: Tensor, widths: readonly (readonly [number, number])[], mode: PadMode): Tensor {
  const most = Object.hasOwn(MOST_PADDED, mode) ? MOST_PADDED[mode] : undefined;
  if (!most)
    fail("InvalidArgument", `pad: ${String(mode)}`, `give a number, or ${Object.keys(MOST_PADDED).join(", ")}`);
  return widths.reduce((y, [lo, hi], axis) => {
    if (lo === 0 && hi === 0) return y;
    const limit = most(at(y.shape, axis));
    if (Math.max(lo, hi) > limit) {
      const summary = `pad: axis ${axis} of ${typeText(x)} gets [${lo}, ${hi}] with "${mode}"`;
      fail("InvalidArgument", summary, `at most ${limit} at either end`);
    }
    const [before, behind] = edgesOf(y, axis, [lo, hi], mode) as readonly [Tensor, Tensor];
    const parts = [...(lo > 0 ? [before] : []), y, ...(hi > 0 ? [behind] : [])];
    return applyOp(concat, parts, { axis });
  }, x);
}

/**
 * Elements around: `widths` is a number for all sides, or [before, after] for each axis. They are one value, or with a `PadMode` elements
 * of x.
 *
 * @example
 * import { pad, tensor } from "tidemark";
 *
 * const x = tensor([1, 2, 3]);
 * console.log(pad(x, [[1, 2]]).toArray(), pad(x, [[1, 2]], "reflect").toArray()); // [0, 1, 2, 3, 0, 0] [2, 1, 2, 3, 2, 1]
 */
export function pad(
  x: Tensor,
  widths: number | readonly (readonly [number, number])[],
  value: number | PadMode = 0,
): Tensor {
  requireTensor("pad", "x", x);
  const list = typeof widths === "number" ? x.shape.map(() => [widths, widths] as const) : widths;
  requireArray("pad", "the widths", list, "x.pad([[1, 1], [0, 2]])");
  if (list.length !== x.rank) {
    fail(
      "InvalidArgument",
      `pad: ${list.length} widths for ${typeText(x)}`,
      `give [before, after] for each of its ${x.rank} axes`,
    );
  }
  list.forEach((pair, axis) => {
    const isPair = Array.isArray(pair) && pair.length === 2 && pair.every((n) => Number.isInteger(n) && n >= 0);
    if (isPair) return;
    const got = Array.isArray(pair) ? `[${pair.map(String).join(", ")}]` : describe(pair);
    fail(
      "InvalidArgument",
      `pad: axis ${axis} gets ${got}`,
      "give [before, after] for each axis: x.pad([[1, 1], [0, 2]])",
    );
  });
  if (list.every(([lo, hi]) => lo === 0 && hi === 0)) return ownCopy(x);
  if (typeof value === "string") return asFunction("pad", () => paddedWith(x, list, value));
  if (typeof value !== "number")
    fail("InvalidArgument", `pad: the value is ${describe(value)}`, 'give a number, or a mode: pad(x, 1, "reflect")');
  return applyOp(ops.pad, [x], {
    lo: list.map(([lo]) => lo),
    hi: list.map(([, hi]) => hi),
    interior: list.map(() => 0),
    value,
  });
}

/**
 * Reversed along axes; along all when none are given.
 *
 * @example
 * import { flip, tensor } from "tidemark";
 *
 * console.log(flip(tensor([[1, 2], [3, 4]]), 1).toArray()); // → [[2, 1], [4, 3]]
 */
export function flip(x: Tensor, axes?: Axes): Tensor {
  return applyOp(movement.flip, [x], { axes: normalAxes("flip", axes, x) });
}
