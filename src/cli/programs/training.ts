/** @file A program from a model: parameters, a batch, a loss and an optimizer make a training step. */
import { valueAndGrad } from "../../api/grad.ts";
import type { Tensor } from "../../trace/tensor.ts";
import type { Optimizer } from "./optimizers.ts";
import type { State, TrainingProgram } from "./program.ts";

export interface Model<P extends object> {
  readonly name: string;
  readonly title: string;
  readonly optimizer: Optimizer;
  params(): P;
  batch(): readonly [Tensor, Tensor];
  loss(params: P, x: Tensor, y: Tensor): Tensor;
}

export function training<P extends object>(model: Model<P>): TrainingProgram<State<P>> {
  const { name, title, optimizer } = model;
  const gradients = valueAndGrad((params: P, x: Tensor, y: Tensor) => model.loss(params, x, y));
  // a function in an object literal takes the name of its key, and the traced graph takes the function's
  const named = {
    [name]: (state: State<P>, x: Tensor, y: Tensor): readonly [State<P>, Tensor] => {
      const [loss, grads] = gradients(state.params, x, y);
      return [optimizer.update(state, grads), loss];
    },
  };
  const step = named[name] as TrainingProgram<State<P>>["step"];
  return { name, title, init: () => optimizer.init(model.params()), batch: () => model.batch(), step };
}
