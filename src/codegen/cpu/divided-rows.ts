/**
 * @file Maps whose elements are computed from positions divided by a small number along the row: the gradient of windows that
 * overlap with a stride, an image made larger by repeating elements. From lane to lane such a position does not grow evenly, and every
 * lane would be loaded by itself. The row is cut into a counter for the quotient and one for the remainder:
 *
 *   for i < 56: y[i] = x[(i + 1) div 2]
 *   for j < 28: for p < 2: y[2 j + p] = x[j + (p + 1) div 2]
 *
 * and the short loop over remainders is written out (short-rows.ts), after which quotients are plain counters, and bounds on
 * remainders are decided.
 */
import { at } from "../../base/invariant.ts";
import { openBounds } from "../../kernel/bounds.ts";
import { type Expr, type Index, type LoopVar, walkExpr } from "../../kernel/expr.ts";
import { addIndex, scaleIndex, substitute, varIndex } from "../../kernel/index-math.ts";
import type { MapNest } from "../../kernel/loops.ts";
import { mapIndices } from "../../kernel/rewrite.ts";
import { live } from "../units.ts";

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

/** The least number of remainders of `v` for which every division inside of an index is even, or 0 where values are in it. */
function divisorOf(index: Index, v: LoopVar): number {
  return index.terms.reduce((least, { atom }) => {
    if (atom.kind === "var" || atom.kind === "value") return least;
    const coef = atom.of.terms.find((term) => term.atom === v)?.coef ?? 0;
    const own = divisorOf(atom.of, v) * (atom.by / gcd(atom.by, Math.abs(coef)));
    return (least * own) / gcd(least, own);
  }, 1);
}

function indicesOf(nest: MapNest): readonly Index[] {
  const indices: Index[] = [];
  const seen = new Set<Expr>();
  for (const { index, value } of nest.stores) {
    indices.push(index);
    const visit = (expr: Expr): void => {
      if (expr.kind === "load" || expr.kind === "index") indices.push(expr.index);
      if (expr.kind === "guard") indices.push(...expr.bounds.map((bound) => bound.index));
    };
    walkExpr(value, visit, seen);
  }
  return indices;
}

/** A map with its innermost counter cut in two, at most `longest` remainders, or null where no position is divided. */
export function cutAtDivisions(nest: MapNest, longest: number): MapNest | null {
  const loops = live(nest.loops);
  const v = loops.pop();
  if (!v) return null;
  let count = 1;
  for (const index of indicesOf(nest)) {
    const own = divisorOf(index, v);
    count = (count * own) / gcd(count, own);
    if (count > longest) return null;
  }
  if (count === 1 || v.extent % count !== 0) return null;
  const quotient: LoopVar = { ...v, name: `${v.name}q`, extent: v.extent / count };
  const remainder: LoopVar = { ...v, name: `${v.name}r`, extent: count };
  const value = addIndex(scaleIndex(varIndex(quotient), count), varIndex(remainder));
  const cut = (index: Index, inner: (expr: Expr) => Expr): Index =>
    substitute(index, (w) => (w === v ? value : varIndex(w)), inner);
  const stores = nest.stores.map((store) => {
    const changed = (expr: Expr): Expr => mapIndices(expr, cut);
    return { ...store, index: cut(store.index, changed), value: changed(store.value) };
  });
  return { ...nest, loops: [...loops, quotient, remainder], stores };
}

/** An expression without the bounds that ranges of counters decide. */
export function withDecidedBounds(root: Expr): Expr {
  const memo = new Map<Expr, Expr>();
  const visit = (expr: Expr): Expr => {
    const known = memo.get(expr);
    if (known) return known;
    const made = decided(expr, visit);
    memo.set(expr, made);
    return made;
  };
  return visit(root);
}

function decided(expr: Expr, visit: (expr: Expr) => Expr): Expr {
  if (expr.kind === "call") {
    const args = expr.args.map(visit);
    return args.every((arg, i) => arg === at(expr.args, i)) ? expr : { ...expr, args };
  }
  if (expr.kind !== "guard") return expr;
  const bounds = openBounds(expr.bounds);
  if (!bounds) return visit(expr.otherwise);
  if (bounds.length === 0) return visit(expr.then);
  return { ...expr, bounds, then: visit(expr.then), otherwise: visit(expr.otherwise) };
}
