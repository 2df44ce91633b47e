/** @file Operations one element at a time. Two operands are broadcast against each other; numbers adapt to tensors. */

import { at } from "../base/invariant.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { typeText } from "../ir/type.ts";
import { type DType, isBool } from "../kernel/dtype.ts";
import * as ops from "../ops/elementwise.ts";
import * as math from "../ops/math.ts";
import * as choose from "../ops/select.ts";
import { describe, fail, type OptionKinds, requireDType, requireOptions } from "../trace/arguments.ts";
import { numberOf, type Tensor } from "../trace/tensor.ts";
import { atOneLine } from "../trace/trace.ts";
import { applyOp, ownCopy } from "./apply.ts";
import { asTensor, broadcastShapes, broadcastToShape, operands, type TensorLike } from "./operands.ts";

function unary(name: string, op: OpDef<NoAttrs>, x: TensorLike): Tensor {
  return applyOp(op, [asTensor(name, x)], {});
}

function binary(name: string, op: OpDef<NoAttrs>, a: TensorLike, b: TensorLike): Tensor {
  return atOneLine(() => applyOp(op, operands(name, a, b), {}));
}

// ---- arithmetic --------------------------------------------------------------------------------------------------

/**
 * a + b.
 *
 * @example
 * import { add, tensor } from "tidemark";
 *
 * const x = tensor([[1, 2], [3, 4]]);
 * console.log(add(x, tensor([10, 20])).toArray()); // [[11, 22], [13, 24]]
 * console.log(x.add(1).toArray()); // [[2, 3], [4, 5]]
 */
export function add(a: TensorLike, b: TensorLike): Tensor {
  return binary("add", ops.add, a, b);
}

/** a - b. */
export function sub(a: TensorLike, b: TensorLike): Tensor {
  return binary("sub", ops.sub, a, b);
}

/** a · b, element by element. */
export function mul(a: TensorLike, b: TensorLike): Tensor {
  return binary("mul", ops.mul, a, b);
}

/** a / b; on i32 it truncates. */
export function div(a: TensorLike, b: TensorLike): Tensor {
  return binary("div", ops.div, a, b);
}

/** The smaller of the two; NaN where either is. */
export function minimum(a: TensorLike, b: TensorLike): Tensor {
  return binary("minimum", ops.min, a, b);
}

/** The larger of the two; NaN where either is. */
export function maximum(a: TensorLike, b: TensorLike): Tensor {
  return binary("maximum", ops.max, a, b);
}

/** Exponents that need no logarithm. */
const SIMPLE_POWERS: ReadonlyMap<number, (x: Tensor) => Tensor> = new Map([
  [1, (x) => ownCopy(x)],
  [2, (x) => square(x)],
  [3, (x) => mul(square(x), x)],
  [0.5, (x) => sqrt(x)],
  [-0.5, (x) => rsqrt(x)],
  [-1, (x) => div(1, x)],
]);

/** a to the power b. */
export function pow(a: TensorLike, b: TensorLike): Tensor {
  const simple = typeof b === "number" ? SIMPLE_POWERS.get(b) : undefined;
  return simple ? simple(asTensor("pow", a)) : binary("pow", math.pow, a, b);
}

/** -x. */
export function neg(x: TensorLike): Tensor {
  return unary("neg", ops.neg, x);
}

/** |x|. */
export function abs(x: TensorLike): Tensor {
  return unary("abs", ops.abs, x);
}

/** -1, 0 or 1. */
export function sign(x: TensorLike): Tensor {
  return unary("sign", ops.sign, x);
}

/** x². */
export function square(x: TensorLike): Tensor {
  return unary("square", ops.square, x);
}

/** √x. */
export function sqrt(x: TensorLike): Tensor {
  return unary("sqrt", ops.sqrt, x);
}

/** 1 / √x. */
export function rsqrt(x: TensorLike): Tensor {
  return unary("rsqrt", math.rsqrt, x);
}

/** The greatest whole number that is not above x. */
export function floor(x: TensorLike): Tensor {
  return unary("floor", ops.floor, x);
}

/** The least whole number that is not below x. */
export function ceil(x: TensorLike): Tensor {
  return unary("ceil", ops.ceil, x);
}

/** The nearest whole number; halves go to the even one. */
export function round(x: TensorLike): Tensor {
  return unary("round", ops.round, x);
}

/** x cut off below `lo` and above `hi`. */
export function clamp(x: TensorLike, lo: number, hi: number): Tensor {
  if (numberOf(lo) || numberOf(hi)) return minimum(maximum(x, lo), hi);
  if (typeof lo !== "number" || typeof hi !== "number") {
    fail("InvalidArgument", `clamp: bounds ${describe(lo)} and ${describe(hi)}`, "give two numbers: clamp(x, -1, 1)");
  }
  if (!(lo <= hi)) fail("InvalidArgument", `clamp: the lower bound ${lo} is above the upper bound ${hi}`, "swap them");
  return applyOp(ops.clamp, [asTensor("clamp", x)], { min: lo, max: hi });
}

// ---- functions ---------------------------------------------------------------------------------------------------

/** eˣ. */
export function exp(x: TensorLike): Tensor {
  return unary("exp", math.exp, x);
}

/** eˣ - 1, exact near 0. */
export function expm1(x: TensorLike): Tensor {
  return unary("expm1", math.expm1, x);
}

/** The natural logarithm. */
export function log(x: TensorLike): Tensor {
  return unary("log", math.log, x);
}

/** log(1 + x), exact near 0. */
export function log1p(x: TensorLike): Tensor {
  return unary("log1p", math.log1p, x);
}

export function sin(x: TensorLike): Tensor {
  return unary("sin", math.sin, x);
}

export function cos(x: TensorLike): Tensor {
  return unary("cos", math.cos, x);
}

export function tan(x: TensorLike): Tensor {
  return unary("tan", math.tan, x);
}

export function tanh(x: TensorLike): Tensor {
  return unary("tanh", math.tanh, x);
}

/** 1 / (1 + e⁻ˣ). */
export function sigmoid(x: TensorLike): Tensor {
  return unary("sigmoid", math.sigmoid, x);
}

/** The error function. */
export function erf(x: TensorLike): Tensor {
  return unary("erf", math.erf, x);
}

/** max(x, 0). */
export function relu(x: TensorLike): Tensor {
  return unary("relu", ops.relu, x);
}

/** x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))): close to x · Φ(x) with the normal distribution function Φ. */
export function gelu(x: TensorLike): Tensor {
  return unary("gelu", math.gelu, x);
}

/** x · sigmoid(x). */
export function silu(x: TensorLike): Tensor {
  return unary("silu", math.silu, x);
}

export interface SoftplusOptions {
  /** log(1 + e^(beta·x)) / beta; 1 by default. */
  readonly beta?: number;
  /** Where beta·x is above, the result is x itself. None by default: nothing overflows without. */
  readonly threshold?: number;
}

const SOFTPLUS_OPTIONS: OptionKinds<SoftplusOptions> = { beta: "a number", threshold: "a number" };

/** log(1 + eˣ). */
export function softplus(x: TensorLike, options: SoftplusOptions = {}): Tensor {
  requireOptions("softplus", options, SOFTPLUS_OPTIONS);
  const { beta = 1, threshold } = options;
  if (!(beta > 0)) fail("InvalidArgument", `softplus: beta ${describe(beta)}`, "give a number above 0");
  const v = asTensor("softplus", x);
  const scaled = beta === 1 ? v : mul(v, beta);
  const log = unary("softplus", math.softplus, scaled);
  const y = beta === 1 ? log : mul(log, 1 / beta);
  return threshold === undefined ? y : where(greater(scaled, threshold), v, y);
}

// ---- comparisons and logic -----------------------------------------------------------------------------------------

/** a = b, of bools too. */
export function equal(a: TensorLike, b: TensorLike): Tensor {
  return atOneLine(() => {
    const pair = operands("equal", a, b);
    if (!isBool(at(pair, 0).dtype)) return applyOp(ops.eq, pair, {});
    return applyOp(ops.not, [applyOp(ops.xor, pair, {})], {});
  });
}

/** a ≠ b, of bools too. */
export function notEqual(a: TensorLike, b: TensorLike): Tensor {
  return atOneLine(() => {
    const pair = operands("notEqual", a, b);
    return applyOp(isBool(at(pair, 0).dtype) ? ops.xor : ops.ne, pair, {});
  });
}

export function less(a: TensorLike, b: TensorLike): Tensor {
  return binary("less", ops.lt, a, b);
}

export function lessEqual(a: TensorLike, b: TensorLike): Tensor {
  return binary("lessEqual", ops.le, a, b);
}

export function greater(a: TensorLike, b: TensorLike): Tensor {
  return binary("greater", ops.gt, a, b);
}

export function greaterEqual(a: TensorLike, b: TensorLike): Tensor {
  return binary("greaterEqual", ops.ge, a, b);
}

/** The operations on bits take integers too. */
function truthValues(name: string, tensors: readonly Tensor[]): readonly Tensor[] {
  for (const x of tensors) {
    if (isBool(x.dtype)) continue;
    fail(
      "DtypeMismatch",
      `${name}: takes bool, got ${typeText(x)}`,
      'convert it first with cast(x, "bool"), or use the bits of integers: bitwiseAnd, bitwiseOr, bitwiseXor, bitwiseNot',
    );
  }
  return tensors;
}

function logical(name: string, op: OpDef<NoAttrs>, a: TensorLike, b: TensorLike): Tensor {
  return atOneLine(() => applyOp(op, truthValues(name, operands(name, a, b)), {}));
}

export function logicalAnd(a: TensorLike, b: TensorLike): Tensor {
  return logical("logicalAnd", ops.and, a, b);
}

export function logicalOr(a: TensorLike, b: TensorLike): Tensor {
  return logical("logicalOr", ops.or, a, b);
}

export function logicalXor(a: TensorLike, b: TensorLike): Tensor {
  return logical("logicalXor", ops.xor, a, b);
}

export function logicalNot(x: TensorLike): Tensor {
  return applyOp(ops.not, truthValues("logicalNot", [asTensor("logicalNot", x)]), {});
}

/** Whether an element is not a number. */
export function isnan(x: TensorLike): Tensor {
  return unary("isnan", ops.isnan, x);
}

/**
 * `a` where the condition holds, else `b`: the way to branch on values inside a program.
 *
 * @example
 * import { tensor, where } from "tidemark";
 *
 * const x = tensor([-1, 2]);
 * console.log(where(x.greater(0), x, x.mul(0.1)).toArray()); // [-0.1, 2] in f32
 */
export function where(condition: TensorLike, a: TensorLike, b: TensorLike): Tensor {
  const c = asTensor("where", condition);
  if (!isBool(c.dtype)) {
    fail("DtypeMismatch", `where: the condition must be bool, got ${typeText(c)}`, "compare it first: x.greater(0)");
  }
  const [then, otherwise] = operands("where", a, b) as [Tensor, Tensor];
  const shape = broadcastShapes("where", [c, then]);
  return applyOp(
    choose.where,
    [c, then, otherwise].map((x) => broadcastToShape(x, shape)),
    {},
  );
}

/** Converts the element type: to i32 truncating, to bool by ≠ 0. */
export function cast(x: TensorLike, dtype: DType): Tensor {
  const from = asTensor("cast", x);
  requireDType("cast", dtype);
  return from.dtype === dtype ? ownCopy(from) : applyOp(choose.castTo(from.dtype, dtype), [from], { dtype });
}

/** x itself, but no derivative goes through it. */
export function stopGradient(x: TensorLike): Tensor {
  return applyOp(choose.stopGradient, [asTensor("stopGradient", x)], {});
}
