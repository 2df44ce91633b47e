/** @file A program from a model: parameters, a batch, a loss and an optimizer make a training step. */
import { valueAndGrad } from "../../api/grad.ts";
import type { NamedAxes } from "../../api/shape-axes.ts";
import { specsOf } from "../../api/specs-of.ts";
import type { Optimizer, OptimizerState } from "../../optim/optimizer.ts";
import type { AnyFunction } from "../../trace/function.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { drawn, type Numbers, typesAlone } from "./data.ts";
import type { BlockForm, TensorAxis, TensorForm, TrainingProgram } from "./program.ts";

/** The true lengths of padded dimensions, by name. */
export type Lengths = Readonly<Record<string, Tensor>>;

export interface Model<P extends object> {
  readonly name: string;
  readonly title: string;
  readonly optimizer: Optimizer;
  params(numbers: Numbers): P;
  batch(numbers: Numbers): readonly [Tensor, Tensor];
  /** As in the program. */
  readonly axes?: readonly NamedAxes[];
  /** The same with weights in parts, `loss` in front of the batch's two tensors. */
  readonly tensor?: Omit<TensorForm<P>, "loss"> & {
    loss(axis: TensorAxis): (params: P, x: Tensor, y: Tensor) => Tensor;
  };
  /** The same as blocks. */
  readonly blocks?: BlockForm<P>;
  /** `lengths`: of named dimensions, where x and y are padded. */
  loss(params: P, x: Tensor, y: Tensor, lengths?: Lengths): Tensor;
}

export function training<P extends object>(model: Model<P>): TrainingProgram<OptimizerState<P>> {
  const { name, title, optimizer, axes, tensor, blocks } = model;
  const gradients = valueAndGrad((params: P, x: Tensor, y: Tensor, ...lengths: readonly Lengths[]) =>
    model.loss(params, x, y, ...lengths),
  );
  // a function in an object literal takes the name of its key, and the traced graph takes the function's
  const named = {
    [name]: (
      state: OptimizerState<P>,
      x: Tensor,
      y: Tensor,
      ...lengths: readonly Lengths[]
    ): readonly [OptimizerState<P>, Tensor] => {
      const [loss, grads] = gradients(state.params, x, y, ...lengths);
      return [optimizer.update(state, grads as P), loss];
    },
  };
  // lengths come behind the batch where it is padded
  const step = named[name] as AnyFunction as TrainingProgram<OptimizerState<P>>["step"];
  const state = (numbers: Numbers): OptimizerState<P> => optimizer.init(model.params(numbers));
  return {
    ...{ name, title, step, ...(axes ? { axes } : {}) },
    model: {
      optimizer,
      loss: (params: P, ...[x, y]: readonly Tensor[]) => model.loss(params, x as Tensor, y as Tensor),
      ...(tensor ? { tensor: tensor as TensorForm<P> } : {}),
      ...(blocks ? { blocks } : {}),
    },
    init: () => state(drawn()),
    batch: () => model.batch(drawn()),
    specs: () => [specsOf(() => state(typesAlone))(), ...model.batch(typesAlone)],
  };
}
