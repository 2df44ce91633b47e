/** @file The networks of the trade-off page: training steps small enough to be planned while the reader waits. */

import { scan } from "../../../src/api/control.ts";
import { conv2d, convTranspose2d } from "../../../src/api/conv.ts";
import { spec } from "../../../src/api/create.ts";
import { add, mul, square, sub } from "../../../src/api/elementwise.ts";
import { concat } from "../../../src/api/join.ts";
import { matmul } from "../../../src/api/linear.ts";
import { crossEntropy } from "../../../src/api/loss.ts";
import { gelu, relu, tanh } from "../../../src/api/math.ts";
import { layerNorm, softmax } from "../../../src/api/normalize.ts";
import { maxPool2d } from "../../../src/api/pool.ts";
import { mean } from "../../../src/api/reduce.ts";
import { scope } from "../../../src/api/scope.ts";
import { reshape, transpose } from "../../../src/api/shape.ts";
import type { AnyFunction } from "../../../src/trace/function.ts";
import type { Tensor } from "../../../src/trace/tensor.ts";
import { type ChainSize, chainTraining } from "./models.ts";
import { type Planned, withGradient } from "./plans.ts";

const CHAIN: ChainSize = { depth: 16, batch: 256, width: 64 };

const repeated = <T>(count: number, make: () => T): readonly T[] => Array.from({ length: count }, make);

/** Two blocks with attention written out, on texts of 64 positions. */
function transformer(): Planned {
  const [texts, time, width, heads] = [4, 64, 64, 4];
  const rows = texts * time;
  const blockParams = () => ({
    qkv: repeated(3, () => spec([width, width])),
    out: spec([width, width]),
    wide: spec([width, 4 * width]),
    narrow: spec([4 * width, width]),
    gain: spec([width]),
  });
  type Params = readonly ReturnType<typeof blockParams>[];
  const headsOf = (v: Tensor): Tensor => transpose(reshape(v, [texts, time, heads, width / heads]), [0, 2, 1, 3]);
  const block = (h: Tensor, p: Params[number]): Tensor => {
    const normed = mul(layerNorm(h), p.gain);
    const [q, k, v] = p.qkv.map((w) => headsOf(matmul(normed, w))) as [Tensor, Tensor, Tensor];
    const seen = matmul(softmax(mul(matmul(q, k, { tb: true }), (width / heads) ** -0.5), -1), v);
    const attended = add(h, matmul(reshape(transpose(seen, [0, 2, 1, 3]), [rows, width]), p.out));
    return add(attended, matmul(gelu(matmul(layerNorm(attended), p.wide)), p.narrow));
  };
  const loss = (ps: Params, x: Tensor, y: Tensor): Tensor =>
    mean(
      square(
        sub(
          ps.reduce((h, p) => scope("block", () => block(h, p)), x),
          y,
        ),
      ),
    );
  const args = [repeated(2, blockParams), spec([rows, width]), spec([rows, width])];
  return { fn: withGradient(loss as AnyFunction, "transformer", ["p", "x", "y"]), args };
}

/** Six convolutions and a classifier. */
function convolutional(): Planned {
  const widths = [8, 8, 16, 16, 32, 32];
  const kernels = widths.map((to, i) => spec([to, widths[i - 1] ?? 1, 3, 3]));
  type Params = { readonly kernels: readonly Tensor[]; readonly head: Tensor };
  const loss = ({ kernels: ks, head }: Params, x: Tensor, y: Tensor): Tensor => {
    const conv = (h: Tensor, k: Tensor, i: number): Tensor =>
      gelu(conv2d(h, k, { padding: "same", stride: i === 2 || i === 4 ? 2 : 1 }));
    const last = ks.reduce((h, k, i) => scope("conv", () => conv(h, k, i)), x);
    return crossEntropy(matmul(reshape(last, [16, -1]), head), y);
  };
  const args = [{ kernels, head: spec([32 * 8 * 8, 10]) }, spec([16, 1, 32, 32]), spec([16], "i32")];
  return { fn: withGradient(loss as AnyFunction, "convolutions", ["p", "x", "y"]), args };
}

/** A U-Net: what is made on the way down waits for the way up. */
function unet(): Planned {
  const widths = [8, 16, 32];
  const pair = (from: number, to: number) => [spec([to, from, 3, 3]), spec([to, to, 3, 3])];
  const params = {
    down: widths.map((to, i) => pair(widths[i - 1] ?? 1, to)),
    deepest: pair(32, 64),
    up: [32, 16, 8].map((to) => ({ widen: spec([2 * to, to, 2, 2]), pair: pair(2 * to, to) })),
    head: spec([1, 8, 1, 1]),
  };
  const twice = (x: Tensor, kernels: readonly Tensor[]): Tensor =>
    scope("pair", () => kernels.reduce((h, k) => relu(conv2d(h, k, { padding: "same" })), x));
  const loss = ({ down, deepest, up, head }: typeof params, x: Tensor, y: Tensor): Tensor => {
    const skips: Tensor[] = [];
    const low = down.reduce((h, kernels) => {
      const skip = twice(h, kernels);
      skips.push(skip);
      return maxPool2d(skip, 2);
    }, x);
    const high = up.reduce(
      (h, { widen, pair: kernels }) => {
        const widened = convTranspose2d(h, widen, { stride: 2 });
        return twice(concat([skips.pop() as Tensor, widened], 1), kernels);
      },
      twice(low, deepest),
    );
    return mean(square(sub(conv2d(high, head), y)));
  };
  const image = spec([2, 1, 64, 64]);
  return { fn: withGradient(loss as AnyFunction, "unet", ["p", "x", "y"]), args: [params, image, image] };
}

/** A loop in the program, which is reversed with states kept at some iterations. */
function recurrent(): Planned {
  const loss = (w: Tensor, h0: Tensor, xs: Tensor): Tensor => {
    const [last] = scan(
      (h: Tensor, x: Tensor) => [tanh(add(matmul(h, w), x)), [] as readonly Tensor[]] as const,
      h0,
      xs,
    );
    return mean(square(last));
  };
  const args = [spec([64, 64]), spec([32, 64]), spec([64, 32, 64])];
  return { fn: withGradient(loss as AnyFunction, "recurrent", ["w", "h", "x"]), args };
}

export const NETWORKS = {
  chain: () => chainTraining(CHAIN),
  transformer,
  convolutions: convolutional,
  unet,
  recurrent,
} as const;

export type NetworkName = keyof typeof NETWORKS;
