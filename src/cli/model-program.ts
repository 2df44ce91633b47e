/**
 * @file A model file as a program of the command line: a training step with Adam on the mean of its squared results, which is enough to plan
 * and to measure. Inputs are random numbers, whole ones zeros.
 */
import { basename, extname } from "node:path";
import * as t from "../api/functions.ts";
import { valueAndGrad } from "../api/grad.ts";
import { specsOf } from "../api/specs-of.ts";
import type { ImportedModel } from "../exchange/shared/model.ts";
import { isBool, isFloat } from "../kernel/dtype.ts";
import { readModel } from "../node/models.ts";
import { adam } from "../optim/adam.ts";
import type { OptimizerState } from "../optim/optimizer.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { TrainingProgram } from "./programs/program.ts";

const EXTENSIONS: readonly string[] = [".onnx", ".pt2"];
export const isModelFile = (word: string): boolean => EXTENSIONS.includes(extname(word).toLowerCase());

type Params = Record<string, Tensor>;

function randomInputs(model: ImportedModel): readonly Tensor[] {
  const specs = model.specs();
  return model.inputs.map(({ name }, i) => {
    const { shape, dtype } = specs[name] as Tensor;
    if (isBool(dtype)) return t.full(shape, false);
    return isFloat(dtype) ? t.random.normal(t.random.key(i), shape, { dtype }) : t.zeros(shape, dtype);
  });
}

/** The mean of squares of all float results. */
function lossOf(model: ImportedModel, params: Params, inputs: readonly Tensor[]): Tensor {
  const results = Object.values(model.apply(params, inputs)).filter(({ dtype }) => isFloat(dtype));
  return results.map((y) => t.mean(t.square(y))).reduce((a, b) => t.add(a, b));
}

export async function modelProgram(path: string): Promise<TrainingProgram<OptimizerState<Params>>> {
  const model = await readModel(path, { unknown: "plan" });
  const optimizer = adam({ lr: 1e-4 });
  const gradients = valueAndGrad((params: Params, ...inputs: Tensor[]) => lossOf(model, params, inputs));
  const specs = model.specs();
  return {
    name: basename(path, extname(path)),
    title: `${basename(path)}, mean of squared results, Adam`,
    init: () => optimizer.init(model.params),
    batch: () => randomInputs(model),
    specs: () => [
      specsOf(() => optimizer.init(model.params))() as OptimizerState<Params>,
      ...model.inputs.map(({ name }) => specs[name] as Tensor),
    ],
    step(state, ...inputs) {
      const [loss, grads] = gradients(state.params, ...inputs);
      return [optimizer.update(state, grads as Params), loss];
    },
  };
}
