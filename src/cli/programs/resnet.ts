/**
 * @file Residual networks (He et al. 2015 and 2016), cross entropy, SGD with momentum. Batch normalisation uses the
 * statistics of the batch; running averages, which training does not read, are left out.
 *
 *   resnet50     224 × 224, stem 7 × 7, bottlenecks 3, 4, 6, 3 times:  x ← relu(x + norm conv1 · relu norm conv3 · relu norm conv1)
 *   resnet1001   32 × 32, normalisation first, 111 bottlenecks in each of three stages:  x ← x + conv1 · conv3 · conv1,
 *                each after relu norm; 9 · 111 + 2 = 1001 layers
 */
import { conv2d } from "../../api/conv.ts";
import { add } from "../../api/elementwise.ts";
import { matmul } from "../../api/linear.ts";
import { crossEntropy } from "../../api/loss.ts";
import { relu } from "../../api/math.ts";
import { batchNorm } from "../../api/normalize.ts";
import { maxPool2d } from "../../api/pool.ts";
import { mean } from "../../api/reduce.ts";
import { scope } from "../../api/scope.ts";
import type { OptimizerState } from "../../optim/optimizer.ts";
import { sgd } from "../../optim/sgd.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { classIds, he, INPUT_STREAM, type Numbers, TARGET_STREAM } from "./data.ts";
import type { TrainingProgram } from "./program.ts";
import { training } from "./training.ts";

interface Norm {
  readonly scale: Tensor;
  readonly offset: Tensor;
}

/** A convolution and its normalisation. */
interface Unit extends Norm {
  readonly w: Tensor;
}

interface Bottleneck {
  readonly units: readonly [Unit, Unit, Unit];
  /** Adapts the input to the block's width and stride, if they change. */
  readonly shortcut?: Unit;
}

interface ResNetParams {
  readonly stem: Unit;
  readonly stages: readonly (readonly Bottleneck[])[];
  /** Before the head of the network that normalises first. */
  readonly last?: Norm;
  readonly head: Tensor;
  readonly bias: Tensor;
}

interface Shape {
  readonly stem: { readonly kernel: number; readonly width: number };
  /** Blocks of each stage, and channels that come out of them; inside a bottleneck there are a quarter as many. */
  readonly stages: readonly (readonly [blocks: number, width: number])[];
  readonly classes: number;
  readonly normFirst: boolean;
}

/** Channels into and out of a convolution, its extent, and how many channels are normalised. */
interface UnitShape {
  readonly from: number;
  readonly to: number;
  readonly kernel: number;
  readonly normed: number;
}

function unitParams(p: Numbers, { from, to, kernel, normed }: UnitShape): Unit {
  return { w: p.draw([to, from, kernel, kernel], he(from * kernel ** 2)), ...normParams(p, normed) };
}

const normParams = (p: Numbers, width: number): Norm => ({ scale: p.fill([width], 1), offset: p.fill([width], 0) });

function blockParams(p: Numbers, from: number, to: number, normFirst: boolean): Bottleneck {
  const inner = to / 4;
  const unit = (a: number, b: number, kernel: number): Unit =>
    unitParams(p, { from: a, to: b, kernel, normed: normFirst ? a : b });
  const units = [unit(from, inner, 1), unit(inner, inner, 3), unit(inner, to, 1)] as const;
  return from === to ? { units } : { units, shortcut: unit(from, to, 1) };
}

function resnetParams(p: Numbers, { stem, stages, classes, normFirst }: Shape): ResNetParams {
  let from = stem.width;
  const first = unitParams(p, { from: 3, to: stem.width, kernel: stem.kernel, normed: stem.width });
  const blocks = stages.map(([count, to]) =>
    Array.from({ length: count }, () => {
      const block = blockParams(p, from, to, normFirst);
      from = to;
      return block;
    }),
  );
  const last = normFirst ? { last: normParams(p, from) } : {};
  const head = { head: p.draw([from, classes], Math.sqrt(3 / from)), bias: p.fill([classes], 0) };
  return { stem: first, stages: blocks, ...last, ...head };
}

const norm = (x: Tensor, { scale, offset }: Norm): Tensor => batchNorm(x, { scale, offset }).y;
const conv = (x: Tensor, { w }: Unit, stride = 1): Tensor => conv2d(x, w, { stride, padding: "same" });

/** Normalisation after each convolution. */
function normLast(x: Tensor, { units: [a, b, c], shortcut }: Bottleneck, stride: number): Tensor {
  const h = relu(norm(conv(relu(norm(conv(x, a), a)), b, stride), b));
  return relu(add(norm(conv(h, c), c), shortcut ? norm(conv(x, shortcut, stride), shortcut) : x));
}

/** Normalisation before each convolution: the sum itself is passed on unchanged. */
function normFirst(x: Tensor, { units: [a, b, c], shortcut }: Bottleneck, stride: number): Tensor {
  const ready = relu(norm(x, a));
  const h = conv(relu(norm(conv(ready, a, stride), b)), b);
  return add(conv(relu(norm(h, c)), c), shortcut ? conv(ready, shortcut, stride) : x);
}

/** A stage halves height and width in its first block, the first stage does not. */
function stagesOf(x: Tensor, stages: ResNetParams["stages"], block: typeof normFirst): Tensor {
  const first = (stage: number, i: number): boolean => stage > 0 && i === 0;
  return stages.reduce(
    (h, blocks, stage) =>
      scope("stage", () => blocks.reduce((v, p, i) => scope("block", () => block(v, p, first(stage, i) ? 2 : 1)), h)),
    x,
  );
}

function resnet(
  name: string,
  title: string,
  shape: Shape,
  input: readonly [batch: number, pixels: number],
): TrainingProgram<OptimizerState<ResNetParams>> {
  const [batch, pixels] = input;
  return training<ResNetParams>({
    name,
    title,
    optimizer: sgd({ lr: 0.1, momentum: 0.9, weightDecay: 1e-4 }),
    params: (p) => resnetParams(p, shape),
    batch: (n) => [
      n.data([batch, 3, pixels, pixels], INPUT_STREAM),
      n.ids([batch], () => classIds(batch, TARGET_STREAM, shape.classes)),
    ],
    loss({ stem, stages, last, head, bias }, x, y) {
      const started = last
        ? conv(x, stem)
        : maxPool2d(relu(norm(conv(x, stem, 2), stem)), 3, { stride: 2, padding: "same" });
      const ended = stagesOf(started, stages, last ? normFirst : normLast);
      const features = mean(last ? relu(norm(ended, last)) : ended, [2, 3]);
      return crossEntropy(add(matmul(features, head), bias), y);
    },
  });
}

export const resnet50: TrainingProgram<OptimizerState<ResNetParams>> = resnet(
  "resnet50",
  "ResNet-50, 224x224, batch 64, SGD with momentum",
  {
    stem: { kernel: 7, width: 64 },
    stages: [
      [3, 256],
      [4, 512],
      [6, 1024],
      [3, 2048],
    ],
    classes: 1000,
    normFirst: false,
  },
  [64, 224],
);

export const resnet1001: TrainingProgram<OptimizerState<ResNetParams>> = resnet(
  "resnet1001",
  "pre-activation ResNet-1001, 32x32, batch 64, SGD with momentum",
  {
    stem: { kernel: 3, width: 16 },
    stages: [
      [111, 64],
      [111, 128],
      [111, 256],
    ],
    classes: 10,
    normFirst: true,
  },
  [64, 32],
);
