/**
 * @file The target `cuda` on several processes, each with a device that is none (support/emulated-cuda.ts) and an NCCL that is none: the same
 * programs as on native code, and the same bits where sums have the order of ranks.
 */
import { compile, random, type Tensor, tensor } from "../../src/api/index.ts";
import { ncclFigures } from "../../src/node/cuda/nccl-groups.ts";
import { type CudaRequest, cudaTarget } from "../../src/node/cuda/target.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { nativeTarget } from "../../src/node/native/target.ts";
import { adam } from "../../src/optim/index.ts";
import { allReduce, dataParallel, mesh, permute, shard } from "../../src/parallel/index.ts";
import { reportPlan } from "../../src/plan/index.ts";
import type { Target } from "../../src/runtime/device.ts";
import { collectives } from "./collectives.ts";
import { hashOf } from "./training.ts";

const WIDTH = 24;
const ROWS = 16;
const STEPS = 2;

function made(target: Target | string): Target {
  if (typeof target === "string") throw new Error(target);
  return target;
}

/** The device of this process; the one that started it says where driver, compiler and NCCL are. */
let own: Target | undefined;
export function device(): Target {
  const { EMULATED_CUDA = "{}" } = process.env;
  own ??= made(cudaTarget(JSON.parse(EMULATED_CUDA) as CudaRequest));
  return own;
}

/** With the products of the other targets. */
const native = (): Target => made(nativeTarget({ winograd: "never" }));

interface Weights {
  readonly up: Tensor;
  readonly bias: Tensor;
  readonly down: Tensor;
}

const draw = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), shape).mul(0.3);
const weights = (): Weights => ({ up: draw(1, [WIDTH, 50]), bias: draw(2, [50]), down: draw(3, [50, 5]) });

const lossOf = ({ up, bias, down }: Weights, x: Tensor): Tensor =>
  x.matmul(up).add(bias).relu().matmul(down).square().mean();

/** Steps of an mlp of which each device keeps what a stage of ZeRO says. */
function trained(target: Target, zero: 0 | 1 | 2 | 3) {
  const { rank, size } = mpi();
  const options = { mesh: mesh({ data: size }), over: "data", zero, deterministic: true, microbatches: 2 };
  const train = dataParallel(lossOf, adam({ lr: 0.01 }), { ...options, bucketBytes: 1024 });
  const step = compile(train.step, { target, donate: [0], name: `zero${zero}` });
  let state = compile(train.init, { target, name: "init" })(weights());
  const x = random.normal(random.key(4), [ROWS, WIDTH]).slice([[(rank * ROWS) / size, ((rank + 1) * ROWS) / size]]);
  const { plan } = step.program(state, x);
  const losses: number[] = [];
  for (let i = 0; i < STEPS; i++) {
    const done = step(state, x);
    losses.push(done.loss.item());
    state = done.state;
  }
  const params = compile(train.params, { target, name: "params" })(state);
  const inFlight = reportPlan(plan).exchanges.filter(({ wait }) => wait !== null).length;
  return { losses, hash: hashOf([params.up, params.bias, params.down]), inFlight };
}

/** Sums and neighbours' values in a loop that depends on data, so that the host runs it. */
function looped(target: Target): readonly number[] {
  const { rank, size } = mpi();
  const ring = { mesh: mesh({ data: size }), in: ["data"], out: "data" } as const;
  const step = shard((x: Tensor) => {
    const next = permute(x, { over: "data", shift: 1 });
    return next.add(allReduce(x, { over: "data", op: "max" }));
  }, ring);
  const run = compile(step, { target, name: "ring" });
  let x = tensor([rank, -rank, 0.5]);
  for (let i = 0; i < 3; i++) x = run(x) as Tensor;
  return [...(x.data() as Float32Array)];
}

/** What is compared: every collective, training with each stage of ZeRO. */
export function nccl() {
  const { cases } = collectives(mpi(), device);
  const stages = ([0, 1, 2, 3] as const).map((zero) => ({ cuda: trained(device(), zero), native: trained(native(), zero) }));
  const loops = { cuda: looped(device()), native: looped(native()) };
  return { cases, stages, loops, nccl: ncclFigures() };
}
