/**
 * @file `lstm`: 64 time steps of 64 inputs, 256 hidden, the last state classified, on a batch of 32, cross entropy, SGD.
 * Time is unrolled; the input's share of all gates is one product before the loop.
 *
 *   i, f, g, o = x wx + b + h wh;   c ← σ(f) c + σ(i) tanh(g);   h ← σ(o) tanh(c)
 */
import { zeros } from "../../api/create.ts";
import { add, mul, sigmoid, tanh } from "../../api/elementwise.ts";
import { split } from "../../api/join.ts";
import { matmul } from "../../api/linear.ts";
import { crossEntropy } from "../../api/loss.ts";
import { reshape, transpose } from "../../api/shape.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { sgd } from "../../optim/sgd.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { classIds, INPUT_STREAM, TARGET_STREAM } from "./data.ts";
import type { TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

const [BATCH, TIME, INPUT, HIDDEN, CLASSES] = [32, 64, 64, 256, 10];
const SCALE = 1 / Math.sqrt(HIDDEN);

type LstmParams = Readonly<Record<"wx" | "wh" | "b" | "wo" | "bo", Tensor>>;

export const lstm: TrainingProgram<OptimizerState<LstmParams>> = training<LstmParams>({
  name: "lstm",
  title: "LSTM, 64 steps, 64 inputs, 256 hidden, batch 32, SGD",
  optimizer: sgd({ lr: 0.1 }),
  params(p) {
    return {
      wx: p.draw([INPUT, 4 * HIDDEN], SCALE),
      wh: p.draw([HIDDEN, 4 * HIDDEN], SCALE),
      b: p.fill([4 * HIDDEN], 0),
      wo: p.draw([HIDDEN, CLASSES], SCALE),
      bo: p.fill([CLASSES], 0),
    };
  },
  batch: (n) => [
    n.data([BATCH, TIME, INPUT], INPUT_STREAM),
    n.ids([BATCH], () => classIds(BATCH, TARGET_STREAM, CLASSES)),
  ],
  loss(p, x, y) {
    const byTime = reshape(transpose(x, [1, 0, 2]), [TIME * BATCH, INPUT]);
    const gates = split(add(matmul(byTime, p.wx), p.b), TIME);
    let h = zeros([BATCH, HIDDEN]);
    let c = zeros([BATCH, HIDDEN]);
    for (const own of gates) {
      const [i, f, g, o] = split(add(matmul(h, p.wh), own), 4, 1) as [Tensor, Tensor, Tensor, Tensor];
      c = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)));
      h = mul(sigmoid(o), tanh(c));
    }
    return crossEntropy(add(matmul(h, p.wo), p.bo), y);
  },
});
