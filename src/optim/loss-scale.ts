/**
 * @file A loss scale that follows the gradients, for products in f16 (P. Micikevicius and others, "Mixed precision training", ICLR
 * 2018): of too large a scale gradients overflow, and the update is left out; of too small a one small cotangents are lost.
 *
 *   all gradients finite      the update; after `every` of them in a row scale × growth
 *   any infinite or NaN       parameters, moments and step stay as they were; scale × backoff
 *
 * Whether all are finite is known when the last gradient is: they wait for it. A plan says how many bytes that takes (`gradientBytes`),
 * and under a budget the planner weighs it against computing some of them again.
 */
import { isfinite } from "../api/arithmetic.ts";
import { add, clamp, equal, logicalAnd, mul, where } from "../api/elementwise.ts";
import { fullOf } from "../api/operands.ts";
import { all } from "../api/reduce.ts";
import { at } from "../base/invariant.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { asFunction, inPhase } from "../trace/trace.ts";
import { flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import { type Optimizer, type OptimizerState, requireRanges } from "./optimizer.ts";

/** Options of {@link dynamicLossScale}. */
export interface LossScaleOptions {
  /** The scale at first; 2¹⁵ by default. */
  readonly initial?: number;
  /** What the scale is multiplied with after `every` updates in a row; 2 by default. */
  readonly growth?: number;
  /** What it is multiplied with after a step that was left out; 0.5 by default. */
  readonly backoff?: number;
  /** 2000 by default. */
  readonly every?: number;
}

/** The state of an optimizer, and the scale for `lossScale` of `autocast`. */
export interface ScaledState<P extends Tree = Tree> extends OptimizerState<P> {
  /** f32[]. */
  readonly scale: Tensor;
  /** Updates since the scale changed, i32[]. */
  readonly updates: Tensor;
}

/** An optimizer whose state has a loss scale. */
export interface ScaledOptimizer {
  init<P extends Tree>(params: P): ScaledState<P>;
  update<P extends Tree>(state: ScaledState<P>, grads: NoInfer<P>): ScaledState<P>;
}

const OPTIONS: OptionKinds<LossScaleOptions> = {
  initial: "a number",
  growth: "a number",
  backoff: "a number",
  every: "a number",
};

/** Far within f32, so that a scale can always come back. */
const [LEAST, MOST] = [2 ** -60, 2 ** 60];

function settingsOf(options: LossScaleOptions): Required<LossScaleOptions> {
  requireOptions("dynamicLossScale", options, OPTIONS);
  const { initial = 2 ** 15, growth = 2, backoff = 0.5, every = 2000 } = options;
  requireRanges("dynamicLossScale", [
    ["initial", initial, LEAST, MOST],
    ["growth", growth, 1, MOST],
    ["backoff", backoff, LEAST, 1],
    ["every", every, 1, 2 ** 31],
  ]);
  if (Number.isInteger(every)) return { initial, growth, backoff, every };
  return fail("InvalidArgument", `dynamicLossScale: every ${describe(every)}`, "give a whole number of updates");
}

/**
 * An optimizer that leaves out updates by gradients that are not finite, and a loss scale that becomes smaller with them and
 * grows without: `state.scale`, for `lossScale` of `autocast`. All gradients are live until the last one is computed, so a plan needs
 * memory for all of them; with a number for `lossScale` it does not.
 *
 * @example
 * import { autocast, compile, ones, type Tensor, valueAndGrad } from "tidemark";
 * import { adamw, dynamicLossScale } from "tidemark/optim";
 *
 * const optimizer = dynamicLossScale(adamw({ lr: 0.01 }));
 * let state = optimizer.init({ w: ones([4, 2]) });
 * const lossOf = (p: typeof state.params, x: Tensor) => x.matmul(p.w).square().mean();
 * const step = compile((s: typeof state, x: Tensor) => {
 *   const [loss, grads] = valueAndGrad(autocast(lossOf, { products: "f16", lossScale: s.scale }))(s.params, x);
 *   return [optimizer.update(s, grads), loss] as const;
 * }, { donate: [0] });
 * let loss: Tensor;
 * [state, loss] = step(state, ones([3, 4]));
 * console.log(loss.item(), state.scale.item(), state.step.item()); // 16 32768 1
 */
export function dynamicLossScale(optimizer: Optimizer, options: LossScaleOptions = {}): ScaledOptimizer {
  requireFunction("dynamicLossScale", "update of the optimizer", optimizer?.update);
  const { initial, growth, backoff, every } = settingsOf(options);

  function updated<P extends Tree>({ scale, updates, ...own }: ScaledState<P>, grads: P): ScaledState<P> {
    const flat = flatten(grads, "grads");
    const finite = flat.leaves
      .map((grad) => all(isfinite(grad)))
      .reduce((every, one) => logicalAnd(every, one), fullOf("bool", [], 1));
    // an update that reads these begins when all gradients are known: only they wait, not what it computes
    const safe = unflatten(
      flat.def,
      flat.leaves.map((grad) => where(finite, grad, 0)),
    ) as P;
    const before = flatten(own as Tree, "state");
    const next = flattenLike(before.def, optimizer.update(own as OptimizerState<P>, safe), "state");
    const leaves = next.map((leaf, i) => where(finite, leaf, at(before.leaves, i)));
    const count = add(updates, 1);
    const grows = equal(count, every);
    const changed = where(finite, where(grows, mul(scale, growth), scale), mul(scale, backoff));
    return {
      ...(unflatten(before.def, leaves) as OptimizerState<P>),
      scale: clamp(changed, LEAST, MOST),
      updates: where(logicalAnd(finite, equal(grows, false)), count, 0),
    };
  }

  return {
    init: (params) => ({
      ...optimizer.init(params),
      scale: fullOf("f32", [], initial),
      updates: fullOf("i32", [], 0),
    }),
    update: (state, grads) => asFunction("dynamicLossScale", () => inPhase("update", () => updated(state, grads))),
  };
}
