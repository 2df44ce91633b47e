/**
 * @file `unet`: U-Net (Ronneberger, Fischer, Brox 2015) with padded convolutions, so that 512 × 512 pixels come out as
 * 512 × 512. Four levels down and up, two 3 × 3 convolutions each, twice the channels a level; the output of a level on
 * the way down is concatenated with the input of that level on the way up. Two classes a pixel, batch 4, SGD with
 * momentum 0.99.
 *
 *   64 ─────────────── join ─ 64 ─ classes
 *     128 ─────────── join ─ 128
 *        256 ─────── join ─ 256
 *           512 ─── join ─ 512
 *              1024 ──╯
 */
import { conv2d, convTranspose2d } from "../../api/conv.ts";
import { add } from "../../api/elementwise.ts";
import { concat } from "../../api/join.ts";
import { crossEntropy } from "../../api/loss.ts";
import { relu } from "../../api/math.ts";
import { maxPool2d } from "../../api/pool.ts";
import { scope } from "../../api/scope.ts";
import { reshape, transpose } from "../../api/shape.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { sgd } from "../../optim/sgd.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { classIds, he, INPUT_STREAM, type Numbers, TARGET_STREAM } from "./data.ts";
import type { TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

const [BATCH, PIXELS, CLASSES] = [4, 512, 2];
const WIDTHS = [64, 128, 256, 512] as const;
const DEEPEST = 1024;

interface Conv {
  readonly w: Tensor;
  readonly b: Tensor;
}

type Pair = readonly [Conv, Conv];

interface UnetParams {
  readonly down: readonly Pair[];
  readonly deepest: Pair;
  readonly up: readonly { readonly widen: Conv; readonly pair: Pair }[];
  readonly head: Conv;
}

function convParams(p: Numbers, from: number, to: number, kernel: number): Conv {
  return { w: p.draw([to, from, kernel, kernel], he(from * kernel ** 2)), b: p.fill([to], 0) };
}

const pairParams = (p: Numbers, from: number, to: number): Pair => [
  convParams(p, from, to, 3),
  convParams(p, to, to, 3),
];

const biased = (x: Tensor, b: Tensor): Tensor => add(x, reshape(b, [-1, 1, 1]));
const conv = (x: Tensor, { w, b }: Conv): Tensor => biased(conv2d(x, w, { padding: "same" }), b);
const twice = (x: Tensor, pair: Pair): Tensor => scope("pair", () => pair.reduce((h, c) => relu(conv(h, c)), x));

export const unet: TrainingProgram<OptimizerState<UnetParams>> = training<UnetParams>({
  name: "unet",
  title: "U-Net, 512x512, 4 levels from 64 channels, batch 4, SGD with momentum",
  optimizer: sgd({ lr: 0.01, momentum: 0.99 }),
  params(p) {
    return {
      down: WIDTHS.map((to, i) => pairParams(p, WIDTHS[i - 1] ?? 1, to)),
      deepest: pairParams(p, WIDTHS[3], DEEPEST),
      up: WIDTHS.toReversed().map((to) => ({
        // of a transposed convolution, whose weights are [in, out, …]
        widen: { w: p.draw([2 * to, to, 2, 2], he(2 * to)), b: p.fill([to], 0) },
        pair: pairParams(p, 2 * to, to),
      })),
      head: convParams(p, WIDTHS[0], CLASSES, 1),
    };
  },
  batch: (n) => [
    n.data([BATCH, 1, PIXELS, PIXELS], INPUT_STREAM),
    n.ids([BATCH, PIXELS, PIXELS], () => classIds(BATCH * PIXELS ** 2, TARGET_STREAM, CLASSES)),
  ],
  loss({ down, deepest, up, head }, x, y) {
    const skips: Tensor[] = [];
    const low = down.reduce((h, pair) => {
      skips.push(twice(h, pair));
      return maxPool2d(skips.at(-1) as Tensor, 2);
    }, x);
    const high = up.reduce(
      (h, { widen, pair }) => {
        const widened = biased(convTranspose2d(h, widen.w, { stride: 2 }), widen.b);
        return twice(concat([skips.pop() as Tensor, widened], 1), pair);
      },
      twice(low, deepest),
    );
    return crossEntropy(transpose(conv(high, head), [0, 2, 3, 1]), y);
  },
});
