/** @file `mlp`: 784-512-512-10 with relu on a batch of 128, cross entropy, Adam. */
import { add } from "../../api/elementwise.ts";
import { matmul } from "../../api/linear.ts";
import { crossEntropy } from "../../api/loss.ts";
import { relu } from "../../api/math.ts";
import { adam } from "../../optim/adam.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { classIds, he, INPUT_STREAM, TARGET_STREAM } from "./data.ts";
import type { TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

const BATCH = 128;
const WIDTHS = [
  [784, 512],
  [512, 512],
  [512, 10],
] as const;

interface Dense {
  readonly w: Tensor;
  readonly b: Tensor;
}

interface MlpParams {
  readonly layers: readonly Dense[];
}

export const mlp: TrainingProgram<OptimizerState<MlpParams>> = training<MlpParams>({
  name: "mlp",
  title: "MLP 784-512-512-10, batch 128, Adam",
  optimizer: adam({ lr: 1e-3 }),
  params(p) {
    return { layers: WIDTHS.map(([from, to]) => ({ w: p.draw([from, to], he(from)), b: p.fill([to], 0) })) };
  },
  batch: (n) => [n.data([BATCH, 784], INPUT_STREAM), n.ids([BATCH], () => classIds(BATCH, TARGET_STREAM, 10))],
  loss({ layers }, x, y) {
    const logits = layers.reduce((h, { w, b }, i) => {
      const z = add(matmul(h, w), b);
      return i < layers.length - 1 ? relu(z) : z;
    }, x);
    return crossEntropy(logits, y);
  },
});
