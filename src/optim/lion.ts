/**
 * @file Lion (X. Chen and others, 2023): steps of one size, in the direction of the sign of an average. One slot.
 *
 *   p ← p·(1 - lr·λ) - lr·sign(β₁·m + (1-β₁)·g)      m ← β₂·m + (1-β₂)·g
 */
import { add, mul, sign, sub } from "../api/elementwise.ts";
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import {
  COMMON_OPTIONS,
  type DecayOptions,
  type Leaf,
  type Optimizer,
  type OptimizerOptions,
  optimizer,
  requireRanges,
  shrunk,
} from "./optimizer.ts";

/** Options of {@link lion}. */
export interface LionOptions extends OptimizerOptions, DecayOptions {
  /** Weight of the average in the direction of a step; 0.9 by default. */
  readonly beta1?: number;
  /** Decay rate of the average; 0.99 by default. */
  readonly beta2?: number;
}

const OPTIONS: OptionKinds<LionOptions> = { ...COMMON_OPTIONS, beta1: "a number", beta2: "a number" };

/**
 * Lion with weight decay apart from the gradient, 0 by default. The rate is 0.0001 by default: a tenth of Adam's.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { lion } from "tidemark/optim";
 *
 * const optimizer = lion({ lr: 0.1 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.9, -1.9]
 */
export function lion(options: LionOptions = {}): Optimizer {
  requireOptions("lion", options, OPTIONS);
  const { lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weightDecay = 0 } = options;
  requireRanges("lion", [
    ["beta1", beta1, 0, 1],
    ["beta2", beta2, 0, 1],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  const update = (leaf: Leaf, rate: Tensor | number) => {
    const past = leaf.slots.m as Tensor;
    const direction = sign(add(mul(past, beta1), mul(leaf.grad, 1 - beta1)));
    const m = add(mul(past, beta2), mul(leaf.grad, 1 - beta2));
    return { param: sub(shrunk(leaf, rate, options), mul(direction, rate)), slots: { m } };
  };
  return optimizer({ name: "lion", perElement: true, slots: { m: 0 }, scalars: (rate) => rate, update }, lr, options);
}
