/** @file Elements that exist only inside bounds: padding, windows that hang over an edge, indices out of range. */
import type { Bound, Expr } from "../kernel/expr.ts";
import { rangeOf } from "../kernel/index-math.ts";

/** `then` where all bounds hold, else `otherwise`. Bounds that always hold are dropped; one that never does decides. */
export function guarded(bounds: readonly Bound[], then: () => Expr, otherwise: Expr): Expr {
  const open: Bound[] = [];
  for (const bound of bounds) {
    const [least, most] = rangeOf(bound.index);
    if (bound.hi <= bound.lo || most < bound.lo || least >= bound.hi) return otherwise;
    if (least < bound.lo || most >= bound.hi) open.push(bound);
  }
  if (open.length === 0) return then();
  return { kind: "guard", dtype: otherwise.dtype, bounds: open, then: then(), otherwise };
}
