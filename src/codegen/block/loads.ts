/** @file Loads in the expressions of a nest: which of them always happen, and other values in their place. */
import type { Expr } from "../../kernel/expr.ts";
import type { Store } from "../../kernel/loops.ts";

export type Load = Extract<Expr, { kind: "load" }>;

/** Equal for loads of the same element. */
export const loadKey = ({ operand, index }: Load): string => `${operand} ${index.key}`;

/** Loads that happen wherever the nest stores: those that no guard keeps from happening. */
export function certainLoads(stores: readonly Store[]): readonly Load[] {
  const found = new Map<string, Load>();
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    if (expr.kind === "load") found.set(loadKey(expr), expr);
    if (expr.kind === "call") expr.args.forEach(visit);
  };
  for (const { value } of stores) visit(value);
  return [...found.values()];
}

/** Other expressions in place of loads, by their keys, everywhere in an expression but in its indices. */
export function replaceLoads(root: Expr, by: ReadonlyMap<string, Expr>): Expr {
  const memo = new Map<Expr, Expr>();
  const visit = (expr: Expr): Expr => {
    const known = memo.get(expr) ?? replaced(expr);
    memo.set(expr, known);
    return known;
  };
  const replaced = (expr: Expr): Expr => {
    if (expr.kind === "load") return by.get(loadKey(expr)) ?? expr;
    if (expr.kind === "call") return { ...expr, args: expr.args.map(visit) };
    if (expr.kind === "guard") return { ...expr, then: visit(expr.then), otherwise: visit(expr.otherwise) };
    return expr;
  };
  return visit(root);
}
