/** @file Adagrad (J. Duchi, E. Hazan, Y. Singer, JMLR 2011): steps over the root of the sum of all squares so far. */
import { add, div, mul, sqrt, square, sub } from "../api/elementwise.ts";
import type { TensorLike } from "../api/operands.ts";
import { type OptionKinds, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import {
  COMMON_OPTIONS,
  type DecayOptions,
  type Leaf,
  type Optimizer,
  type OptimizerOptions,
  optimizer,
  penalized,
  requireRanges,
} from "./optimizer.ts";

export interface AdagradOptions extends OptimizerOptions, DecayOptions {
  /** The rate of update t is lr / (1 + (t-1)·lrDecay); 0 by default. */
  readonly lrDecay?: number;
  /** The initial sum of squares; 0 by default. */
  readonly initial?: number;
  /** 1e-10 by default. */
  readonly eps?: number;
}

const OPTIONS: OptionKinds<AdagradOptions> = {
  ...COMMON_OPTIONS,
  lrDecay: "a number",
  initial: "a number",
  eps: "a number",
};

/** s ← s + g², p ← p - lr · g / (√s + ε). The rate is 0.01 by default. */
export function adagrad(options: AdagradOptions = {}): Optimizer {
  requireOptions("adagrad", options, OPTIONS);
  const { lr = 0.01, lrDecay = 0, initial = 0, eps = 1e-10, weightDecay = 0 } = options;
  requireRanges("adagrad", [
    ["lrDecay", lrDecay, 0, Number.POSITIVE_INFINITY],
    ["initial", initial, 0, Number.POSITIVE_INFINITY],
    ["eps", eps, 0, Number.POSITIVE_INFINITY],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  const scalars = (rate: TensorLike, t: Tensor): TensorLike =>
    lrDecay === 0 ? rate : div(rate, add(mul(sub(t, 1), lrDecay), 1));
  const update = (leaf: Leaf, rate: TensorLike) => {
    const g = penalized(leaf, options);
    const squares = add(leaf.slots.squares as Tensor, square(g));
    return { param: sub(leaf.param, mul(div(g, add(sqrt(squares), eps)), rate)), slots: { squares } };
  };
  return optimizer({ name: "adagrad", slots: { squares: initial }, scalars, update }, lr, options);
}
