/**
 * @file Two programs with a depth parameter, for memory against depth in sublinear.ts.
 *
 *   residual   x ← x + conv(relu(norm(conv(relu(norm(x))))))     16 channels, 16 × 16 pixels, batch 8
 *   unrolled   an LSTM of 128 unrolled over time: every step has its own operations, no loop; batch 32
 */
import { conv2d } from "../src/api/conv.ts";
import { zeros } from "../src/api/create.ts";
import { add, mul } from "../src/api/elementwise.ts";
import { split } from "../src/api/join.ts";
import { matmul } from "../src/api/linear.ts";
import { crossEntropy } from "../src/api/loss.ts";
import { relu, sigmoid, tanh } from "../src/api/math.ts";
import { batchNorm } from "../src/api/normalize.ts";
import { mean } from "../src/api/reduce.ts";
import { scope } from "../src/api/scope.ts";
import { slice } from "../src/api/shape.ts";
import type { AnyProgram } from "../src/cli/programs/built-in.ts";
import { classIds, he, INPUT_STREAM, type Numbers, TARGET_STREAM } from "../src/cli/programs/data.ts";
import { training } from "../src/cli/programs/training.ts";
import { sgd } from "../src/optim/sgd.ts";
import type { Tensor } from "../src/trace/tensor.ts";

const CLASSES = 10;

interface Unit {
  readonly w: Tensor;
  readonly scale: Tensor;
  readonly offset: Tensor;
}

interface ResidualParams {
  readonly blocks: readonly (readonly [Unit, Unit])[];
  readonly head: Tensor;
}

const CHANNELS = 16;

function unitParams(p: Numbers): Unit {
  const w = p.draw([CHANNELS, CHANNELS, 3, 3], he(CHANNELS * 9));
  return { w, scale: p.fill([CHANNELS], 1), offset: p.fill([CHANNELS], 0) };
}

/** Normalise, relu, convolve. */
function unit(x: Tensor, { w, scale, offset }: Unit): Tensor {
  return conv2d(relu(batchNorm(x, { scale, offset }).y), w, { padding: "same" });
}

export function residual(depth: number): AnyProgram {
  const [batch, pixels] = [8, 16];
  return training<ResidualParams>({
    name: `residual${depth}`,
    title: `residual network, ${depth} blocks of two convolutions`,
    optimizer: sgd({ lr: 1e-3 }),
    params: (p) => ({
      blocks: Array.from({ length: depth }, () => [unitParams(p), unitParams(p)] as const),
      head: p.draw([CHANNELS, CLASSES], he(CHANNELS)),
    }),
    batch: (n) => [
      n.data([batch, CHANNELS, pixels, pixels], INPUT_STREAM),
      n.ids([batch], () => classIds(batch, TARGET_STREAM, CLASSES)),
    ],
    loss({ blocks, head }, x, y) {
      const last = blocks.reduce((h, [a, b]) => scope("block", () => add(h, unit(unit(h, a), b))), x);
      return crossEntropy(matmul(mean(last, [2, 3]), head), y);
    },
  }) as AnyProgram;
}

type LstmParams = Readonly<Record<"wx" | "wh" | "b" | "wo", Tensor>>;

export function unrolled(steps: number): AnyProgram {
  const [batch, input, hidden] = [32, 64, 128];
  const scale = 1 / Math.sqrt(hidden);
  return training<LstmParams>({
    name: `unrolled${steps}`,
    title: `LSTM of ${hidden}, ${steps} time steps written out`,
    optimizer: sgd({ lr: 0.1 }),
    params: (p) => ({
      wx: p.draw([input, 4 * hidden], scale),
      wh: p.draw([hidden, 4 * hidden], scale),
      b: p.fill([4 * hidden], 0),
      wo: p.draw([hidden, CLASSES], scale),
    }),
    batch: (n) => [
      n.data([steps, batch, input], INPUT_STREAM),
      n.ids([batch], () => classIds(batch, TARGET_STREAM, CLASSES)),
    ],
    loss(p, x, y) {
      let [h, c] = [zeros([batch, hidden]), zeros([batch, hidden])];
      for (let t = 0; t < steps; t++) {
        [h, c] = scope("step", () => {
          const gates = add(add(matmul(slice(x, [t]), p.wx), matmul(h, p.wh)), p.b);
          const [i, f, g, o] = split(gates, 4, 1) as [Tensor, Tensor, Tensor, Tensor];
          const memory = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)));
          return [mul(sigmoid(o), tanh(memory)), memory];
        });
      }
      return crossEntropy(matmul(h, p.wo), y);
    },
  }) as AnyProgram;
}
