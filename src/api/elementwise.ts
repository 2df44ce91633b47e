/** @file Operations one element at a time. Two operands are broadcast against each other; numbers adapt to tensors. */

import { at } from "../base/invariant.ts";
import type { NoAttrs, OpDef } from "../ir/op.ts";
import { typeText } from "../ir/type.ts";
import { type DType, isBool } from "../kernel/dtype.ts";
import * as ops from "../ops/elementwise.ts";
import * as math from "../ops/math.ts";
import * as choose from "../ops/select.ts";
import { describe, fail, requireDType } from "../trace/arguments.ts";
import { numberOf, type Tensor } from "../trace/tensor.ts";
import { atOneLine } from "../trace/trace.ts";
import { applyOp, ownCopy } from "./apply.ts";
import { asTensor, broadcastShapes, broadcastToShape, operands, type TensorLike } from "./operands.ts";
import { unary } from "./unary.ts";

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

/**
 * a - b.
 *
 * @example
 * import { sub } from "tidemark";
 *
 * console.log(sub([5, 6], [1, 2]).toArray()); // → [4, 4]
 */
export function sub(a: TensorLike, b: TensorLike): Tensor {
  return binary("sub", ops.sub, a, b);
}

/**
 * a · b, element by element.
 *
 * @example
 * import { mul } from "tidemark";
 *
 * console.log(mul([1, 2], [3, 4]).toArray()); // → [3, 8]
 */
export function mul(a: TensorLike, b: TensorLike): Tensor {
  return binary("mul", ops.mul, a, b);
}

/**
 * a / b; on i32 it truncates.
 *
 * @example
 * import { div, tensor } from "tidemark";
 *
 * console.log(div([1, 2], 4).toArray(), div(tensor([7, -7], { dtype: "i32" }), 2).toArray()); // → [0.25, 0.5] [3, -3]
 */
export function div(a: TensorLike, b: TensorLike): Tensor {
  return binary("div", ops.div, a, b);
}

/**
 * The smaller of the two; NaN where either is.
 *
 * @example
 * import { minimum } from "tidemark";
 *
 * console.log(minimum([1, 4], [3, 2]).toArray()); // → [1, 2]
 */
export function minimum(a: TensorLike, b: TensorLike): Tensor {
  return binary("minimum", ops.min, a, b);
}

/**
 * The larger of the two; NaN where either is.
 *
 * @example
 * import { maximum } from "tidemark";
 *
 * console.log(maximum([1, 4], [3, 2]).toArray()); // → [3, 4]
 */
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

/**
 * a to the power b.
 *
 * @example
 * import { pow } from "tidemark";
 *
 * console.log(pow([2, 3], 2).toArray(), pow(2, [1, 0.5]).toArray()); // → [4, 9] [2, 1.41421]
 */
export function pow(a: TensorLike, b: TensorLike): Tensor {
  const simple = typeof b === "number" ? SIMPLE_POWERS.get(b) : undefined;
  return simple ? simple(asTensor("pow", a)) : binary("pow", math.pow, a, b);
}

/**
 * -x.
 *
 * @example
 * import { neg } from "tidemark";
 *
 * console.log(neg([1, -2]).toArray()); // → [-1, 2]
 */
export function neg(x: TensorLike): Tensor {
  return unary("neg", ops.neg, x);
}

/**
 * |x|.
 *
 * @example
 * import { abs } from "tidemark";
 *
 * console.log(abs([-2, 3]).toArray()); // → [2, 3]
 */
export function abs(x: TensorLike): Tensor {
  return unary("abs", ops.abs, x);
}

/**
 * -1, 0 or 1.
 *
 * @example
 * import { sign } from "tidemark";
 *
 * console.log(sign([-2, 0, 3]).toArray()); // → [-1, 0, 1]
 */
export function sign(x: TensorLike): Tensor {
  return unary("sign", ops.sign, x);
}

/**
 * x².
 *
 * @example
 * import { square } from "tidemark";
 *
 * console.log(square([3, -4]).toArray()); // → [9, 16]
 */
export function square(x: TensorLike): Tensor {
  return unary("square", ops.square, x);
}

/**
 * √x.
 *
 * @example
 * import { sqrt } from "tidemark";
 *
 * console.log(sqrt([4, 9]).toArray()); // → [2, 3]
 */
export function sqrt(x: TensorLike): Tensor {
  return unary("sqrt", ops.sqrt, x);
}

/**
 * 1 / √x.
 *
 * @example
 * import { rsqrt } from "tidemark";
 *
 * console.log(rsqrt([4, 0.25]).toArray()); // → [0.5, 2]
 */
export function rsqrt(x: TensorLike): Tensor {
  return unary("rsqrt", math.rsqrt, x);
}

/**
 * The greatest whole number that is not above x.
 *
 * @example
 * import { floor } from "tidemark";
 *
 * console.log(floor([1.2, -1.2]).toArray()); // → [1, -2]
 */
export function floor(x: TensorLike): Tensor {
  return unary("floor", ops.floor, x);
}

/**
 * The least whole number that is not below x.
 *
 * @example
 * import { ceil } from "tidemark";
 *
 * console.log(ceil([1.2, -1.2]).toArray()); // → [2, -1]
 */
export function ceil(x: TensorLike): Tensor {
  return unary("ceil", ops.ceil, x);
}

/**
 * The nearest whole number; halves go to the even one.
 *
 * @example
 * import { round } from "tidemark";
 *
 * console.log(round([0.4, 0.6, 2.5]).toArray()); // → [0, 1, 2]
 */
export function round(x: TensorLike): Tensor {
  return unary("round", ops.round, x);
}

/**
 * x cut off below `lo` and above `hi`.
 *
 * @example
 * import { clamp } from "tidemark";
 *
 * console.log(clamp([-3, 0.5, 3], -1, 1).toArray()); // → [-1, 0.5, 1]
 */
export function clamp(x: TensorLike, lo: number, hi: number): Tensor {
  if (numberOf(lo) || numberOf(hi)) return minimum(maximum(x, lo), hi);
  if (typeof lo !== "number" || typeof hi !== "number") {
    fail("InvalidArgument", `clamp: bounds ${describe(lo)} and ${describe(hi)}`, "give two numbers: clamp(x, -1, 1)");
  }
  if (!(lo <= hi)) fail("InvalidArgument", `clamp: the lower bound ${lo} is above the upper bound ${hi}`, "swap them");
  return applyOp(ops.clamp, [asTensor("clamp", x)], { min: lo, max: hi });
}

// ---- comparisons and logic -----------------------------------------------------------------------------------------

/**
 * a = b, of bools too.
 *
 * @example
 * import { equal } from "tidemark";
 *
 * console.log(equal([1, 2], [1, 3]).toArray()); // → [true, false]
 */
export function equal(a: TensorLike, b: TensorLike): Tensor {
  return atOneLine(() => {
    const pair = operands("equal", a, b);
    if (!isBool(at(pair, 0).dtype)) return applyOp(ops.eq, pair, {});
    return applyOp(ops.not, [applyOp(ops.xor, pair, {})], {});
  });
}

/**
 * a ≠ b, of bools too.
 *
 * @example
 * import { notEqual } from "tidemark";
 *
 * console.log(notEqual([1, 2], [1, 3]).toArray()); // → [false, true]
 */
export function notEqual(a: TensorLike, b: TensorLike): Tensor {
  return atOneLine(() => {
    const pair = operands("notEqual", a, b);
    return applyOp(isBool(at(pair, 0).dtype) ? ops.xor : ops.ne, pair, {});
  });
}

/**
 * Where a < b.
 *
 * @example
 * import { less } from "tidemark";
 *
 * console.log(less([1, 2], [2, 1]).toArray()); // → [true, false]
 */
export function less(a: TensorLike, b: TensorLike): Tensor {
  return binary("less", ops.lt, a, b);
}

/**
 * Where a ≤ b.
 *
 * @example
 * import { lessEqual } from "tidemark";
 *
 * console.log(lessEqual([1, 2], [1, 1]).toArray()); // → [true, false]
 */
export function lessEqual(a: TensorLike, b: TensorLike): Tensor {
  return binary("lessEqual", ops.le, a, b);
}

/**
 * Where a > b.
 *
 * @example
 * import { greater } from "tidemark";
 *
 * console.log(greater([1, 2], [2, 1]).toArray()); // → [false, true]
 */
export function greater(a: TensorLike, b: TensorLike): Tensor {
  return binary("greater", ops.gt, a, b);
}

/**
 * Where a ≥ b.
 *
 * @example
 * import { greaterEqual } from "tidemark";
 *
 * console.log(greaterEqual([1, 2], [1, 3]).toArray()); // → [true, false]
 */
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

/**
 * Where both are true.
 *
 * @example
 * import { logicalAnd } from "tidemark";
 *
 * console.log(logicalAnd([true, true], [true, false]).toArray()); // → [true, false]
 */
export function logicalAnd(a: TensorLike, b: TensorLike): Tensor {
  return logical("logicalAnd", ops.and, a, b);
}

/**
 * Where one of them is true.
 *
 * @example
 * import { logicalOr } from "tidemark";
 *
 * console.log(logicalOr([true, false], [false, false]).toArray()); // → [true, false]
 */
export function logicalOr(a: TensorLike, b: TensorLike): Tensor {
  return logical("logicalOr", ops.or, a, b);
}

/**
 * Where exactly one of them is true.
 *
 * @example
 * import { logicalXor } from "tidemark";
 *
 * console.log(logicalXor([true, true], [true, false]).toArray()); // → [false, true]
 */
export function logicalXor(a: TensorLike, b: TensorLike): Tensor {
  return logical("logicalXor", ops.xor, a, b);
}

/**
 * Where it is false.
 *
 * @example
 * import { logicalNot } from "tidemark";
 *
 * console.log(logicalNot([true, false]).toArray()); // → [false, true]
 */
export function logicalNot(x: TensorLike): Tensor {
  return applyOp(ops.not, truthValues("logicalNot", [asTensor("logicalNot", x)]), {});
}

/**
 * Whether an element is not a number.
 *
 * @example
 * import { isnan } from "tidemark";
 *
 * console.log(isnan([1, Number.POSITIVE_INFINITY, Number.NaN]).toArray()); // → [false, false, true]
 */
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

/**
 * Converts the element type: to i32 truncating, to bool by ≠ 0.
 *
 * @example
 * import { cast } from "tidemark";
 *
 * console.log(cast([1.7, -1.7], "i32").toArray()); // → [1, -1]
 */
export function cast(x: TensorLike, dtype: DType): Tensor {
  const from = asTensor("cast", x);
  requireDType("cast", dtype);
  return from.dtype === dtype ? ownCopy(from) : applyOp(choose.castTo(from.dtype, dtype), [from], { dtype });
}

/**
 * x itself, but no derivative goes through it.
 *
 * @example
 * import { grad, stopGradient, tensor, type Tensor } from "tidemark";
 *
 * console.log(grad((x: Tensor) => stopGradient(x).mul(x).sum())(tensor([2, 3])).toArray()); // → [2, 3]
 */
export function stopGradient(x: TensorLike): Tensor {
  return applyOp(choose.stopGradient, [asTensor("stopGradient", x)], {});
}
