/** @file Adagrad (J. Duchi, E. Hazan, Y. Singer, JMLR 2011): steps over the root of the sum of all squares so far. */
import { add, div, mul, neg, sqrt, square, sub } from "../api/elementwise.ts";
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
  requireRanges,
} from "./optimizer.ts";
import type { Table } from "./rows.ts";

/** Options of {@link adagrad}. */
export interface AdagradOptions extends OptimizerOptions, DecayOptions, LazyOptions {
  /** The rate of update t is lr / (1 + (t-1)·lrDecay); 0 by default. */
  readonly lrDecay?: number;
  /** The initial sum of squares; 0 by default. */
  readonly initial?: number;
  /** 1e-10 by default. */
  readonly eps?: number;
}

const OPTIONS: OptionKinds<AdagradOptions> = {
  ...COMMON_OPTIONS,
  lazy: "a function",
  lrDecay: "a number",
  initial: "a number",
  eps: "a number",
};

/**
 * s ← s + g², p ← p - lr · g / (√s + ε). The rate is 0.01 by default. Without decay, large tables that a compiled step looks up are
 * updated row by row.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { adagrad } from "tidemark/optim";
 *
 * const optimizer = adagrad({ lr: 0.5 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.5, -1.5]
 */
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
  const rows: RowsRule<TensorLike> = {
    isExact: weightDecay === 0 && eps > 0,
    lazy: options.lazy,
    update: (leaf, rate) => {
      const g = penalizedRows(leaf, options);
      const squares = (leaf.slots.squares as Table).add(square(g));
      const step = mul(div(g, add(sqrt(squares.rows()), eps)), rate);
      return { param: leaf.param.add(neg(step)), slots: { squares } };
    },
  };
  return optimizer(
    { name: "adagrad", perElement: true, slots: { squares: initial }, scalars, update, rows },
    lr,
    options,
  );
}
