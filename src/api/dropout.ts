/** @file Dropout: a random mask that is never stored. */
import { fail, requireTensor } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction } from "../trace/trace.ts";
import { ownCopy } from "./apply.ts";
import { bernoulli } from "./draws.ts";
import { mul, where } from "./elementwise.ts";
import { requireKey } from "./keys.ts";

/**
 * x with elements set to zero at a rate, the others scaled up to keep the mean. The backward pass draws the mask again.
 *
 * @example
 * import { dropout, ones, random } from "tidemark";
 *
 * const y = dropout(ones([1000]), 0.5, random.key(1));
 * console.log(y.max().item()); // 2
 */
export function dropout(x: Tensor, rate: number, from: Tensor): Tensor {
  requireTensor("dropout", "x", x);
  requireKey("dropout", from);
  if (!(typeof rate === "number" && rate >= 0 && rate < 1)) {
    fail("InvalidArgument", `dropout: rate ${String(rate)}`, "a rate is at least 0 and below 1");
  }
  if (rate === 0) return ownCopy(x);
  return asFunction("dropout", () => where(bernoulli(from, 1 - rate, x.shape), mul(x, 1 / (1 - rate)), 0));
}
