/** @file Programs of shapes and operations that the built-in ones do not have, for comparing predicted with measured times. */
import { conv1d, conv2d } from "../src/api/conv.ts";
import { zeros } from "../src/api/create.ts";
import { add, cast, mul, square, sub } from "../src/api/elementwise.ts";
import { take } from "../src/api/indexing.ts";
import { matmul } from "../src/api/linear.ts";
import { crossEntropy, mse } from "../src/api/loss.ts";
import { gelu, relu, sigmoid, silu, sin, softplus, tanh } from "../src/api/math.ts";
import { groupNorm, layerNorm, softmax } from "../src/api/normalize.ts";
import { avgPool1d, maxPool2d } from "../src/api/pool.ts";
import { mean } from "../src/api/reduce.ts";
import { reshape, slice, transpose } from "../src/api/shape.ts";
import type { AnyProgram } from "../src/cli/programs/built-in.ts";
import { classIds, type Numbers } from "../src/cli/programs/data.ts";
import { training } from "../src/cli/programs/training.ts";
import type { Shape } from "../src/ir/type.ts";
import { adam } from "../src/optim/adam.ts";
import { sgd } from "../src/optim/sgd.ts";
import type { Tensor } from "../src/trace/tensor.ts";

type Params = Readonly<Record<string, Tensor>>;
type Loss = (p: Record<string, Tensor> & { readonly [name: string]: Tensor }, x: Tensor, y: Tensor) => Tensor;

/** Parameters by shape, drawn small; inputs of a shape; `classes` ids, or numbers of a shape, as targets. */
function model(
  name: string,
  params: Readonly<Record<string, Shape>>,
  x: Shape | ((n: Numbers) => Tensor),
  y: Shape | number,
  loss: Loss,
  optimizer = adam({ lr: 1e-3 }),
): AnyProgram {
  const rows = (shape: Shape): number => shape[0] ?? 1;
  return training<Params>({
    ...{ name, title: name, optimizer, loss },
    params: (n) => Object.fromEntries(Object.entries(params).map(([key, shape]) => [key, n.draw(shape, 0.1)])),
    batch: (n) => {
      const input = typeof x === "function" ? x(n) : n.data(x, 1);
      const count = rows(input.shape);
      return [input, typeof y === "number" ? n.ids([count], () => classIds(count, 2, y)) : n.data(y, 2)];
    },
  }) as unknown as AnyProgram;
}

const sgdPlain = sgd({ lr: 1e-3 });
const stage = (x: Tensor, w: Tensor): Tensor => groupNorm(conv2d(x, w, { padding: 1 }), 8);

function gatedLoss(p: Params, x: Tensor, y: Tensor): Tensor {
  const { w, u } = p as { readonly w: Tensor; readonly u: Tensor };
  let h = zeros([24, 128]);
  for (let t = 0; t < 24; t++) {
    const z = matmul(h, w);
    const gate = sigmoid(
      slice(z, [
        [0, 24],
        [0, 128],
      ]),
    );
    const made = tanh(
      add(
        slice(z, [
          [0, 24],
          [128, 256],
        ]),
        matmul(slice(x, [[0, 24], t]), u),
      ),
    );
    h = add(mul(gate, h), mul(sub(1, gate), made));
  }
  return mse(h, y);
}

/** Shapes and operations that the built-in programs do not have. */
export const OTHERS: readonly AnyProgram[] = [
  model("padded-conv", { a: [24, 3, 3, 3], b: [32, 24, 3, 3], c: [8192, 10] }, [16, 3, 32, 32], 10, (p, x, y) => {
    const h = maxPool2d(relu(conv2d(x, p.a as Tensor, { padding: 1 })), 2);
    const g = relu(conv2d(h, p.b as Tensor, { padding: 1 }));
    return crossEntropy(matmul(reshape(g, [16, 8192]), p.c as Tensor), y);
  }),
  model(
    "norm-gelu",
    { e: [5000, 192], a: [192, 700], b: [700, 192] },
    (n) => n.ids([300], () => classIds(300, 1, 5000)),
    5000,
    (p, x, y) => {
      const h = take(p.e as Tensor, x);
      const z = add(h, matmul(gelu(matmul(layerNorm(h), p.a as Tensor)), p.b as Tensor));
      return crossEntropy(matmul(z, transpose(p.e as Tensor)), y);
    },
  ),
  model("pointwise", { a: [1000, 1000], b: [1000] }, [1000, 1000], [1000], (p, x, y) => {
    const h = silu(add(sin(mul(x, p.a as Tensor)), p.b as Tensor));
    return mean(square(sub(softplus(h), y)));
  }),
  model("double", { a: [256, 300], b: [300, 10] }, [200, 256], 10, (p, x) => {
    const [a, b] = [cast(p.a as Tensor, "f64"), cast(p.b as Tensor, "f64")];
    return cast(mean(square(matmul(tanh(matmul(cast(x, "f64"), a)), b))), "f32");
  }),
  model("group-norm", { a: [32, 32, 3, 3], b: [32, 32, 3, 3], c: [32, 10] }, [8, 32, 24, 24], 10, (p, x, y) => {
    const h = relu(add(x, stage(relu(stage(x, p.a as Tensor)), p.b as Tensor)));
    return crossEntropy(matmul(mean(h, [2, 3]), p.c as Tensor), y);
  }),
  model("small-mlp", { a: [30, 50], b: [50, 50], c: [50, 3] }, [20, 30], 3, (p, x, y) =>
    crossEntropy(matmul(tanh(matmul(tanh(matmul(x, p.a as Tensor)), p.b as Tensor)), p.c as Tensor), y),
  ),
  model("conv1d", { a: [48, 8, 5], b: [64, 48, 5], c: [64, 10] }, [32, 8, 256], 10, (p, x, y) => {
    const h = avgPool1d(silu(conv1d(x, p.a as Tensor)), 2);
    return crossEntropy(matmul(mean(silu(conv1d(h, p.b as Tensor)), [2]), p.c as Tensor), y);
  }),
  model("attention", { q: [96, 96], k: [96, 96], v: [96, 96] }, [8, 100, 96], [8, 100, 96], (p, x, y) => {
    const [q, k, v] = [matmul(x, p.q as Tensor), matmul(x, p.k as Tensor), matmul(x, p.v as Tensor)];
    return mse(matmul(softmax(mul(matmul(q, transpose(k, [0, 2, 1])), 0.1)), v), y);
  }),
  model("logistic", { w: [2000] }, [1500, 2000], [1500], (p, x, y) => mean(softplus(mul(matmul(x, p.w as Tensor), y)))),
  model("gated-rnn", { w: [128, 256], u: [64, 128] }, [24, 40, 64], [24, 128], gatedLoss, sgdPlain),
  model("odd-mlp", { a: [333, 217], b: [217, 119], c: [119, 37] }, [75, 333], 37, (p, x, y) =>
    crossEntropy(matmul(relu(matmul(relu(matmul(x, p.a as Tensor)), p.b as Tensor)), p.c as Tensor), y),
  ),
  model("strided-conv", { a: [16, 3, 3, 3], b: [40, 16, 3, 3], c: [40, 10] }, [8, 3, 48, 48], 10, (p, x, y) => {
    const h = relu(conv2d(x, p.a as Tensor, { stride: 2, padding: 1 }));
    const g = relu(conv2d(h, p.b as Tensor, { stride: 2, padding: 1 }));
    return crossEntropy(matmul(mean(g, [2, 3]), p.c as Tensor), y);
  }),
];
