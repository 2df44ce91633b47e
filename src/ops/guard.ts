/** @file Elements that exist only inside bounds: padding, windows that hang over an edge, indices out of range. */
import { openBounds } from "../kernel/bounds.ts";
import type { Bound, Expr } from "../kernel/expr.ts";

/** `then` where all bounds hold, else `otherwise`. Bounds that always hold are dropped; one that never does decides. */
export function guarded(bounds: readonly Bound[], then: () => Expr, otherwise: Expr): Expr {
  const open = openBounds(bounds);
  if (!open) return otherwise;
  if (open.length === 0) return then();
  return { kind: "guard", dtype: otherwise.dtype, bounds: open, then: then(), otherwise };
}
