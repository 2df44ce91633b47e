/** @file Losses over batches of predictions. */
import { at } from "../base/invariant.ts";
import { sameShape, typeText } from "../ir/type.ts";
import type { Tensor } from "../trace/tensor.ts";
import { mul, neg, square, sub, where } from "./elementwise.ts";
import { oneHotMask } from "./indexing.ts";
import { logSoftmax } from "./normalize.ts";
import { fail, requireFloat } from "./operands.ts";
import { mean, sum } from "./reduce.ts";

/** What becomes of the losses of single examples. */
export type Reduction = "mean" | "sum" | "none";

function reduced(losses: Tensor, reduction: Reduction): Tensor {
  if (reduction === "none") return losses;
  return reduction === "sum" ? sum(losses) : mean(losses);
}

export interface LossOptions {
  readonly reduction?: Reduction;
}

/**
 * Cross entropy of logits [..., classes] against class numbers (i32, [...]) or probabilities ([..., classes]).
 *
 * @example
 * import { crossEntropy, tensor } from "tidemark";
 *
 * const loss = crossEntropy(tensor([[0, 0]]), tensor([1], { dtype: "i32" }));
 * console.log(loss.item().toFixed(4)); // "0.6931"
 */
export function crossEntropy(logits: Tensor, targets: Tensor, options: LossOptions = {}): Tensor {
  requireFloat("crossEntropy", logits);
  const asClasses = targets.dtype === "i32";
  const expected = asClasses ? logits.shape.slice(0, -1) : logits.shape;
  if (logits.rank === 0 || !sameShape(targets.shape, expected)) {
    fail(
      "ShapeMismatch",
      `crossEntropy: logits ${typeText(logits)} and targets ${typeText(targets)} do not match`,
      `targets are class numbers i32[${logits.shape.slice(0, -1).join(",")}] or probabilities ${typeText(logits)}`,
    );
  }
  const logs = logSoftmax(logits);
  // the mask is compared on the fly, so neither it nor a table of ones is stored
  const picked = asClasses
    ? where(oneHotMask(targets, at(logits.shape, logits.rank - 1)), logs, 0)
    : mul(targets, logs);
  return reduced(neg(sum(picked, -1)), options.reduction ?? "mean");
}

/** Squared differences. */
export function mse(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  return reduced(square(sub(prediction, target)), options.reduction ?? "mean");
}
