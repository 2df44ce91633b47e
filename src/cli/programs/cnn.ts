/**
 * @file `cnn`: images 28 × 28, two valid convolutions 3 × 3 (32 channels; 64 channels with stride 2), dense 128, dense 10,
 * on a batch of 32, cross entropy, SGD with momentum.
 */
import { conv2d } from "../../api/conv.ts";
import { add } from "../../api/elementwise.ts";
import { matmul } from "../../api/linear.ts";
import { crossEntropy } from "../../api/loss.ts";
import { relu } from "../../api/math.ts";
import { reshape } from "../../api/shape.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { sgd } from "../../optim/sgd.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { classIds, he, INPUT_STREAM, TARGET_STREAM } from "./data.ts";
import type { TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

const BATCH = 32;
/** After 28 → 26 → 12, 64 channels of 12 × 12. */
const FLAT = 64 * 12 * 12;

type Name = "c1" | "c1b" | "c2" | "c2b" | "d1" | "d1b" | "d2" | "d2b";
type CnnParams = Readonly<Record<Name, Tensor>>;

/** One number for each channel of [batch, channels, height, width]. */
const perChannel = (b: Tensor): Tensor => reshape(b, [-1, 1, 1]);

export const cnn: TrainingProgram<OptimizerState<CnnParams>> = training<CnnParams>({
  name: "cnn",
  title: "CNN 28x28, batch 32, SGD with momentum",
  optimizer: sgd({ lr: 0.01, momentum: 0.9 }),
  params(p) {
    return {
      c1: p.draw([32, 1, 3, 3], he(9)),
      c1b: p.fill([32], 0),
      c2: p.draw([64, 32, 3, 3], he(288)),
      c2b: p.fill([64], 0),
      d1: p.draw([FLAT, 128], he(FLAT)),
      d1b: p.fill([128], 0),
      d2: p.draw([128, 10], he(128)),
      d2b: p.fill([10], 0),
    };
  },
  batch: (n) => [n.data([BATCH, 1, 28, 28], INPUT_STREAM), n.ids([BATCH], () => classIds(BATCH, TARGET_STREAM, 10))],
  loss(p, x, y) {
    const first = relu(add(conv2d(x, p.c1), perChannel(p.c1b)));
    const second = relu(add(conv2d(first, p.c2, { stride: 2 }), perChannel(p.c2b)));
    const hidden = relu(add(matmul(reshape(second, [-1, FLAT]), p.d1), p.d1b));
    return crossEntropy(add(matmul(hidden, p.d2), p.d2b), y);
  },
});
