/**
 * @file Training steps of the kinds of the built-in programs at extents that a driver without a GPU compiles in a moment: a perceptron, a
 * convolution, a recurrent cell in a loop, a transformer.
 */
import * as tm from "../../src/api/index.ts";
import { conv2d, layerNorm, linear, relu, sequential, transformerBlock } from "../../src/nn/index.ts";
import { adam } from "../../src/optim/adam.ts";
import type { OptimizerState } from "../../src/optim/optimizer.ts";
import type { Tree } from "../../src/trace/tree.ts";

export interface SmallModel {
  readonly name: string;
  init(): object;
  step(state: object): readonly [object, tm.Tensor];
}

const optimizer = adam({ lr: 0.01 });
const data = (shape: readonly number[], seed: number): tm.Tensor => tm.random.normal(tm.random.key(seed), shape);
const classes = (count: number): tm.Tensor =>
  tm.tensor(
    Array.from({ length: count }, (_, i) => (i * 3) % 4),
    { dtype: "i32" },
  );

function model<P extends Tree>(name: string, init: () => P, loss: (params: P) => tm.Tensor): SmallModel {
  return {
    name,
    init: () => optimizer.init(init()),
    step(state) {
      const { params } = state as OptimizerState<P>;
      const [value, grads] = tm.valueAndGrad((p: Tree) => loss(p as P))(params);
      return [optimizer.update(state as OptimizerState<P>, grads as P), value];
    },
  };
}

function mlp(): SmallModel {
  const layers = sequential(linear(12, 16), relu(), linear(16, 4));
  const [x, y] = [data([8, 12], 1), classes(8)];
  return model(
    "mlp",
    () => layers.init(1),
    (p) => tm.crossEntropy(layers.apply(p, x), y),
  );
}

function cnn(): SmallModel {
  const [features, head] = [sequential(conv2d(2, 4, 3), relu()), linear(4 * 2 * 2, 4)];
  const [x, y] = [data([3, 2, 6, 6], 2), classes(3)];
  return model(
    "cnn",
    () => ({ features: features.init(1), head: head.init(2) }),
    (p) => tm.crossEntropy(head.apply(p.head, tm.maxPool2d(features.apply(p.features, x), 2).reshape([3, 16])), y),
  );
}

type Cell = readonly [h: tm.Tensor, c: tm.Tensor];

function lstm(): SmallModel {
  const [x, y] = [data([5, 4, 6], 3), classes(4)];
  const init = () => ({ wx: data([6, 16], 4), wh: data([4, 16], 5), b: data([16], 6) });
  return model("lstm", init, ({ wx, wh, b }) => {
    const cell = ([h, c]: Cell, now: tm.Tensor): Cell => {
      const gates = now.matmul(wx).add(b).add(h.matmul(wh));
      const [i, f, g, o] = tm.split(gates, 4, 1) as [tm.Tensor, tm.Tensor, tm.Tensor, tm.Tensor];
      const memory = f.sigmoid().mul(c).add(i.sigmoid().mul(g.tanh()));
      return [o.sigmoid().mul(memory.tanh()), memory];
    };
    const zero = tm.zeros([4, 4]);
    const [[h]] = tm.scan<Cell, tm.Tensor, readonly tm.Tensor[]>((s, now) => [cell(s, now), []], [zero, zero], x);
    return tm.crossEntropy(h, y);
  });
}

function gpt(): SmallModel {
  const blocks = sequential(transformerBlock(8, { heads: 2, causal: true }), layerNorm(8), linear(8, 4));
  const [ids, y] = [classes(10).reshape([2, 5]), classes(10)];
  return model(
    "gpt",
    () => ({ tok: data([4, 8], 7), blocks: blocks.init(3) }),
    (p) => tm.crossEntropy(blocks.apply(p.blocks, tm.take(p.tok, ids)).reshape([10, 4]), y),
  );
}

export const smallModels: readonly SmallModel[] = [mlp(), cnn(), lstm(), gpt()];
