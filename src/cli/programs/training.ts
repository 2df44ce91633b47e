/** @file A program from a model: parameters, a batch, a loss and an optimizer make a training step. */
import { valueAndGrad } from "../../api/grad.ts";
import { specsOf } from "../../api/specs-of.ts";
import type { Optimizer, OptimizerState } from "../../optim/optimizer.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { drawn, type Numbers, typesAlone } from "./data.ts";
import type { TrainingProgram } from "./program.ts";

export interface Model<P extends object> {
  readonly name: string;
  readonly title: string;
  readonly optimizer: Optimizer;
  params(numbers: Numbers): P;
  batch(numbers: Numbers): readonly [Tensor, Tensor];
  loss(params: P, x: Tensor, y: Tensor): Tensor;
}

export function training<P extends object>(model: Model<P>): TrainingProgram<OptimizerState<P>> {
  const { name, title, optimizer } = model;
  const gradients = valueAndGrad((params: P, x: Tensor, y: Tensor) => model.loss(params, x, y));
  // a function in an object literal takes the name of its key, and the traced graph takes the function's
  const named = {
    [name]: (state: OptimizerState<P>, x: Tensor, y: Tensor): readonly [OptimizerState<P>, Tensor] => {
      const [loss, grads] = gradients(state.params, x, y);
      return [optimizer.update(state, grads as P), loss];
    },
  };
  const step = named[name] as TrainingProgram<OptimizerState<P>>["step"];
  const state = (numbers: Numbers): OptimizerState<P> => optimizer.init(model.params(numbers));
  return {
    ...{ name, title, step },
    init: () => state(drawn()),
    batch: () => model.batch(drawn()),
    specs: () => [specsOf(() => state(typesAlone))(), ...model.batch(typesAlone)],
  };
}
