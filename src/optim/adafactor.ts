/**
 * @file Adafactor (N. Shazeer, M. Stern, ICML 2018). Of squared gradients of a matrix it keeps averages of rows and of columns, n + m
 * numbers where Adam keeps 2·n·m; tensors of a higher rank are matrices of their last two axes.
 *
 *   β = 1 - t^-0.8      R ← β·R + (1-β)·rows(g² + ε₁)      C ← β·C + (1-β)·columns(g² + ε₁)
 *   u = g·√(mean R) / √(R·Cᵀ)            u ← u / max(1, RMS(u)/d)
 *   p ← p - min(lr, 1/√t)·max(ε₂, RMS(p))·u
 */
import { add, div, maximum, minimum, mul, pow, rsqrt, sqrt, square, sub } from "../api/elementwise.ts";
import type { TensorLike } from "../api/operands.ts";
import { mean } from "../api/reduce.ts";
import { expandDims } from "../api/shape.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
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

/** Options of {@link adafactor}. */
export interface AdafactorOptions extends OptimizerOptions, DecayOptions {
  /** c of β = 1 - t⁻ᶜ; 0.8 by default. */
  readonly decay?: number;
  /** The limit d of the root mean square of an update; 1 by default. */
  readonly clipUpdate?: number;
  /** Added to squared gradients; 1e-30 by default. */
  readonly eps?: number;
  /** The least size of a parameter that steps are scaled by; 1e-3 by default. */
  readonly leastSize?: number;
}

const OPTIONS: OptionKinds<AdafactorOptions> = {
  ...COMMON_OPTIONS,
  decay: "a number",
  clipUpdate: "a number",
  eps: "a number",
  leastSize: "a number",
};

const rootMeanSquare = (x: Tensor): Tensor => sqrt(mean(square(x)));

/** Averages of rows and columns, or of single elements where there are no rows. */
function slotType(slot: string, { dtype, shape }: TensorType): TensorType {
  const columns = shape.length < 2 ? [] : [...shape.slice(0, -2), ...shape.slice(-1)];
  const rows = shape.length < 2 ? shape : shape.slice(0, -1);
  return tensorType(dtype, slot === "rows" ? rows : columns);
}

interface Scalars {
  readonly rate: TensorLike;
  /** 1 - β = t⁻ᶜ. */
  readonly share: Tensor;
}

/** past + share·(now - past). */
const blended = (past: Tensor | undefined, now: Tensor, share: Tensor): Tensor =>
  add(past as Tensor, mul(sub(now, past as Tensor), share));

/** The slots after this gradient, and 1 / √v. */
function secondMoment({ grad, slots }: Leaf, eps: number, share: Tensor) {
  const squares = add(square(grad), eps);
  if (grad.rank < 2) {
    const rows = blended(slots.rows, squares, share);
    return { next: { rows, columns: slots.columns as Tensor }, inverse: rsqrt(rows) };
  }
  const rows = blended(slots.rows, mean(squares, -1), share);
  const columns = blended(slots.columns, mean(squares, -2), share);
  const relative = rsqrt(div(rows, mean(rows, -1, { keepDims: true })));
  return { next: { rows, columns }, inverse: mul(expandDims(relative, -1), expandDims(rsqrt(columns), -2)) };
}

/**
 * The rate is at most 0.01 by default, and at most 1/√t at update t.
 *
 * @example
 * import { tensor } from "tidemark";
 * import { adafactor } from "tidemark/optim";
 *
 * const optimizer = adafactor({ lr: 0.1 });
 * const params = { w: tensor([1, -2]) };
 * const state = optimizer.update(optimizer.init(params), params);
 * console.log(state.params.w.toArray()); // → [0.841886, -1.84189]
 */
export function adafactor(options: AdafactorOptions = {}): Optimizer {
  requireOptions("adafactor", options, OPTIONS);
  const { lr = 0.01, decay = 0.8, clipUpdate = 1, eps = 1e-30, leastSize = 1e-3, weightDecay = 0 } = options;
  requireRanges("adafactor", [
    ["decay", decay, 0, Number.POSITIVE_INFINITY],
    ["clipUpdate", clipUpdate, Number.MIN_VALUE, Number.POSITIVE_INFINITY],
    ["eps", eps, 0, Number.POSITIVE_INFINITY],
    ["leastSize", leastSize, 0, Number.POSITIVE_INFINITY],
    ["weightDecay", weightDecay, 0, Number.POSITIVE_INFINITY],
  ]);
  const scalars = (rate: TensorLike, t: Tensor): Scalars => ({ rate: minimum(rsqrt(t), rate), share: pow(t, -decay) });
  const update = (leaf: Leaf, { rate, share }: Scalars) => {
    const { next, inverse } = secondMoment(leaf, eps, share);
    const raw = mul(leaf.grad, inverse);
    const limited = div(raw, maximum(div(rootMeanSquare(raw), clipUpdate), 1));
    const size = mul(maximum(rootMeanSquare(leaf.param), leastSize), rate);
    return { param: sub(shrunk(leaf, rate as Tensor, options), mul(limited, size)), slots: next };
  };
  return optimizer({ name: "adafactor", slots: { rows: 0, columns: 0 }, slotType, scalars, update }, lr, options);
}
