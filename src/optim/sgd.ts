/** @file Stochastic gradient descent, with momentum as PyTorch defines it: the velocity is not scaled by the rate. */
import { add, mul, neg, sub } from "../api/elementwise.ts";
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

/** Options of {@link sgd}. */
export interface SgdOptions extends OptimizerOptions, DecayOptions, LazyOptions {
  /** The momentum coefficient; 0 by default, which needs no slot. */
  readonly momentum?: number;
  /** Look ahead along the velocity. */
  readonly nesterov?: boolean;
}

const OPTIONS: OptionKinds<SgdOptions> = {
  ...COMMON_OPTIONS,
  lazy: "a function",
  momentum: "a number",
  nesterov: "a boolean",
};

/**
 * v ← μ·v + g, p ← p - lr·v; with nesterov p ← p - lr·(g + μ·v). Without momentum and decay, large tables that a compiled step looks
 * up are updated row by row.
 *
 * @example
 * import { grad, tensor } from "tidemark";
 * import { sgd } from "tidemark/optim";
 *
 * const optimizer = sgd({ lr: 0.25 });
 * const state = optimizer.init({ x: tensor([4]) });
 * const next = optimizer.update(state, grad((p: typeof state.params) => p.x.square().sum())(state.params));
 * console.log(next.params.x.toArray(), next.step.item()); // [2] 1
 */
export function sgd(options: SgdOptions = {}): Optimizer {
  requireOptions("sgd", options, OPTIONS);
  const { lr = 0.01, momentum = 0, nesterov = false, weightDecay = 0 } = options;
  requireRanges("sgd", [
    ["momentum", momentum, 0, 1],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  if (nesterov && momentum === 0) fail("InvalidArgument", "sgd: nesterov without momentum", "give a momentum above 0");
  const update = (leaf: Leaf, rate: TensorLike) => {
    const g = penalized(leaf, options);
    if (momentum === 0) return { param: sub(leaf.param, mul(g, rate)), slots: {} };
    const velocity = add(mul(leaf.slots.velocity as Tensor, momentum), g);
    const direction = nesterov ? add(g, mul(velocity, momentum)) : velocity;
    return { param: sub(leaf.param, mul(direction, rate)), slots: { velocity } };
  };
  const rows: RowsRule<TensorLike> = {
    isExact: weightDecay === 0,
    lazy: options.lazy,
    update: (leaf, rate) => ({ param: leaf.param.add(neg(mul(penalizedRows(leaf, options), rate))), slots: {} }),
  };
  if (options.lazy && momentum > 0) {
    fail(
      "InvalidArgument",
      "sgd: lazy with momentum, which moves rows that are not looked up",
      "leave out one of them",
    );
  }
  const slots: Readonly<Record<string, number>> = momentum === 0 ? {} : { velocity: 0 };
  const rule = { name: "sgd", perElement: true as const, slots, scalars: (rate: TensorLike) => rate, update };
  return optimizer(momentum === 0 ? { ...rule, rows } : rule, lr, options);
}
