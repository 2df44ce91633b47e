/**
 * @file The scalar language: an expression for one element of a kernel's result. Target-neutral; a target gives text or bytes to
 * each `ScalarFn` and to nothing else. Transcendental functions are not here: `math.ts` writes them in these, so that
 * every target computes the same bits.
 *
 * Two sorts refer to each other. An `Index` is an integer that addresses memory, kept as a sum of atoms with constant
 * coefficients so that strides can be read off. An `Expr` is a value of a compute type.
 *
 *   x[b*128 + t*4 + h]        Index   { terms: [128 b, 4 t, 1 h], offset: 0 }
 *   max(x[…] + bias[h], 0)    Expr    call max (call add (load x …, load bias …), const 0)
 *
 * Invariant: expressions are immutable and may be shared; equal sharing is not required (code generation merges them).
 */
import { type DType, type ScalarType, typeOf } from "./dtype.ts";

/** A loop counter, 0 ≤ var < extent. */
export interface LoopVar {
  readonly kind: "var";
  readonly name: string;
  readonly extent: number;
}

/** Non-linear parts of an index. `of` of div and mod is never negative. `value` is an i32 expression within [lo, hi]. */
export type Atom =
  | LoopVar
  | { readonly kind: "div"; readonly of: Index; readonly by: number }
  | { readonly kind: "mod"; readonly of: Index; readonly by: number }
  | { readonly kind: "value"; readonly expr: Expr; readonly lo: number; readonly hi: number; readonly id: number };

export interface Term {
  readonly atom: Atom;
  readonly coef: number;
}

export interface Index {
  /** Sorted by atom key; no zero coefficients; no two terms with one atom. */
  readonly terms: readonly Term[];
  readonly offset: number;
  /** Equal keys mean equal indices. */
  readonly key: string;
}

/** lo ≤ index < hi. */
export interface Bound {
  readonly index: Index;
  readonly lo: number;
  readonly hi: number;
}

/**
 * What a target must provide. Floats follow IEEE 754; `min`/`max` propagate NaN; `nearest` rounds half to even; `div` on
 * integers truncates and gives 0 for a zero divisor; shifts take the count from a constant second argument, `shl` on i32 also from
 * an index in [0, 32); `convert` from float to integer truncates and saturates (NaN → 0), from i64 to i32 saturates, to
 * bool tests ≠ 0; `bitcast` pairs f32/i32 and f64/i64; `wrap` and `extend` go between i64 and i32 (signed) by their bits. Comparisons give
 * bool. `pick` is (bool, a, b) → a where true, else b.
 */
export type ScalarFn =
  | "add"
  | "sub"
  | "mul"
  | "div"
  | "neg"
  | "abs"
  | "sqrt"
  | "min"
  | "max"
  | "floor"
  | "ceil"
  | "nearest"
  | "trunc"
  | "eq"
  | "ne"
  | "lt"
  | "le"
  | "and"
  | "or"
  | "xor"
  | "not"
  | "shl"
  | "shr_u"
  | "shr_s"
  | "pick"
  | "convert"
  | "bitcast"
  | "wrap"
  | "extend";

export type Expr =
  | { readonly kind: "const"; readonly dtype: ScalarType; readonly value: number | bigint }
  /** Element `index` of operand number `operand` of the kernel, of type `storage` there, converted to its compute type. */
  | {
      readonly kind: "load";
      readonly dtype: ScalarType;
      readonly storage: DType;
      readonly operand: number;
      readonly index: Index;
    }
  /** An index as an i32 value. */
  | { readonly kind: "index"; readonly dtype: "i32"; readonly index: Index }
  | { readonly kind: "call"; readonly dtype: ScalarType; readonly fn: ScalarFn; readonly args: readonly Expr[] }
  /** `then` where all bounds hold, else `otherwise`; loads inside `then` happen only where they hold. */
  | {
      readonly kind: "guard";
      readonly dtype: ScalarType;
      readonly bounds: readonly Bound[];
      readonly then: Expr;
      readonly otherwise: Expr;
    }
  /** The finished accumulator, in the epilogue of a reduction or a product. */
  | { readonly kind: "acc"; readonly dtype: ScalarType };

export function constant(dtype: ScalarType, value: number | bigint): Expr {
  return { kind: "const", dtype, value };
}

/** `storage` is the type of the operand's elements. */
export function load(storage: DType, operand: number, index: Index): Expr {
  return { kind: "load", dtype: typeOf(storage).compute, storage, operand, index };
}

/** Applies a function whose result has the type of its last argument, or the type given. */
export function call(fn: ScalarFn, args: readonly Expr[], dtype?: ScalarType): Expr {
  const last = args[args.length - 1];
  return { kind: "call", fn, args, dtype: dtype ?? last?.dtype ?? "f32" };
}

export function compare(fn: "eq" | "ne" | "lt" | "le", a: Expr, b: Expr): Expr {
  return { kind: "call", fn, args: [a, b], dtype: "bool" };
}

/** The values that an index is computed from at run time, inside of divisions too. */
function valuesIn(index: Index): readonly Expr[] {
  return index.terms.flatMap(({ atom }) => {
    if (atom.kind === "var") return [];
    return atom.kind === "value" ? [atom.expr] : valuesIn(atom.of);
  });
}

/** The operands of an expression: arguments, and the values in its indices and bounds. */
export function operandsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case "load":
    case "index":
      return valuesIn(expr.index);
    case "call":
      return expr.args;
    case "guard":
      return [...expr.bounds.flatMap((bound) => valuesIn(bound.index)), expr.then, expr.otherwise];
    default:
      return [];
  }
}

/** Calls `visit` on every distinct expression object below and including `root`, children first; indices too. */
export function walkExpr(root: Expr, visit: (expr: Expr) => void, seen: Set<Expr> = new Set()): void {
  if (seen.has(root)) return;
  seen.add(root);
  for (const operand of operandsOf(root)) walkExpr(operand, visit, seen);
  visit(root);
}
