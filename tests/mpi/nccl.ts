/**
 * @file The target `cuda` on several processes, each with a device that is none (support/emulated-cuda.ts) and an NCCL that is none: the same
 * programs as on native code, and the same bits where sums have the order of ranks.
 */
import { writeSync } from "node:fs";
import { compile, random, type Tensor, tensor, whileLoop, zeros } from "../../src/api/index.ts";
import { ncclFigures } from "../../src/node/cuda/nccl-groups.ts";
import { type CudaRequest, cudaTarget } from "../../src/node/cuda/target.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { nativeTarget } from "../../src/node/native/target.ts";
import { adam } from "../../src/optim/index.ts";
import { allReduce, dataParallel, mesh, shard, vary } from "../../src/parallel/index.ts";
import { reportPlan } from "../../src/plan/index.ts";
import type { Target } from "../../src/runtime/device.ts";
import { collectives } from "./collectives.ts";
import { hashOf, onAllRanks, short } from "./training.ts";

const WIDTH = 24;
const ROWS = 16;
const STEPS = 2;

function made(target: Target | string): Target {
  if (typeof target === "string") throw new Error(target);
  return target;
}

/** When exchanges beside kernels run: as soon as they are begun, or when they are waited for. */
export type Running = "early" | "late";

/** The device of this process; the one that started it says where driver, compiler and NCCL are. */
function device(running: Running = "early"): Target {
  const places = JSON.parse(process.env.EMULATED_CUDA ?? "") as Readonly<Record<Running, CudaRequest>>;
  return made(cudaTarget(places[running]));
}

/** Native code has an algorithm for convolutions that other targets have not. */
const nativeWithSameProducts = (): Target => made(nativeTarget({ winograd: "never" }));

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
  const options = { mesh: mesh({ data: size }), over: "data", zero, deterministic: true, bucketBytes: 1024 };
  const train = dataParallel(lossOf, adam({ lr: 0.01 }), options);
  const step = compile(train.step, { target, donate: [0], name: `zero${zero}` });
  let state = compile(train.init, { name: "init" })(weights());
  const x = random.normal(random.key(4), [ROWS, WIDTH]).slice([[(rank * ROWS) / size, ((rank + 1) * ROWS) / size]]);
  const { plan } = step.program(state, x);
  const losses: number[] = [];
  for (let i = 0; i < STEPS; i++) {
    const done = step(state, x);
    losses.push(done.loss.item());
    state = done.state;
  }
  const params = compile(train.params, { name: "params" })(state);
  const inFlight = reportPlan(plan).exchanges.filter(({ wait }) => wait !== null).length;
  return { losses, hash: hashOf([params.up, params.bias, params.down]), inFlight };
}

/** Sums in a loop that is as long as a number of them says, which the host runs: what all devices have is doubled up to a limit. */
function doubled(): number {
  const { rank, size } = mpi();
  const options = { mesh: mesh({ data: size }), in: ["data"], out: [] } as const;
  const sum = (x: Tensor): Tensor => allReduce(x, { over: "data" });
  const run = shard(
    (x: Tensor) =>
      whileLoop(
        (s: Tensor) => s.lt(1000),
        (s: Tensor) => sum(vary(s, { over: "data" }).mul(2 / size)),
        sum(x),
      ),
    options,
  );
  return compile(run, { target: device(), name: "doubled" })(tensor(rank)).item();
}

/** Every collective, training with each stage of ZeRO and on native code, a loop; all ranks have the same. */
export function nccl() {
  const { cases } = collectives(mpi(), () => device());
  const stages = ([0, 1, 2, 3] as const).map((zero) => trained(device(zero === 1 ? "early" : "late"), zero));
  const native = trained(nativeWithSameProducts(), 0);
  const hashes = onAllRanks(short(stages[3]?.hash ?? ""));
  const found = { cases, stages, native, hashes, doubled: doubled(), figures: ncclFigures() };
  // from here on the driver says what it is asked
  process.env.EMULATED_SAYS = "1";
  writeSync(2, `process ${process.pid} leaves\n`);
  return found;
}

/** Like `sums` of failures.ts on this device. */
const sums = () =>
  compile(
    shard((x: Tensor) => allReduce(x.mul(2), { over: "data" }).sum(), {
      mesh: mesh({ data: mpi().size }),
      in: ["data"],
      out: [],
    }),
    { target: device(), name: "sums" },
  );

export const ncclFailures: Readonly<Record<string, () => unknown>> = {
  /** Both processes have one GPU; or one of them other shapes. */
  ncclSums: () => sums()(zeros([mpi().rank === 1 && process.env.EMULATED_OTHER ? 3 : 4])).item(),
  /** One throws while the others wait for it. */
  ncclThrows: () => {
    const step = sums();
    for (let i = 0; ; i++) {
      if (mpi().rank === 1 && i === 3) throw new Error("the data is not there");
      step(zeros([4])).item();
    }
  },
};
