/** @file Whole quotients and remainders, bits of integers, and tests for numbers that are not finite. */
import type { NoAttrs, OpDef } from "../ir/op.ts";
import * as element from "../ops/elementwise.ts";
import * as ops from "../ops/remainder.ts";
import type { Tensor } from "../trace/tensor.ts";
import { atOneLine } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { abs, equal, less } from "./elementwise.ts";
import { asTensor, operands, requireFloat, type TensorLike } from "./operands.ts";

function binary(name: string, op: OpDef<NoAttrs>, a: TensorLike, b: TensorLike): Tensor {
  return atOneLine(() => applyOp(op, operands(name, a, b), {}));
}

/**
 * x without its fraction.
 *
 * @example
 * import { trunc } from "tidemark";
 *
 * console.log(trunc([1.7, -1.7]).toArray()); // → [1, -1]
 */
export function trunc(x: TensorLike): Tensor {
  return applyOp(ops.trunc, [asTensor("trunc", x)], {});
}

/**
 * floor(a / b), of integers too, as // in Python. By zero: the quotient of floats, 0 of integers.
 *
 * @example
 * import { floorDiv, fmod, remainder, tensor } from "tidemark";
 *
 * const x = tensor([7, -7]);
 * console.log(floorDiv(x, 3).toArray(), remainder(x, 3).toArray(), fmod(x, 3).toArray()); // [2, -3] [1, 2] [1, -1]
 */
export function floorDiv(a: TensorLike, b: TensorLike): Tensor {
  return binary("floorDiv", ops.floorDiv, a, b);
}

/**
 * a - b·floor(a / b), with the sign of b: % in Python, `torch.remainder`, `numpy.mod`. By zero: NaN of floats, 0 of integers. A
 * result of zero has the sign of a.
 *
 * @example
 * import { remainder } from "tidemark";
 *
 * console.log(remainder([7, -7], 3).toArray()); // → [1, 2]
 */
export function remainder(a: TensorLike, b: TensorLike): Tensor {
  return binary("remainder", ops.remainder, a, b);
}

/**
 * a - b·trunc(a / b), with the sign of a: % in JavaScript and C, `torch.fmod`. By zero: NaN of floats, 0 of integers.
 *
 * @example
 * import { fmod } from "tidemark";
 *
 * console.log(fmod([7, -7], 3).toArray()); // → [1, -1]
 */
export function fmod(a: TensorLike, b: TensorLike): Tensor {
  return binary("fmod", ops.fmod, a, b);
}

/**
 * The bits that both integers have; of bools `logicalAnd`.
 *
 * @example
 * import { bitwiseAnd, tensor } from "tidemark";
 *
 * console.log(bitwiseAnd(tensor([6, 5], { dtype: "i32" }), 3).toArray()); // → [2, 1]
 */
export function bitwiseAnd(a: TensorLike, b: TensorLike): Tensor {
  return binary("bitwiseAnd", element.and, a, b);
}

/**
 * The bits that one or both integers have; of bools `logicalOr`.
 *
 * @example
 * import { bitwiseOr, tensor } from "tidemark";
 *
 * console.log(bitwiseOr(tensor([6, 5], { dtype: "i32" }), 3).toArray()); // → [7, 7]
 */
export function bitwiseOr(a: TensorLike, b: TensorLike): Tensor {
  return binary("bitwiseOr", element.or, a, b);
}

/**
 * The bits that one of two integers has; of bools `logicalXor`.
 *
 * @example
 * import { bitwiseXor, tensor } from "tidemark";
 *
 * console.log(bitwiseXor(tensor([6, 5], { dtype: "i32" }), 3).toArray()); // → [5, 6]
 */
export function bitwiseXor(a: TensorLike, b: TensorLike): Tensor {
  return binary("bitwiseXor", element.xor, a, b);
}

/**
 * All bits of an integer inverted: -1 - x; of bools `logicalNot`.
 *
 * @example
 * import { bitwiseNot, tensor } from "tidemark";
 *
 * console.log(bitwiseNot(tensor([0, 5], { dtype: "i32" })).toArray()); // → [-1, -6]
 */
export function bitwiseNot(x: TensorLike): Tensor {
  return applyOp(element.not, [asTensor("bitwiseNot", x)], {});
}

/**
 * a · 2ᶜᵒᵘⁿᵗ of integers, bits beyond the 32nd (of i64 the 64th) lost: all of them if the count is below 0 or above 31 (63).
 *
 * @example
 * import { leftShift, tensor } from "tidemark";
 *
 * console.log(leftShift(tensor([1, 3], { dtype: "i32" }), 2).toArray()); // → [4, 12]
 */
export function leftShift(a: TensorLike, count: TensorLike): Tensor {
  return binary("leftShift", ops.shiftLeft, a, count);
}

/**
 * floor(a / 2ᶜᵒᵘⁿᵗ) of integers; only the sign, 0 or -1, is left if the count is below 0 or above 31 (of i64 63).
 *
 * @example
 * import { rightShift, tensor } from "tidemark";
 *
 * console.log(rightShift(tensor([8, -8], { dtype: "i32" }), 1).toArray()); // → [4, -4]
 */
export function rightShift(a: TensorLike, count: TensorLike): Tensor {
  return binary("rightShift", ops.shiftRight, a, count);
}

function magnitude(name: string, x: TensorLike): Tensor {
  const number = asTensor(name, x);
  requireFloat(name, number);
  return abs(number);
}

/**
 * Whether an element is neither infinite nor NaN.
 *
 * @example
 * import { isfinite } from "tidemark";
 *
 * console.log(isfinite([1, Number.POSITIVE_INFINITY, Number.NaN]).toArray()); // → [true, false, false]
 */
export function isfinite(x: TensorLike): Tensor {
  return less(magnitude("isfinite", x), Number.POSITIVE_INFINITY);
}

/**
 * Whether an element is ∞ or -∞.
 *
 * @example
 * import { isinf } from "tidemark";
 *
 * console.log(isinf([1, Number.POSITIVE_INFINITY, Number.NaN]).toArray()); // → [false, true, false]
 */
export function isinf(x: TensorLike): Tensor {
  return equal(magnitude("isinf", x), Number.POSITIVE_INFINITY);
}
