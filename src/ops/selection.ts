/**
 * @file Which elements a slice takes, as numbers: start, start + stride, … along every axis, `extents` of them. A read
 * inside of an earlier write needs no memory, and a write does not affect a disjoint read:
 *
 *   written   . a b c . . .   {start 1, stride 1, extent 3}
 *   read          b           within: element 1 of the written ones
 *   read                x     apart
 */
import { at } from "../base/invariant.ts";
import type { Shape } from "../ir/type.ts";

export interface Selection {
  readonly start: readonly number[];
  readonly stride: readonly number[];
  readonly extents: Shape;
}

/** One past the last element taken along an axis. */
export function limitOf({ start, stride, extents }: Selection, axis: number): number {
  const n = at(extents, axis);
  return at(start, axis) + (n === 0 ? 0 : (n - 1) * at(stride, axis) + 1);
}

/** Where the elements of `inner` stand among those of `outer`; null unless all of them do. */
export function within(inner: Selection, outer: Selection): Selection | null {
  const fits = inner.start.every((from, axis) => {
    const step = at(outer.stride, axis);
    const ahead = from - at(outer.start, axis);
    // One element has no stride to speak of.
    const even = at(inner.extents, axis) <= 1 || at(inner.stride, axis) % step === 0;
    return ahead >= 0 && ahead % step === 0 && even && limitOf(inner, axis) <= limitOf(outer, axis);
  });
  if (!fits) return null;
  return {
    start: inner.start.map((from, axis) => (from - at(outer.start, axis)) / at(outer.stride, axis)),
    stride: inner.stride.map((step, axis) => Math.max(1, Math.floor(step / at(outer.stride, axis)))),
    extents: inner.extents,
  };
}

/** Whether no element is in both, as far as their ranges tell. */
export function apart(a: Selection, b: Selection): boolean {
  return a.start.some((from, axis) => limitOf(a, axis) <= at(b.start, axis) || limitOf(b, axis) <= from);
}

/** Whether both take the same elements in the same order. */
export function sameSelection(a: Selection, b: Selection): boolean {
  const equal = (p: readonly number[], q: readonly number[]): boolean => p.every((n, axis) => n === q[axis]);
  return equal(a.start, b.start) && equal(a.extents, b.extents) && equal(a.stride, b.stride);
}
