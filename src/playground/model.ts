/**
 * @file The playground's models: a training step, the initial state, and a batch for every step. All numbers come from
 * seeds by additions, products and square roots, so every engine starts from the same bits.
 */

import { spec } from "../api/create.ts";
import { valueAndGrad } from "../api/grad.ts";
import { specsOf } from "../api/specs-of.ts";
import type { TensorType } from "../ir/type.ts";
import type { Optimizer, OptimizerState } from "../optim/optimizer.ts";
import type { TypedArray } from "../trace/storage.ts";
import { ArrayStorage } from "../trace/storage.ts";
import { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";

/** Elements of the two arguments of a step besides the state. */
export type Batch = readonly [TypedArray, TypedArray];

export interface PlaygroundModel {
  readonly name: string;
  /** A one-line description. */
  readonly title: string;
  init(): object;
  /** Types of the batch. */
  readonly inputs: readonly [TensorType, TensorType];
  /** The batch of a step; the same for the same number. */
  batch(step: number): Batch;
  step(state: object, x: Tensor, y: Tensor): readonly [object, Tensor];
}

export interface ModelParts<P extends Tree> {
  readonly name: string;
  readonly title: string;
  readonly optimizer: Optimizer;
  readonly inputs: readonly [TensorType, TensorType];
  params(): P;
  batch(step: number): Batch;
  loss(params: P, x: Tensor, y: Tensor): Tensor;
}

/** A training step from a loss and an optimizer. */
export function playgroundModel<P extends Tree>(parts: ModelParts<P>): PlaygroundModel {
  const { name, title, inputs, optimizer } = parts;
  const lossOf = (params: P, x: Tensor, y: Tensor): Tensor => parts.loss(params, x, y);
  const step = (state: object, x: Tensor, y: Tensor): readonly [object, Tensor] => {
    const [loss, grads] = valueAndGrad(lossOf)((state as OptimizerState<P>).params, x, y);
    return [optimizer.update(state as OptimizerState<P>, grads as P), loss];
  };
  return { name, title, inputs, step, init: () => optimizer.init(parts.params()), batch: (n) => parts.batch(n) };
}

/** The arguments of a step as specs, to plan without values. */
export function specsOfModel({ init, inputs }: PlaygroundModel): readonly unknown[] {
  return [specsOf(init)(), ...inputs.map(({ shape, dtype }) => spec(shape, dtype))];
}

/** A batch as tensors. */
export function batchTensors({ inputs }: PlaygroundModel, batch: Batch): readonly [Tensor, Tensor] {
  const tensors = batch.map((data, i) => {
    const { dtype, shape } = inputs[i] as TensorType;
    return new Tensor(new ArrayStorage(dtype, shape, data));
  });
  return tensors as unknown as readonly [Tensor, Tensor];
}
