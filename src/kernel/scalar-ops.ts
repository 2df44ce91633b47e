/**
 * @file Short names for building expressions, so that formulas read as formulas. A plain number among the arguments
 * becomes a constant of the type of the expression beside it: `mul(x, 0.5)`.
 */

import { at, invariant } from "../base/invariant.ts";
import { isBig, type ScalarType } from "./dtype.ts";
import { call, compare, constant, type Expr, type Index } from "./expr.ts";

/** An expression, or a constant of the type of its neighbour. */
export type Arg = Expr | number | bigint;

function isExpr(arg: Arg): arg is Expr {
  return typeof arg === "object";
}

function lift(a: Arg, b: Arg): readonly [Expr, Expr] {
  const typed = isExpr(a) ? a : b;
  invariant(isExpr(typed), () => "one of two arguments must be an expression");
  const { dtype } = typed;
  return [isExpr(a) ? a : constant(dtype, a), isExpr(b) ? b : constant(dtype, b)];
}

export const add = (a: Arg, b: Arg): Expr => call("add", lift(a, b));
export const sub = (a: Arg, b: Arg): Expr => call("sub", lift(a, b));
export const mul = (a: Arg, b: Arg): Expr => call("mul", lift(a, b));
export const div = (a: Arg, b: Arg): Expr => call("div", lift(a, b));
export const min = (a: Arg, b: Arg): Expr => call("min", lift(a, b));
export const max = (a: Arg, b: Arg): Expr => call("max", lift(a, b));
export const and = (a: Arg, b: Arg): Expr => call("and", lift(a, b));
export const or = (a: Arg, b: Arg): Expr => call("or", lift(a, b));
export const xor = (a: Arg, b: Arg): Expr => call("xor", lift(a, b));
/** By a constant, or on i32 by an index between 0 and 31. */
export const shl = (a: Expr, count: number | Index): Expr => {
  if (typeof count === "number") return call("shl", lift(a, shiftCount(a, count)));
  return call("shl", [a, { kind: "index", dtype: "i32", index: count }]);
};
export const shrU = (a: Expr, count: number): Expr => call("shr_u", lift(a, shiftCount(a, count)));
export const shrS = (a: Expr, count: number): Expr => call("shr_s", lift(a, shiftCount(a, count)));
export const neg = (a: Expr): Expr => call("neg", [a]);
export const abs = (a: Expr): Expr => call("abs", [a]);
export const sqrt = (a: Expr): Expr => call("sqrt", [a]);
export const floor = (a: Expr): Expr => call("floor", [a]);
export const nearest = (a: Expr): Expr => call("nearest", [a]);
export const trunc = (a: Expr): Expr => call("trunc", [a]);
export const not = (a: Expr): Expr => call("not", [a]);
export const eq = (a: Arg, b: Arg): Expr => compare("eq", ...lift(a, b));
export const ne = (a: Arg, b: Arg): Expr => compare("ne", ...lift(a, b));
export const lt = (a: Arg, b: Arg): Expr => compare("lt", ...lift(a, b));
export const le = (a: Arg, b: Arg): Expr => compare("le", ...lift(a, b));
export const pick = (condition: Expr, a: Arg, b: Arg): Expr => call("pick", [condition, ...lift(a, b)]);
export const convert = (a: Expr, dtype: ScalarType): Expr => call("convert", [a], dtype);
/** `a` itself where it has the type. */
export const inType = (a: Expr, dtype: ScalarType): Expr => (a.dtype === dtype ? a : convert(a, dtype));
export const bitcast = (a: Expr, dtype: ScalarType): Expr => call("bitcast", [a], dtype);

function shiftCount(a: Expr, count: number): number | bigint {
  return isBig(a.dtype) ? BigInt(count) : count;
}

/** Limits x to [lo, hi]; NaN stays NaN. */
export function clamp(x: Expr, lo: number, hi: number): Expr {
  return max(min(x, hi), lo);
}

/** c₀ + c₁x + c₂x² + … by Horner's rule; a coefficient may be an expression. */
export function polynomial(x: Expr, coefficients: readonly Arg[]): Expr {
  let sum = at(coefficients, coefficients.length - 1);
  for (let i = coefficients.length - 2; i >= 0; i--) sum = add(at(coefficients, i), mul(sum, x));
  invariant(isExpr(sum), () => "a polynomial of degree 0");
  return sum;
}
