/** @file A training step of an imported model as a program of this library, to be planned beside what PyTorch takes for it. */
import * as t from "../api/functions.ts";
import { valueAndGrad } from "../api/grad.ts";
import { crossEntropy } from "../api/loss.ts";
import { specsOf } from "../api/specs-of.ts";
import type { ImportedModel } from "../exchange/shared/model.ts";
import { isBool, isFloat } from "../kernel/dtype.ts";
import { adam, adamw } from "../optim/adam.ts";
import type { Optimizer, OptimizerState } from "../optim/optimizer.ts";
import { sgd } from "../optim/sgd.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { OptimizerName } from "./torch/optimizer.ts";
import type { Loss } from "./torch/step.ts";

type Params = Record<string, Tensor>;

export interface TrainingSettings {
  readonly optimizer: OptimizerName;
  readonly loss?: Loss;
  /** Open sizes by name. */
  readonly sizes?: Readonly<Record<string, number>>;
}

export interface ModelTraining {
  /** The same step in parts. */
  readonly model: { loss(params: Params, ...batch: readonly Tensor[]): Tensor; readonly optimizer: Optimizer };
  init(): OptimizerState<Params>;
  batch(): readonly Tensor[];
  specs(): readonly [OptimizerState<Params>, ...Tensor[]];
  step(state: OptimizerState<Params>, ...inputs: Tensor[]): readonly [OptimizerState<Params>, Tensor];
}

const OPTIMIZERS: Readonly<Record<OptimizerName, () => Optimizer>> = {
  sgd: () => sgd({ lr: 1e-4 }),
  adam: () => adam({ lr: 1e-4 }),
  adamw: () => adamw({ lr: 1e-4 }),
};

/** Random floats, and zeros for whole numbers and flags. */
function randomInputs(specs: readonly Tensor[]): readonly Tensor[] {
  return specs.map(({ shape, dtype }, i) => {
    if (isBool(dtype)) return t.full(shape, false);
    return isFloat(dtype) ? t.random.normal(t.random.key(i), shape, { dtype }) : t.zeros(shape, dtype);
  });
}

/** The mean of squares of all float results, or the cross-entropy of the first. */
function lossOf(results: readonly Tensor[], loss: Loss, labels: Tensor | undefined): Tensor {
  const [first] = results;
  if (loss === "cross-entropy" && first && labels) return crossEntropy(first, labels);
  if (loss === "result" && first) return first;
  return results.map((y) => t.mean(t.square(y))).reduce((a, b) => t.add(a, b));
}

export function trainingOf(model: ImportedModel, settings: TrainingSettings): ModelTraining {
  const { loss = "squares", sizes = {} } = settings;
  const optimizer = OPTIMIZERS[settings.optimizer]();
  const specs = model.specs(sizes);
  const inputs = model.inputs.map(({ name }) => specs[name] as Tensor);
  const hasLabels = loss === "cross-entropy";
  const results = (params: Params, given: readonly Tensor[]): readonly Tensor[] =>
    Object.values(model.apply(params, [...given])).filter(({ dtype }) => isFloat(dtype));
  const ofParams = (params: Params, ...given: readonly Tensor[]): Tensor => {
    const own = hasLabels ? given.slice(0, -1) : given;
    return lossOf(results(params, own), loss, given.at(-1));
  };
  const gradients = valueAndGrad(ofParams);
  const labels = (): readonly Tensor[] => {
    if (!hasLabels) return [];
    const logits = specsOf((params: Params, ...given: Tensor[]) => results(params, given)[0] as Tensor);
    return [t.spec(logits(model.params, ...inputs).shape.slice(0, -1), "i32")];
  };
  const all = [...inputs, ...labels()];
  return {
    model: { loss: ofParams, optimizer },
    init: () => optimizer.init(model.params),
    batch: () => randomInputs(all),
    specs: () => [specsOf(() => optimizer.init(model.params))() as OptimizerState<Params>, ...all],
    step(state, ...given) {
      const [value, grads] = gradients(state.params, ...given);
      return [optimizer.update(state, grads as Params), value];
    },
  };
}
