/**
 * @file LAMB (Y. You and others, ICLR 2020): Adam whose step of each parameter is as long as the parameter itself, times the rate.
 *
 *   r = m/(1-β₁ᵗ) / (√(v/(1-β₂ᵗ)) + ε) + λ·p        p ← p - lr·‖p‖/‖r‖·r        the ratio is 1 where a norm is 0
 */
import { add, div, equal, logicalOr, mul, rsqrt, sqrt, square, sub, where } from "../api/elementwise.ts";
import type { TensorLike } from "../api/operands.ts";
import { norm } from "../api/reduce.ts";
import { requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { correction, MOMENT_OPTIONS, type MomentOptions } from "./adam.ts";
import { type Leaf, type Optimizer, optimizer, penalty, requireRanges } from "./optimizer.ts";

interface Scalars {
  readonly rate: TensorLike;
  /** 1 / (1 - β₁ᵗ). */
  readonly first: TensorLike;
  /** 1 / √(1 - β₂ᵗ). */
  readonly second: TensorLike;
}

/** ‖p‖/‖r‖, a scalar. */
function trustRatio(param: Tensor, step: Tensor): Tensor {
  const [above, below] = [norm(param), norm(step)];
  return where(logicalOr(equal(above, 0), equal(below, 0)), 1, div(above, below));
}

/**
 * Options and defaults are those of Adam, except ε, which is 10⁻⁶; the rate is 0.001 by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { lamb } from "tidemark/optim";
 *
 * const optimizer = lamb({ lr: 0.1 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.841886, -1.84189]
 */
export function lamb(options: MomentOptions = {}): Optimizer {
  requireOptions("lamb", options, MOMENT_OPTIONS);
  const { lr = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weightDecay = 0 } = options;
  requireRanges("lamb", [
    ["beta1", beta1, 0, 1],
    ["beta2", beta2, 0, 1],
    ["eps", eps, 0, Number.POSITIVE_INFINITY],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  const scalars = (rate: TensorLike, t: Tensor): Scalars => ({
    rate,
    first: beta1 === 0 ? 1 : div(1, correction(beta1, t)),
    second: beta2 === 0 ? 1 : rsqrt(correction(beta2, t)),
  });
  const update = (leaf: Leaf, { rate, first, second }: Scalars) => {
    const m = add(mul(leaf.slots.m as Tensor, beta1), mul(leaf.grad, 1 - beta1));
    const v = add(mul(leaf.slots.v as Tensor, beta2), mul(square(leaf.grad), 1 - beta2));
    const adam = div(mul(m, first), add(mul(sqrt(v), second), eps));
    const step = penalty(leaf, adam, options);
    return { param: sub(leaf.param, mul(step, mul(trustRatio(leaf.param, step), rate))), slots: { m, v } };
  };
  return optimizer({ name: "lamb", slots: { m: 0, v: 0 }, scalars, update }, lr, options);
}
