/**
 * @file Activations of neural networks, one element at a time. For the backward pass each keeps bits of comparisons, its input or
 * its output: never more than one map (tests/residuals.test.ts). At corners derivatives are those of PyTorch.
 */
import { at } from "../base/invariant.ts";
import { typeText } from "../ir/type.ts";
import * as ops from "../ops/activations.ts";
import { describe, fail } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { applyOp } from "./apply.ts";
import { abs, add, clamp, greater, greaterEqual, lessEqual, mul, sub, where } from "./elementwise.ts";
import { split } from "./join.ts";
import { sigmoid, tanh } from "./math.ts";
import { asTensor, normalAxis, requireFloat, type TensorLike } from "./operands.ts";
import { reshape } from "./shape.ts";

function floatOf(name: string, x: TensorLike): Tensor {
  const tensor = asTensor(name, x);
  requireFloat(name, tensor);
  return tensor;
}

function requireNumber(name: string, what: string, value: number, least: number): void {
  if (typeof value === "number" && value >= least && value < Number.POSITIVE_INFINITY) return;
  fail("InvalidArgument", `${name}: ${what} ${describe(value)}`, `give a number from ${least} up`);
}

/**
 * x above zero, slope·x below.
 *
 * @example
 * import { leakyRelu } from "tidemark";
 *
 * console.log(leakyRelu([-1, 2]).toArray()); // → [-0.01, 2]
 */
export function leakyRelu(x: TensorLike, slope = 0.01): Tensor {
  const v = floatOf("leakyRelu", x);
  return where(greater(v, 0), v, mul(v, slope));
}

/**
 * x above zero, slope·x below, with slopes that are learned: one, or one for each channel of [batch, channels, …].
 *
 * @example
 * import { prelu, tensor } from "tidemark";
 *
 * console.log(prelu(tensor([[-4, -4, 2]]), tensor([0.5, 0.25, 0])).toArray()); // [[-2, -1, 2]]
 */
export function prelu(x: TensorLike, slope: TensorLike): Tensor {
  const v = floatOf("prelu", x);
  const s = asTensor("prelu", slope);
  const channels = v.rank > 1 ? at(v.shape, 1) : 1;
  if (s.elements !== 1 && !(s.rank === 1 && s.elements === channels)) {
    fail(
      "ShapeMismatch",
      `prelu: slopes ${typeText(s)} for ${typeText(v)}`,
      `give one slope, or ${channels}: one for each channel, which axis 1 holds`,
    );
  }
  const aligned = s.elements === 1 ? reshape(s, []) : reshape(s, [channels, ...v.shape.slice(2).map(() => 1)]);
  return where(greater(v, 0), v, mul(v, aligned));
}

/**
 * x above zero, alpha·(eˣ - 1) below (D. Clevert and others, 2015).
 *
 * @example
 * import { elu } from "tidemark";
 *
 * console.log(elu([-1, 2]).toArray()); // → [-0.632121, 2]
 */
export function elu(x: TensorLike, alpha = 1): Tensor {
  requireNumber("elu", "alpha", alpha, 0);
  return applyOp(ops.elu, [asTensor("elu", x)], { alpha, scale: 1, rate: 1 });
}

/**
 * 1.0507·elu(x, 1.6733): keeps mean 0 and variance 1 (G. Klambauer and others, 2017).
 *
 * @example
 * import { selu } from "tidemark";
 *
 * console.log(selu([-1, 2]).toArray()); // → [-1.11133, 2.1014]
 */
export function selu(x: TensorLike): Tensor {
  const attrs = { alpha: 1.6732632423543772, scale: 1.0507009873554805, rate: 1 };
  return applyOp(ops.elu, [asTensor("selu", x)], attrs);
}

/**
 * x above zero, alpha·(e^(x/alpha) - 1) below, smooth for every alpha (J. Barron, 2017).
 *
 * @example
 * import { celu } from "tidemark";
 *
 * console.log(celu([-1, 2]).toArray()); // → [-0.632121, 2]
 */
export function celu(x: TensorLike, alpha = 1): Tensor {
  requireNumber("celu", "alpha", alpha, Number.MIN_VALUE);
  return applyOp(ops.elu, [asTensor("celu", x)], { alpha, scale: 1, rate: 1 / alpha });
}

/**
 * x between lo and hi, else the nearer of them. Unlike `clamp` it has no derivative at lo and hi.
 *
 * @example
 * import { hardTanh } from "tidemark";
 *
 * console.log(hardTanh([-3, 0.5, 3]).toArray()); // → [-1, 0.5, 1]
 */
export function hardTanh(x: TensorLike, lo = -1, hi = 1): Tensor {
  if (!(lo <= hi))
    fail("InvalidArgument", `hardTanh: the lower bound ${lo} is above the upper bound ${hi}`, "swap them");
  return cut(floatOf("hardTanh", x), lo, hi);
}

/** NaN stays NaN: it is on neither side. */
function cut(x: Tensor, lo: number, hi: number): Tensor {
  return where(lessEqual(x, lo), lo, where(greaterEqual(x, hi), hi, x));
}

/**
 * min(max(x, 0), 6).
 *
 * @example
 * import { relu6 } from "tidemark";
 *
 * console.log(relu6([-1, 2, 8]).toArray()); // → [0, 2, 6]
 */
export function relu6(x: TensorLike): Tensor {
  return cut(floatOf("relu6", x), 0, 6);
}

/**
 * x/6 + 1/2, kept between 0 and 1.
 *
 * @example
 * import { hardSigmoid } from "tidemark";
 *
 * console.log(hardSigmoid([-3, 0, 3]).toArray()); // → [0, 0.5, 1]
 */
export function hardSigmoid(x: TensorLike): Tensor {
  return mul(cut(add(floatOf("hardSigmoid", x), 3), 0, 6), 1 / 6);
}

/**
 * x·hardSigmoid(x) (A. Howard and others, 2019).
 *
 * @example
 * import { hardSwish } from "tidemark";
 *
 * console.log(hardSwish([-3, 0, 3]).toArray()); // → [0, 0, 3]
 */
export function hardSwish(x: TensorLike): Tensor {
  return applyOp(ops.hardSwish, [asTensor("hardSwish", x)], {});
}

/**
 * x·tanh(log(1 + eˣ)) (D. Misra, 2019).
 *
 * @example
 * import { mish } from "tidemark";
 *
 * console.log(mish([-1, 0, 1]).toArray()); // → [-0.303401, 0, 0.865098]
 */
export function mish(x: TensorLike): Tensor {
  return applyOp(ops.mish, [asTensor("mish", x)], {});
}

/**
 * x / (1 + |x|).
 *
 * @example
 * import { softsign } from "tidemark";
 *
 * console.log(softsign([-1, 3]).toArray()); // → [-0.5, 0.75]
 */
export function softsign(x: TensorLike): Tensor {
  return applyOp(ops.softsign, [asTensor("softsign", x)], {});
}

/**
 * log(sigmoid(x)), which does not overflow.
 *
 * @example
 * import { logSigmoid } from "tidemark";
 *
 * console.log(logSigmoid([-100, 0]).toArray()); // → [-100, -0.693147]
 */
export function logSigmoid(x: TensorLike): Tensor {
  return applyOp(ops.logSigmoid, [asTensor("logSigmoid", x)], {});
}

/**
 * 0 where |x| ≤ lambda, else x.
 *
 * @example
 * import { hardShrink } from "tidemark";
 *
 * console.log(hardShrink([-1, 0.2, 1]).toArray()); // → [-1, 0, 1]
 */
export function hardShrink(x: TensorLike, lambda = 0.5): Tensor {
  requireNumber("hardShrink", "lambda", lambda, 0);
  const v = floatOf("hardShrink", x);
  return where(lessEqual(abs(v), lambda), 0, v);
}

/**
 * x moved towards zero by lambda, and not beyond it.
 *
 * @example
 * import { softShrink } from "tidemark";
 *
 * console.log(softShrink([-1, 0.2, 1]).toArray()); // → [-0.5, 0, 0.5]
 */
export function softShrink(x: TensorLike, lambda = 0.5): Tensor {
  requireNumber("softShrink", "lambda", lambda, 0);
  const v = floatOf("softShrink", x);
  return sub(v, clamp(v, -lambda, lambda));
}

/**
 * x - tanh(x).
 *
 * @example
 * import { tanhShrink } from "tidemark";
 *
 * console.log(tanhShrink([0, 1]).toArray()); // → [0, 0.238406]
 */
export function tanhShrink(x: TensorLike): Tensor {
  const v = floatOf("tanhShrink", x);
  return sub(v, tanh(v));
}

/**
 * a·sigmoid(b), where a and b are the halves of x along an axis, the last by default (Y. Dauphin and others, 2016).
 *
 * @example
 * import { glu, tensor } from "tidemark";
 *
 * console.log(glu(tensor([[4, 6, 0, 0]])).toArray()); // [[2, 3]]
 */
export function glu(x: TensorLike, axis = -1): Tensor {
  const v = floatOf("glu", x);
  const along = normalAxis("glu", axis, v);
  if (at(v.shape, along) % 2 !== 0) {
    fail("ShapeMismatch", `glu: axis ${axis} of ${typeText(v)} has no halves`, "give an axis of even extent");
  }
  const [a, b] = split(v, 2, along) as [Tensor, Tensor];
  return mul(a, sigmoid(b));
}
