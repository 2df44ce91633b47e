/**
 * @file Adam (D. Kingma, J. Ba, ICLR 2015) and AdamW, whose weight decay is apart from the gradient (I. Loshchilov, F.
 * Hutter, ICLR 2019).
 *
 *   m ← β₁·m + (1-β₁)·g      v ← β₂·v + (1-β₂)·g²
 *   p ← p - lr/(1-β₁ᵗ) · m / (√v/√(1-β₂ᵗ) + ε)
 *
 * 1 - βᵗ is computed as -expm1(t·ln β): at t = 1 and β = 0.999 the plain formula would lose four digits in f32.
 */
import { add, div, mul, neg, rsqrt, sqrt, square, sub } from "../api/elementwise.ts";
import { expm1 } from "../api/math.ts";
import type { TensorLike } from "../api/operands.ts";
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
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
  type Rule,
  requireRanges,
} from "./optimizer.ts";
import type { Table } from "./rows.ts";

/** Options of optimizers with two moments. */
export interface MomentOptions extends OptimizerOptions, DecayOptions {
  /** Decay rate of the mean of gradients; 0.9 by default. */
  readonly beta1?: number;
  /** Decay rate of the mean of squared gradients; 0.999 by default. */
  readonly beta2?: number;
  /** 1e-8 by default. */
  readonly eps?: number;
}

/** Options of {@link adam} and {@link adamw}. */
export interface AdamOptions extends MomentOptions, LazyOptions {}

/** @internal */
export const MOMENT_OPTIONS: OptionKinds<MomentOptions> = {
  ...COMMON_OPTIONS,
  beta1: "a number",
  beta2: "a number",
  eps: "a number",
};

const OPTIONS: OptionKinds<AdamOptions> = { ...MOMENT_OPTIONS, lazy: "a function" };

/** What all parameters have in common. @internal */
export interface AdamScalars {
  /** lr / (1 - β₁ᵗ). */
  readonly stepSize: TensorLike;
  /** 1 / √(1 - β₂ᵗ). */
  readonly inverse: TensorLike;
  /** 1 - lr·λ. */
  readonly shrink: TensorLike;
}

/** 1 - βᵗ. @internal */
export function correction(beta: number, t: Tensor): Tensor {
  return neg(expm1(mul(t, Math.log(beta))));
}

/** The settings with their defaults, checked. @internal */
export function momentSettings(name: string, options: MomentOptions) {
  const { beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weightDecay = 0 } = options;
  requireRanges(name, [
    ["beta1", beta1, 0, 1],
    ["beta2", beta2, 0, 1],
    ["eps", eps, 0, Number.POSITIVE_INFINITY],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  return { beta1, beta2, eps, weightDecay };
}

/** @internal */
export function adamScalars(
  { beta1, beta2, weightDecay }: ReturnType<typeof momentSettings>,
  rate: Tensor | number,
  t: Tensor,
): AdamScalars {
  return {
    stepSize: beta1 === 0 ? rate : div(rate, correction(beta1, t)),
    inverse: beta2 === 0 ? 1 : rsqrt(correction(beta2, t)),
    // numbers stay numbers: they take the element type of the parameter
    shrink: typeof rate === "number" ? 1 - rate * weightDecay : sub(1, mul(rate, weightDecay)),
  };
}

function adamRule(name: string, options: AdamOptions, decoupled: boolean): Rule<AdamScalars> {
  requireOptions(name, options, OPTIONS);
  const settings = momentSettings(name, options);
  const { beta1, beta2, eps, weightDecay } = settings;
  const shrinks = decoupled && weightDecay > 0;
  const rows: RowsRule<AdamScalars> = {
    isExact: false,
    lazy: options.lazy,
    update: (leaf, { stepSize, inverse, shrink }) => {
      const g = decoupled ? leaf.grad : penalizedRows(leaf, options);
      const m = (leaf.slots.m as Table).scale(beta1).add(mul(g, 1 - beta1));
      const v = (leaf.slots.v as Table).scale(beta2).add(mul(square(g), 1 - beta2));
      const denominator = add(mul(sqrt(v.rows()), inverse), eps);
      const decayed =
        shrinks && options.decays?.(leaf.path) !== false ? leaf.param.scale(shrink as Tensor | number) : leaf.param;
      return { param: decayed.add(neg(mul(div(m.rows(), denominator), stepSize))), slots: { m, v } };
    },
  };
  return {
    name,
    perElement: true,
    rows,
    slots: { m: 0, v: 0 },
    scalars: (rate, t) => adamScalars(settings, rate, t),
    update: (leaf: Leaf, { stepSize, inverse, shrink }) => {
      const g = decoupled ? leaf.grad : penalized(leaf, options);
      const m = add(mul(leaf.slots.m as Tensor, beta1), mul(g, 1 - beta1));
      const v = add(mul(leaf.slots.v as Tensor, beta2), mul(square(g), 1 - beta2));
      const denominator = add(mul(sqrt(v), inverse), eps);
      const decayed = shrinks && options.decays?.(leaf.path) !== false ? mul(leaf.param, shrink) : leaf.param;
      return { param: sub(decayed, mul(div(m, denominator), stepSize)), slots: { m, v } };
    },
  };
}

/**
 * Adam; `weightDecay` is a penalty, part of the gradient. The rate is 0.001 by default.
 *
 * @example
 * import { grad, tensor } from "tidemark";
 * import { adam } from "tidemark/optim";
 *
 * const optimizer = adam({ lr: 0.1 });
 * let state = optimizer.init({ x: tensor([3]) });
 * const slope = grad((p: typeof state.params) => p.x.square().sum());
 * for (let i = 0; i < 3; i++) state = optimizer.update(state, slope(state.params));
 * console.log(state.params.x.item().toFixed(1)); // "2.7"
 */
export function adam(options: AdamOptions = {}): Optimizer {
  return optimizer(adamRule("adam", options, false), options.lr ?? 0.001, options);
}

/**
 * Adam with p ← p·(1 - lr·weightDecay) before the step; 0.01 by default. The rate is 0.001 by default.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { adamw } from "tidemark/optim";
 *
 * const optimizer = adamw({ lr: 0.1, weightDecay: 0.01 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.899, -1.898]
 */
export function adamw(options: AdamOptions = {}): Optimizer {
  requireOptions("adamw", options, OPTIONS);
  const weightDecay = options.weightDecay ?? 0.01;
  return optimizer(adamRule("adamw", { ...options, weightDecay }, true), options.lr ?? 0.001, options);
}
