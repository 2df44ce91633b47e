/** @file Bounds that the ranges of counters decide. */
import type { Bound } from "./expr.ts";
import { rangeOf } from "./index-math.ts";

/** The bounds that hold for some values of the counters and not for others; null where one of them never holds. */
export function openBounds(bounds: readonly Bound[]): readonly Bound[] | null {
  const open: Bound[] = [];
  for (const bound of bounds) {
    const [least, most] = rangeOf(bound.index);
    if (bound.hi <= bound.lo || most < bound.lo || least >= bound.hi) return null;
    if (least < bound.lo || most >= bound.hi) open.push(bound);
  }
  return open;
}
