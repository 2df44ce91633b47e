/** @file Trains a model for a number of steps and gives its loss on batches that it was not trained on. */
import { compile, type PlanInfo, type Tensor, valueAndGrad } from "../src/api/index.ts";
import type { CompileOptions } from "../src/api/request.ts";
import type { Optimizer, OptimizerState } from "../src/optim/index.ts";
import type { Tree } from "../src/trace/tree.ts";
import type { Model } from "./byte-gpt.ts";

const VALIDATED = 16;

export interface Training {
  readonly model: Model;
  readonly optimizer: Optimizer;
  readonly steps: number;
  readonly seed: number;
  readonly options?: CompileOptions;
}

export function trained({ model, optimizer, steps, seed, options = {} }: Training) {
  const step = compile(
    (state: OptimizerState<Tree>, x: Tensor, y: Tensor) => {
      const [loss, grads] = valueAndGrad((p: Tree) => model.loss(p as object, x, y))(state.params);
      return [optimizer.update(state, grads), loss] as const;
    },
    { donate: [0], target: "auto", cache: false, ...options },
  );
  let state = optimizer.init(model.init(seed) as Tree);
  const info: PlanInfo = step.program(state, ...model.batch(0, seed));
  const { arenaBytes, persistentBytes, lossy } = info;
  const started = performance.now();
  for (let i = 0; i < steps; i++) [state] = step(state, ...model.batch(i, seed));
  const stepMs = (performance.now() - started) / steps;
  const score = compile((p: Tree, x: Tensor, y: Tensor) => model.loss(p as object, x, y), { target: "auto" });
  let sum = 0;
  for (let i = 1; i <= VALIDATED; i++) sum += score(state.params, ...model.batch(-i, 0)).item();
  step.dispose();
  score.dispose();
  return { loss: sum / VALIDATED, arenaBytes, persistentBytes, lossy, stepMs };
}
