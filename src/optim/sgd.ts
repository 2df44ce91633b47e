/** @file Stochastic gradient descent, with momentum as PyTorch defines it: the velocity is not scaled by the rate. */
import { add, cast, mul, neg, sub } from "../api/elementwise.ts";
import type { TensorLike } from "../api/operands.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import { describe, fail, type OptionKinds, requireOptions } from "../trace/arguments.ts";
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
  /**
   * The type that velocities are kept in; by default that of the parameter. `"bf16"` takes 2 bytes an element: the update is computed in
   * the parameter's type, and what is kept of the velocity is rounded to the nearest bf16.
   */
  readonly momentumType?: "bf16";
}

const ROUNDED_TYPES: readonly string[] = ["bf16"];

/** Up to here a velocity without gradients shrinks in bf16: 1 - μ is at least an eighth bit's worth of a number. */
const MOST_ROUNDED_MOMENTUM = 1 - 2 ** -8;

const OPTIONS: OptionKinds<SgdOptions> = {
  ...COMMON_OPTIONS,
  lazy: "a function",
  momentum: "a number",
  nesterov: "a boolean",
  momentumType: "anything",
};

function requireMomentumType({ momentum = 0, momentumType }: SgdOptions): void {
  if (momentumType === undefined) return;
  if (!ROUNDED_TYPES.includes(momentumType)) {
    const summary = `sgd: momentumType is ${describe(momentumType)}`;
    fail("InvalidArgument", summary, 'give "bf16", or leave it out for the type of the parameters');
  }
  if (momentum === 0) fail("InvalidArgument", "sgd: momentumType without momentum", "give a momentum above 0");
  if (momentum <= MOST_ROUNDED_MOMENTUM) return;
  const summary = `sgd: momentum ${momentum} in bf16, whose 8 bits round such a small change of a velocity away`;
  fail("InvalidArgument", summary, `give a momentum of at most ${MOST_ROUNDED_MOMENTUM}, or leave out momentumType`);
}

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
  const { lr = 0.01, momentum = 0, nesterov = false, weightDecay = 0, momentumType } = options;
  requireRanges("sgd", [
    ["momentum", momentum, 0, 1],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  if (nesterov && momentum === 0) fail("InvalidArgument", "sgd: nesterov without momentum", "give a momentum above 0");
  requireMomentumType(options);
  const update = (leaf: Leaf, rate: TensorLike) => {
    const g = penalized(leaf, options);
    if (momentum === 0) return { param: sub(leaf.param, mul(g, rate)), slots: {} };
    const slot = leaf.slots.velocity as Tensor;
    const velocity = add(mul(cast(slot, leaf.param.dtype), momentum), g);
    const direction = nesterov ? add(g, mul(velocity, momentum)) : velocity;
    return { param: sub(leaf.param, mul(direction, rate)), slots: { velocity: cast(velocity, slot.dtype) } };
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
  const slotType = (_: string, { dtype, shape }: TensorType) => tensorType(momentumType ?? dtype, shape);
  const scalars = (rate: TensorLike): TensorLike => rate;
  const rule = { name: "sgd", perElement: true as const, slots, slotType, scalars, update };
  return optimizer(momentum === 0 ? { ...rule, rows } : rule, lr, options);
}
