/**
 * @file Tiles of a product whose sums are not read. Causal attention stores `pick(column ≤ row, sum, -∞)`: above the
 * diagonal the sum is not looked at, and whole tiles of it need not be computed.
 *
 *        columns →
 *   rows ■ ■ □ □ □        ■ computed    □ all of the tile is above the diagonal: stored without it
 *    ↓   ■ ■ ■ □ □
 *
 * Invariant: a stored value never depends on the sum where the tile is skipped, so no bit changes.
 */
import type { Expr, Index, LoopVar } from "../kernel/expr.ts";
import { walkExpr } from "../kernel/expr.ts";
import type { ContractNest } from "../kernel/loops.ts";
import { type Interner, linearCoefficient } from "./intern.ts";

/** The sum is read only where rows · row + cols · column + constant is 0 or less. */
export interface Needed {
  readonly rows: number;
  readonly cols: number;
  readonly constant: number;
}

const usesSum = (expr: Expr): boolean => {
  let found = false;
  walkExpr(expr, (e) => (found ||= e.kind === "acc"));
  return found;
};

/** An index that is a sum of multiples of the two counters, or null. */
function plane(interner: Interner, index: Index, rows: LoopVar, cols: LoopVar): Needed | null {
  const [r, c] = [linearCoefficient(interner, index, rows), linearCoefficient(interner, index, cols)];
  const others = index.terms.some(({ atom }) => atom !== rows && atom !== cols);
  return r === null || c === null || others ? null : { rows: r, cols: c, constant: index.offset };
}

/** Where a comparison of two indices holds (`wanted` true) or does not. */
function where(interner: Interner, cond: Expr, wanted: boolean, { rows, cols }: ContractNest): Needed | null {
  if (cond.kind !== "call" || (cond.fn !== "le" && cond.fn !== "lt")) return null;
  const [a, b] = cond.args;
  if (a?.kind !== "index" || b?.kind !== "index") return null;
  const [left, right] = [plane(interner, a.index, rows, cols), plane(interner, b.index, rows, cols)];
  if (!left || !right) return null;
  // a ≤ b is a - b ≤ 0, a < b is a - b + 1 ≤ 0; their opposites are b - a + 1 ≤ 0 and b - a ≤ 0
  const strict = (cond.fn === "lt") === wanted ? 1 : 0;
  const sign = wanted ? 1 : -1;
  return {
    rows: sign * (left.rows - right.rows),
    cols: sign * (left.cols - right.cols),
    constant: sign * (left.constant - right.constant) + strict,
  };
}

/** Where a value depends on the sum: null if that cannot be said so simply. */
function neededBy(interner: Interner, value: Expr, nest: ContractNest): Needed | null {
  if (value.kind !== "call") return null;
  const users = value.args.filter(usesSum);
  const [only] = users;
  if (users.length !== 1 || !only) return null;
  const [cond, yes] = value.args;
  if (value.fn === "pick" && cond && only !== cond) {
    const found = where(interner, cond, only === yes, nest);
    if (found) return found;
  }
  return neededBy(interner, only, nest);
}

/** Where the sums of a product are needed; null where all are. */
export function neededSums(interner: Interner, nest: ContractNest): Needed | null {
  const [store] = nest.stores;
  return nest.stores.length === 1 && store ? neededBy(interner, store.value, nest) : null;
}
