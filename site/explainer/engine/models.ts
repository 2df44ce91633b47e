/** @file The networks of the figures. Each is a few lines; pages show them as they are here. */

import { attention } from "../../../src/api/attention.ts";
import { spec } from "../../../src/api/create.ts";
import { checkpoint } from "../../../src/api/custom.ts";
import { add, mul, square, sub } from "../../../src/api/elementwise.ts";
import { valueAndGrad } from "../../../src/api/grad.ts";
import { concat } from "../../../src/api/join.ts";
import { matmul } from "../../../src/api/linear.ts";
import { gelu, tanh } from "../../../src/api/math.ts";
import { softmax } from "../../../src/api/normalize.ts";
import { mean } from "../../../src/api/reduce.ts";
import { scope } from "../../../src/api/scope.ts";
import type { AnyFunction } from "../../../src/trace/function.ts";
import type { Tensor } from "../../../src/trace/tensor.ts";
import { named, type Planned, withGradient } from "./plans.ts";

export interface ChainSize {
  readonly depth: number;
  readonly batch: number;
  readonly width: number;
}

const specs = (count: number, shape: readonly number[]): readonly Tensor[] =>
  Array.from({ length: count }, () => spec([...shape]));

const loss = (y: Tensor): Tensor => mean(square(y));

const block = (h: Tensor, w: Tensor): Tensor => scope("block", () => add(h, gelu(matmul(h, w))));

/** A chain of residual blocks. */
export const chainLoss = (ws: readonly Tensor[], x: Tensor): Tensor => loss(ws.reduce(block, x));

const chainArgs = ({ depth, batch, width }: ChainSize): readonly unknown[] => [
  specs(depth, [width, width]),
  spec([batch, width]),
];

export const chainTraining = (size: ChainSize): Planned => ({
  fn: withGradient(chainLoss as AnyFunction, "chain", ["w", "x"]),
  args: chainArgs(size),
});

export const chainForward = (size: ChainSize): Planned => ({
  fn: named((...args: readonly never[]) => (chainLoss as AnyFunction)(...args), "chain", ["w", "x"]),
  args: chainArgs(size),
});

/** The chain with every `every` blocks in a `checkpoint`. */
export function segmentedTraining(size: ChainSize, every: number): Planned {
  const segment = checkpoint((h: Tensor, ws: readonly Tensor[]): Tensor => ws.reduce(block, h));
  const segmented = (ws: readonly Tensor[], x: Tensor): Tensor => {
    let h = x;
    for (let i = 0; i < ws.length; i += every) h = segment(h, ws.slice(i, i + every));
    return loss(h);
  };
  return { fn: withGradient(segmented as AnyFunction, "segments", ["w", "x"]), args: chainArgs(size) };
}

/** A perceptron without biases, one product and one tanh a layer. */
export function perceptron(layers: number, batch: number, width: number): Planned {
  const net = (ws: readonly Tensor[], x: Tensor): Tensor => loss(ws.reduce((h, w) => tanh(matmul(h, w)), x));
  return {
    fn: withGradient(net as AnyFunction, "perceptron", ["w", "x"]),
    args: [specs(layers, [width, width]), spec([batch, width])],
  };
}

/** One head of attention, its T × T matrix written out or left to `attention`. */
export function attentionTraining(length: number, width: number, fused: boolean): Planned {
  const whole = (q: Tensor, k: Tensor, v: Tensor): Tensor =>
    matmul(softmax(mul(matmul(q, k, { tb: true }), 1 / Math.sqrt(width)), -1), v);
  const head = (ws: readonly Tensor[], x: Tensor): Tensor => {
    const [q, k, v] = ws.map((w) => matmul(x, w)) as [Tensor, Tensor, Tensor];
    return loss(sub(fused ? attention(q, k, v) : whole(q, k, v), x));
  };
  return {
    fn: withGradient(head as AnyFunction, "attention", ["w", "x"]),
    args: [specs(3, [width, width]), spec([length, width])],
  };
}

/**
 * Layers that become narrower and wider again. What is made on the way down waits for the way up, so buffers have different sizes and
 * long lifetimes that cross.
 */
export function hourglass(batch: number, widths: readonly number[]): Planned {
  const inner = widths.length - 1;
  const net = (down: readonly Tensor[], up: readonly Tensor[], x: Tensor): Tensor => {
    const skips: Tensor[] = [];
    const low = down.reduce((h, w) => {
      skips.push(h);
      return tanh(matmul(h, w));
    }, x);
    return loss(up.reduce((h, w) => tanh(matmul(concat([h, skips.pop() as Tensor], 1), w)), low));
  };
  const down = widths.slice(1).map((to, i) => spec([widths[i] ?? to, to]));
  const up = Array.from({ length: inner }, (_, i) => {
    const [from = 0, to = 0] = [widths[inner - i], widths[inner - i - 1]];
    return spec([from + to, to]);
  });
  const gradient = valueAndGrad(net as (...args: never[]) => Tensor, { argnums: [0, 1] }) as unknown as AnyFunction;
  return { fn: named(gradient, "hourglass", ["down", "up", "x"]), args: [down, up, spec([batch, widths[0] ?? 1])] };
}
