/** @file Rewriting the indices inside expressions, and the accumulator, sharing kept. */
import type { Expr, Index } from "./expr.ts";

/**
 * Applies `map` to every index of an expression, and puts `acc` in place of the accumulator where it is given; an expression
 * without changes is returned as it is.
 */
export function mapIndices(
  root: Expr,
  map: (index: Index, inner: (expr: Expr) => Expr) => Index,
  acc: Expr | null = null,
): Expr {
  const memo = new Map<Expr, Expr>();
  const visit = (expr: Expr): Expr => {
    const known = memo.get(expr);
    if (known) return known;
    const made = expr.kind === "acc" && acc ? acc : rebuild(expr, visit, (index) => map(index, visit));
    memo.set(expr, made);
    return made;
  };
  return visit(root);
}

function rebuild(expr: Expr, visit: (expr: Expr) => Expr, map: (index: Index) => Index): Expr {
  switch (expr.kind) {
    case "load":
    case "index": {
      const index = map(expr.index);
      return index.key === expr.index.key ? expr : { ...expr, index };
    }
    case "call": {
      const args = expr.args.map(visit);
      return args.every((arg, i) => arg === expr.args[i]) ? expr : { ...expr, args };
    }
    case "guard": {
      const bounds = expr.bounds.map((b) => ({ ...b, index: map(b.index) }));
      const [then, otherwise] = [visit(expr.then), visit(expr.otherwise)];
      const same =
        then === expr.then &&
        otherwise === expr.otherwise &&
        bounds.every((b, i) => b.index.key === expr.bounds[i]?.index.key);
      return same ? expr : { ...expr, bounds, then, otherwise };
    }
    default:
      return expr;
  }
}

/** Applies `map` to every index of an expression, and puts the element that `element` says in place of each that is loaded. */
export function mapOperands(
  root: Expr,
  map: (index: Index) => Index,
  element: (operand: number, index: Index) => { readonly operand: number; readonly index: Index },
): Expr {
  const memo = new Map<Expr, Expr>();
  const visit = (expr: Expr): Expr => {
    const known = memo.get(expr);
    if (known) return known;
    const made = expr.kind === "load" ? { ...expr, ...element(expr.operand, expr.index) } : rebuild(expr, visit, map);
    memo.set(expr, made);
    return made;
  };
  return visit(root);
}
