/** @file What one device computes with collectives that go through NCCL, and without any: on a device that is none, and on one that is. */
import { compile, random, type Tensor } from "../../src/api/index.ts";
import { adam } from "../../src/optim/index.ts";
import { dataParallel, mesh } from "../../src/parallel/index.ts";
import type { Target } from "../../src/runtime/device.ts";
import { flatten } from "../../src/trace/tree.ts";

interface Weights {
  readonly up: Tensor;
  readonly down: Tensor;
}

const draw = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), shape).mul(0.3);

const lossOf = ({ up, down }: Weights, x: Tensor): Tensor => x.matmul(up).relu().matmul(down).square().mean();

/** Elements of losses and of the state after a few steps of an mlp with a stage of ZeRO, on a mesh of one device. */
export function trainedAlone(target: Target, zero: 0 | 1 | 2 | 3): readonly number[] {
  const options = { mesh: mesh({ data: 1 }), over: "data", zero, bucketBytes: 1024, microbatches: 2 };
  const train = dataParallel(lossOf, adam({ lr: 0.01 }), options);
  const step = compile(train.step, { target, donate: [0], name: `zero${zero}` });
  let state = compile(train.init)({ up: draw(1, [24, 50]), down: draw(2, [50, 5]) });
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const done = step(state, random.normal(random.key(10 + i), [8, 24]));
    losses.push(done.loss.item());
    state = done.state;
  }
  return [...losses, ...flatten(state, "state").leaves.flatMap((leaf) => [...leaf.data()].map(Number))];
}
