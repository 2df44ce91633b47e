/** @file Inverse, hyperbolic and special functions, one element at a time. How accurate each is: docs/numerics.md. */
import type { NoAttrs, OpDef } from "../ir/op.ts";
import * as ops from "../ops/special.ts";
import { describe, fail } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { atOneLine } from "../trace/trace.ts";
import { applyOp } from "./apply.ts";
import { asTensor, operands, type TensorLike } from "./operands.ts";

function unary(name: string, op: OpDef<NoAttrs>, x: TensorLike): Tensor {
  return applyOp(op, [asTensor(name, x)], {});
}

/**
 * 2ˣ.
 *
 * @example
 * import { exp2 } from "tidemark";
 *
 * console.log(exp2([0, 3]).toArray()); // → [1, 8]
 */
export function exp2(x: TensorLike): Tensor {
  return unary("exp2", ops.exp2, x);
}

/**
 * The logarithm to base 2.
 *
 * @example
 * import { log2 } from "tidemark";
 *
 * console.log(log2([1, 8]).toArray()); // → [0, 3]
 */
export function log2(x: TensorLike): Tensor {
  return unary("log2", ops.log2, x);
}

/**
 * The logarithm to base 10.
 *
 * @example
 * import { log10 } from "tidemark";
 *
 * console.log(log10([1, 1000]).toArray()); // → [0, 3]
 */
export function log10(x: TensorLike): Tensor {
  return unary("log10", ops.log10, x);
}

/**
 * The cube root, of negative numbers too.
 *
 * @example
 * import { cbrt } from "tidemark";
 *
 * console.log(cbrt([8, -27]).toArray()); // → [2, -3]
 */
export function cbrt(x: TensorLike): Tensor {
  return unary("cbrt", ops.cbrt, x);
}

/**
 * The angle in [-π/2, π/2] with this sine; NaN beyond ±1.
 *
 * @example
 * import { asin } from "tidemark";
 *
 * console.log(asin([0, 1]).toArray()); // → [0, 1.5708]
 */
export function asin(x: TensorLike): Tensor {
  return unary("asin", ops.asin, x);
}

/**
 * The angle in [0, π] with this cosine; NaN beyond ±1.
 *
 * @example
 * import { acos } from "tidemark";
 *
 * console.log(acos([1, -1]).toArray()); // → [0, 3.14159]
 */
export function acos(x: TensorLike): Tensor {
  return unary("acos", ops.acos, x);
}

/**
 * The angle in [-π/2, π/2] with this tangent.
 *
 * @example
 * import { atan } from "tidemark";
 *
 * console.log(atan([0, 1]).toArray()); // → [0, 0.785398]
 */
export function atan(x: TensorLike): Tensor {
  return unary("atan", ops.atan, x);
}

/**
 * The angle in [-π, π] of the point (x, y). Of zeros and infinities as in C: atan2(-0, -1) is -π.
 *
 * @example
 * import { atan2, tensor } from "tidemark";
 *
 * console.log(atan2(tensor([1, 0]), tensor([0, -1])).toArray()); // [1.5707963, 3.1415927] in f32
 */
export function atan2(y: TensorLike, x: TensorLike): Tensor {
  return atOneLine(() => applyOp(ops.atan2, operands("atan2", y, x), {}));
}

/**
 * (eˣ - e⁻ˣ) / 2.
 *
 * @example
 * import { sinh } from "tidemark";
 *
 * console.log(sinh([0, 1]).toArray()); // → [0, 1.1752]
 */
export function sinh(x: TensorLike): Tensor {
  return unary("sinh", ops.sinh, x);
}

/**
 * (eˣ + e⁻ˣ) / 2.
 *
 * @example
 * import { cosh } from "tidemark";
 *
 * console.log(cosh([0, 1]).toArray()); // → [1, 1.54308]
 */
export function cosh(x: TensorLike): Tensor {
  return unary("cosh", ops.cosh, x);
}

/**
 * The inverse of sinh.
 *
 * @example
 * import { asinh } from "tidemark";
 *
 * console.log(asinh([0, 1]).toArray()); // → [0, 0.881374]
 */
export function asinh(x: TensorLike): Tensor {
  return unary("asinh", ops.asinh, x);
}

/**
 * The inverse of cosh; NaN below 1.
 *
 * @example
 * import { acosh } from "tidemark";
 *
 * console.log(acosh([1, 2]).toArray()); // → [0, 1.31696]
 */
export function acosh(x: TensorLike): Tensor {
  return unary("acosh", ops.acosh, x);
}

/**
 * The inverse of tanh; NaN beyond ±1.
 *
 * @example
 * import { atanh } from "tidemark";
 *
 * console.log(atanh([0, 0.5]).toArray()); // → [0, 0.549306]
 */
export function atanh(x: TensorLike): Tensor {
  return unary("atanh", ops.atanh, x);
}

/**
 * 1 - erf(x), accurate where that is small.
 *
 * @example
 * import { erfc } from "tidemark";
 *
 * console.log(erfc([0, 1]).toArray()); // → [1, 0.157299]
 */
export function erfc(x: TensorLike): Tensor {
  return unary("erfc", ops.erfc, x);
}

/**
 * The inverse of erf; NaN beyond ±1.
 *
 * @example
 * import { erfinv } from "tidemark";
 *
 * console.log(erfinv([0, 0.5]).toArray()); // → [0, 0.476936]
 */
export function erfinv(x: TensorLike): Tensor {
  return unary("erfinv", ops.erfinv, x);
}

/**
 * log |Γ(x)|; ∞ at 0, -1, -2, …
 *
 * @example
 * import { lgamma } from "tidemark";
 *
 * console.log(lgamma([1, 5]).toArray()); // → [0, 3.17805]
 */
export function lgamma(x: TensorLike): Tensor {
  return unary("lgamma", ops.lgamma, x);
}

/**
 * The derivative of lgamma: Γ'(x) / Γ(x).
 *
 * @example
 * import { digamma } from "tidemark";
 *
 * console.log(digamma([1, 2]).toArray()); // → [-0.577216, 0.422784]
 */
export function digamma(x: TensorLike): Tensor {
  return applyOp(ops.polygamma, [asTensor("digamma", x)], { n: 0 });
}

/**
 * The derivative of order n of digamma. Of x < 0 for n = 0 and 1 alone, else NaN there.
 *
 * @example
 * import { polygamma } from "tidemark";
 *
 * console.log(polygamma([1], 1).toArray()); // → [1.64493]
 */
export function polygamma(x: TensorLike, n: number): Tensor {
  if (!(Number.isInteger(n) && n >= 0 && n <= 20)) {
    fail("InvalidArgument", `polygamma: order ${describe(n)}`, "give a whole number from 0 to 20: polygamma(x, 1)");
  }
  return applyOp(ops.polygamma, [asTensor("polygamma", x)], { n });
}
