/**
 * @file `lstm`: 64 time steps of 64 inputs, 256 hidden, the last state classified, on a batch of 32, cross entropy,
 * SGD. Time is a loop of the program; the input's part of the gates is computed in the iteration that reads it, so the
 * gates of all iterations are never in memory at once.
 *
 *   i, f, g, o = x wx + b + h wh;   c ← σ(f) c + σ(i) tanh(g);   h ← σ(o) tanh(c)
 */
import { scan } from "../../api/control.ts";
import { zeros } from "../../api/create.ts";
import { add, mul } from "../../api/elementwise.ts";
import { split } from "../../api/join.ts";
import { matmul } from "../../api/linear.ts";
import { crossEntropy } from "../../api/loss.ts";
import { sigmoid, tanh } from "../../api/math.ts";
import { transpose } from "../../api/shape.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { sgd } from "../../optim/sgd.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { classIds, INPUT_STREAM, TARGET_STREAM } from "./data.ts";
import type { TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

const [BATCH, TIME, INPUT, HIDDEN, CLASSES] = [32, 64, 64, 256, 10];
const SCALE = 1 / Math.sqrt(HIDDEN);

/** Output and memory. */
type State = readonly [h: Tensor, c: Tensor];

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
    const cell = ([h, c]: State, now: Tensor): State => {
      const fromInput = add(matmul(now, p.wx), p.b);
      const [i, f, g, o] = split(add(matmul(h, p.wh), fromInput), 4, 1) as [Tensor, Tensor, Tensor, Tensor];
      const memory = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)));
      return [mul(sigmoid(o), tanh(memory)), memory];
    };
    const zero = zeros([x.shape[0] as number, HIDDEN]);
    const byTime = transpose(x, [1, 0, 2]);
    const [[h]] = scan<State, Tensor, readonly Tensor[]>((state, now) => [cell(state, now), []], [zero, zero], byTime);
    return crossEntropy(add(matmul(h, p.wo), p.bo), y);
  },
});
