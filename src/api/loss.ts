/** @file Losses over batches of predictions. */

import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import { isIndexType } from "../kernel/dtype.ts";
import { fail, type OptionKinds, requireOptions, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { greaterEqual, less, logicalAnd, mul, neg, square, sub, where } from "./elementwise.ts";
import { oneHotMask } from "./indexing.ts";
import { logSoftmax } from "./normalize.ts";
import { requireFloat } from "./operands.ts";
import { mean, sum } from "./reduce.ts";
import { type LossOptions, type Reduction, requireReduction } from "./reduction.ts";

export type { LossOptions, Reduction };

const OPTIONS: OptionKinds<LossOptions> = { reduction: "anything" };

/** Each way from the losses of single examples to the result. */
const REDUCTIONS: Readonly<Record<Reduction, (losses: Tensor) => Tensor>> = {
  mean: (losses) => mean(losses),
  sum: (losses) => sum(losses),
  none: (losses) => losses,
};

function reductionOf(name: string, options: LossOptions): (losses: Tensor) => Tensor {
  requireOptions(name, options, OPTIONS);
  return REDUCTIONS[requireReduction(name, options)];
}

/**
 * Cross entropy of logits [..., classes] against class numbers (i32, [...]) or probabilities ([..., classes]). The loss
 * of an example whose class number is out of range is NaN.
 *
 * @example
 * import { crossEntropy, tensor } from "tidemark";
 *
 * const loss = crossEntropy(tensor([[0, 0]]), tensor([1], { dtype: "i32" }));
 * console.log(loss.item().toFixed(4)); // "0.6931"
 */
export function crossEntropy(logits: Tensor, targets: Tensor, options: LossOptions = {}): Tensor {
  requireFloat("crossEntropy", logits);
  requireTensor(
    "crossEntropy",
    "targets",
    targets,
    'class numbers are an i32 tensor: tensor([3, 1], { dtype: "i32" })',
  );
  const reduced = reductionOf("crossEntropy", options);
  const asClasses = isIndexType(targets.dtype);
  const expected = asClasses ? logits.shape.slice(0, -1) : logits.shape;
  if (logits.rank === 0 || !sameShape(targets.shape, expected)) {
    fail(
      "ShapeMismatch",
      `crossEntropy: logits ${typeText(logits)} and targets ${typeText(targets)} do not match`,
      `targets are class numbers i32[${logits.shape.slice(0, -1).join(",")}] or probabilities ${typeText(logits)}`,
    );
  }
  return asFunction("crossEntropy", () => {
    const logs = logSoftmax(logits);
    return reduced(asClasses ? classLosses(logs, targets) : neg(sum(mul(targets, logs), -1)));
  });
}

/** Minus the logarithms of the probabilities of class numbers. */
function classLosses(logs: Tensor, targets: Tensor): Tensor {
  const classes = at(logs.shape, logs.rank - 1);
  // the mask is compared on the fly, so neither it nor a table of ones is stored
  const losses = neg(sum(where(oneHotMask(targets, classes), logs, 0), -1));
  const inRange = logicalAnd(greaterEqual(targets, 0), less(targets, classes));
  return where(inRange, losses, Number.NaN);
}

/** Squared differences. */
export function mse(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  const reduced = reductionOf("mse", options);
  return asFunction("mse", () => reduced(square(sub(prediction, target))));
}
