/**
 * @file Small training steps with all that recomputation must get right: residual blocks, normalisation, attention,
 * dropout with its seed, convolutions and pooling, rules of the user's own, state that is updated in place.
 */
import * as tm from "../../src/api/index.ts";
import {
  conv2d as convLayer,
  dropout,
  layerNorm,
  linear,
  relu,
  sequential,
  transformerBlock,
} from "../../src/nn/index.ts";
import { adam } from "../../src/optim/adam.ts";
import type { Optimizer, OptimizerState } from "../../src/optim/optimizer.ts";
import { sgd } from "../../src/optim/sgd.ts";
import type { Tree } from "../../src/trace/tree.ts";

/** A training step that takes its state and the number of the step. */
export interface TrainingStep {
  readonly name: string;
  init(): object;
  step(state: never, count: tm.Tensor): readonly [object, tm.Tensor];
}

function stepOf<P extends Tree>(
  name: string,
  optimizer: Optimizer,
  init: () => P,
  loss: (params: P, count: tm.Tensor) => tm.Tensor,
): TrainingStep {
  return {
    name,
    init: () => optimizer.init(init()),
    step(state: OptimizerState<P>, count: tm.Tensor) {
      const [value, grads] = tm.valueAndGrad((p: Tree) => loss(p as P, count))(state.params);
      return [optimizer.update(state, grads as P), value];
    },
  } as TrainingStep;
}

const data = (shape: readonly number[], seed: number): tm.Tensor => tm.random.normal(tm.random.key(seed), shape);

/** Two blocks of attention with dropout: what is replayed draws its mask again. */
export function tinyTransformer(): TrainingStep {
  const model = sequential(
    transformerBlock(16, { heads: 2, causal: true, dropout: 0.2 }),
    transformerBlock(16, { heads: 2, causal: true, dropout: 0.2 }),
    layerNorm(16),
    linear(16, 12),
  );
  const x = data([2, 24, 16], 1);
  const y = tm.tensor(
    Array.from({ length: 48 }, (_, i) => (i * 7) % 12),
    { dtype: "i32" },
  );
  return stepOf(
    "transformer with dropout",
    adam({ lr: 1e-2 }),
    () => model.init(3),
    (p, count) => {
      const key = tm.random.foldIn(tm.random.key(9), count);
      return tm.crossEntropy(tm.reshape(model.apply(p, x, { train: true, key }), [48, 12]), y);
    },
  );
}

export function tinyConvNet(): TrainingStep {
  const features = sequential(
    convLayer(2, 8, 3, { padding: "same" }),
    relu(),
    convLayer(8, 8, 3, { padding: "same" }),
    relu(),
    dropout(0.1),
  );
  const head = linear(8 * 6 * 6, 5);
  const x = data([4, 2, 12, 12], 2);
  const y = tm.tensor([0, 3, 1, 4], { dtype: "i32" });
  const init = () => ({ features: features.init(1), head: head.init(2) });
  return stepOf("convolutions and pooling", sgd({ lr: 0.05, momentum: 0.9 }), init, (p, count) => {
    const key = tm.random.foldIn(tm.random.key(4), count);
    const h = tm.maxPool2d(features.apply(p.features, x, { train: true, key }), 2);
    return tm.crossEntropy(head.apply(p.head, tm.reshape(h, [4, 8 * 6 * 6])), y);
  });
}

/** Residual blocks, some of them checkpointed by the user, and one with a derivative of its own. */
export function residualChain(depth: number): TrainingStep {
  const half = tm.customVjp((v: tm.Tensor) => v.mul(0.5).tanh(), {
    forward: (v: tm.Tensor) => [v.mul(0.5).tanh(), v.mul(0.5).tanh()],
    backward: (y: tm.Tensor, ct: tm.Tensor) => [ct.mul(tm.sub(1, y.square())).mul(0.5)],
  });
  const x = data([16, 32], 5);
  const y = data([16, 32], 6);
  const init = () => ({
    blocks: Array.from({ length: depth }, (_, i) => ({
      a: data([32, 32], 10 + i).mul(0.1),
      b: data([32, 32], 50 + i).mul(0.1),
    })),
  });
  return stepOf("residual chain", sgd({ lr: 0.01 }), init, (p) => {
    const block = (h: tm.Tensor, w: { readonly a: tm.Tensor; readonly b: tm.Tensor }): tm.Tensor =>
      h.add(half(h.matmul(w.a)).gelu().matmul(w.b));
    const again = tm.checkpoint(block);
    const last = p.blocks.reduce((h, w, i) => tm.scope("block", () => (i % 4 === 3 ? again(h, w) : block(h, w))), x);
    return last.sub(y).square().mean();
  });
}
