/** @file RMSprop (T. Hinton, lecture 6 of Neural networks for machine learning, 2012): steps over a fading root mean square. */
import { add, div, mul, neg, sqrt, square, sub } from "../api/elementwise.ts";
import type { TensorLike } from "../api/operands.ts";
import { fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import {
  COMMON_OPTIONS,
  type DecayOptions,
  type LazyOptions,
  type Leaf,
  type Optimizer,
  type OptimizerOptions,
  optimizer,
  penalized,
  penalizedRows,
  type RowsRule,
  requireRanges,
} from "./optimizer.ts";
import type { Table } from "./rows.ts";

/** Options of {@link rmsprop}. */
export interface RmspropOptions extends OptimizerOptions, DecayOptions, LazyOptions {
  /** Decay rate of the mean of squares; 0.99 by default. */
  readonly alpha?: number;
  /** 1e-8 by default. */
  readonly eps?: number;
  /** The momentum coefficient; 0 by default, which needs no slot. */
  readonly momentum?: number;
  /** Divide by the standard deviation instead of the root mean square; needs one more slot. */
  readonly centered?: boolean;
}

const OPTIONS: OptionKinds<RmspropOptions> = {
  ...COMMON_OPTIONS,
  lazy: "a function",
  alpha: "a number",
  eps: "a number",
  momentum: "a number",
  centered: "a boolean",
};

/**
 * s ← α·s + (1-α)·g², p ← p - lr · g / (√s + ε). The rate is 0.01 by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { rmsprop } from "tidemark/optim";
 *
 * const optimizer = rmsprop({ lr: 0.05 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.5, -1.5]
 */
export function rmsprop(options: RmspropOptions = {}): Optimizer {
  requireOptions("rmsprop", options, OPTIONS);
  const { lr = 0.01, alpha = 0.99, eps = 1e-8, momentum = 0, centered = false, weightDecay = 0 } = options;
  requireRanges("rmsprop", [
    ["alpha", alpha, 0, 1],
    ["eps", eps, 0, Number.POSITIVE_INFINITY],
    ["momentum", momentum, 0, 1],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  const blend = (past: Tensor | undefined, now: Tensor): Tensor => add(mul(past as Tensor, alpha), mul(now, 1 - alpha));
  const update = (leaf: Leaf, rate: TensorLike) => {
    const g = penalized(leaf, options);
    const squares = blend(leaf.slots.squares, square(g));
    const mean = centered ? blend(leaf.slots.mean, g) : undefined;
    const spread = mean ? sub(squares, square(mean)) : squares;
    const scaled = div(g, add(sqrt(spread), eps));
    const velocity = momentum > 0 ? add(mul(leaf.slots.velocity as Tensor, momentum), scaled) : undefined;
    const param = sub(leaf.param, mul(velocity ?? scaled, rate));
    return { param, slots: { squares, ...(mean ? { mean } : {}), ...(velocity ? { velocity } : {}) } };
  };
  const rows: RowsRule<TensorLike> = {
    isExact: false,
    lazy: options.lazy,
    update: (leaf, rate) => {
      const g = penalizedRows(leaf, options);
      const squares = (leaf.slots.squares as Table).scale(alpha).add(mul(square(g), 1 - alpha));
      const step = mul(div(g, add(sqrt(squares.rows()), eps)), rate);
      return { param: leaf.param.add(neg(step)), slots: { squares } };
    },
  };
  if (options.lazy && (momentum > 0 || centered)) {
    const summary = `rmsprop: lazy with ${momentum > 0 ? "momentum, which moves rows that are not looked up" : "centered"}`;
    fail("InvalidArgument", summary, "leave out one of them");
  }
  const slots = { squares: 0, ...(centered ? { mean: 0 } : {}), ...(momentum > 0 ? { velocity: 0 } : {}) };
  return optimizer({ name: "rmsprop", perElement: true, slots, scalars: (rate) => rate, update, rows }, lr, options);
}
