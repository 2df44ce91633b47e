/**
 * @file A program of the command line: a training step over one state, with initial values. A module that exports one
 * under the name `program` is used like the built-in ones:
 *
 * ```js
 * import { mse, tensor, valueAndGrad } from "tidemark";
 *
 * export const program = {
 *   name: "line",
 *   init: () => ({ params: { w: tensor([[1], [2]]) } }),
 *   batch: () => [tensor([[1, 2], [3, 4]]), tensor([[1], [0]])],
 *   step(state, x, y) {
 *     const [loss, g] = valueAndGrad((p) => mse(x.matmul(p.w), y))(state.params);
 *     return [{ params: { w: state.params.w.sub(g.w.mul(0.1)) } }, loss];
 *   },
 * };
 * ```
 */
import type { NamedAxes } from "../../api/shape-axes.ts";
import type { Optimizer } from "../../optim/optimizer.ts";
import type { Tensor } from "../../trace/tensor.ts";

/** An axis of a mesh along which devices have parts of the weights. */
export interface TensorAxis {
  readonly over: string;
  readonly parts: number;
}

/** Where a parameter is cut: along an axis, in each of so many groups that lie one behind the other. */
export interface TensorCut {
  readonly axis: number;
  readonly groups?: number;
}

/** The same model with weights in parts. */
export interface TensorForm<P extends object> {
  /** By the last name of a parameter's path; others are equal on all devices. */
  readonly cuts: Readonly<Record<string, TensorCut>>;
  /** Parts must divide this. */
  readonly most: number;
  loss(axis: TensorAxis): (params: P, ...batch: readonly Tensor[]) => Tensor;
}

/** The functions of a model that is made of equal blocks. */
export interface BlockFunctions<S extends object, B extends object> {
  /** The operand of the first block. */
  first(shared: S, ...batch: readonly Tensor[]): Tensor;
  block(own: B, x: Tensor): Tensor;
  /** The loss behind the last block. */
  last(shared: S, y: Tensor, ...batch: readonly Tensor[]): Tensor;
}

/** The same model as equal blocks, with what is in front of them and behind them. */
export interface BlockForm<P extends object, S extends object = object, B extends object = object> {
  /** Their number. */
  readonly count: number;
  split(params: P): { readonly shared: S; readonly blocks: readonly B[] };
  join(shared: S, blocks: readonly B[]): object;
  /** With weights in parts, or whole. */
  functions(axis: TensorAxis | null): BlockFunctions<S, B>;
}

/** What a step is made of, for `bench --mesh` and `--microbatches`: the loss is a mean over the rows of the batch. */
export interface ModelParts<P extends object> {
  loss(params: P, ...batch: readonly Tensor[]): Tensor;
  readonly optimizer: Optimizer;
  /** For `--mesh tensor=2`. */
  readonly tensor?: TensorForm<P>;
  /** For `--mesh pipeline=2`. */
  readonly blocks?: BlockForm<P>;
}

export interface TrainingProgram<S = object> {
  readonly name: string;
  /** One line about what it is. */
  readonly title?: string;
  /** The state before the first step. */
  init(): S;
  /** The other arguments of a step. */
  batch(): readonly Tensor[];
  /** The arguments of a step as specs, to plan without making their values; `init()` and `batch()` by default. */
  specs?(): readonly [S, ...Tensor[]];
  /** Named axes of the arguments of a step, as `compile` has them, for `tidemark plan --shapes`. */
  readonly axes?: readonly NamedAxes[];
  /** Optional: the same step in parts. */
  readonly model?: ModelParts<never>;
  /** One step: the new state, with the structure of the old one, and the loss. Compiled with the state donated. */
  step(state: S, ...batch: Tensor[]): readonly [S, Tensor];
}
