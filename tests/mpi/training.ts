/** @file Data-parallel training steps: on every device a part of the batch, gradients summed over all. */
import { createHash } from "node:crypto";
import { compile, random, type Tensor, valueAndGrad } from "../../src/api/index.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { allReduce, mesh, shard } from "../../src/parallel/index.ts";
import { printPlan, reportPlan, validate } from "../../src/plan/index.ts";

const WIDTH = 256;
const LAYERS = 4;
const ROWS = 64;

export interface Trained {
  readonly losses: readonly number[];
  /** Of the parameters after the last step. */
  readonly hash: string;
  readonly arenaBytes: number;
  readonly inFlight: number;
  readonly text: string;
}

const weights = (): readonly Tensor[] =>
  random.split(random.key(1), LAYERS).map((key) => random.normal(key, [WIDTH, WIDTH]).mul(0.05));

/** Steps of a chain of layers on so many devices, each with its rows of the batch. */
export function trained(devices: number, steps: number, options: Parameters<typeof compile>[1] = {}): Trained {
  const { rank } = mpi();
  const batch = random.normal(random.key(2), [ROWS, WIDTH]);
  const rows = ROWS / devices;
  const mine = batch.slice([[rank * rows, (rank + 1) * rows]]);
  const step = compile(
    shard(
      (state: readonly Tensor[], x: Tensor) => {
        const [loss, grads] = valueAndGrad((ws: readonly Tensor[]) => {
          let h = x;
          for (const w of ws) h = h.matmul(w).tanh();
          return allReduce(h.square().sum(), { over: "data" });
        })(state);
        return { loss, state: state.map((w, i) => w.sub((grads[i] as Tensor).mul(0.01))) };
      },
      { mesh: mesh({ data: devices }), in: [[], "data"], out: [] },
    ),
    { target: "native", donate: [0], name: "train", ...options },
  );
  let state = weights();
  const { plan, arenaBytes } = step.program(state, mine);
  const broken = validate(plan.program, plan);
  if (broken.length > 0) throw new Error(JSON.stringify(broken));
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const done = step(state, mine);
    losses.push(done.loss.item());
    state = done.state;
  }
  const hash = createHash("sha256");
  for (const w of state) hash.update(w.data() as Float32Array);
  const inFlight = reportPlan(plan).exchanges.filter(({ wait }) => wait !== null).length;
  return { losses, hash: hash.digest("hex"), arenaBytes, inFlight, text: printPlan(plan) };
}

export function training(): Trained {
  const { rank, size } = mpi();
  const found = trained(size, 4);
  console.error(`rank ${rank}: ${found.hash.slice(0, 16)} ${found.losses.join(" ")} ${found.arenaBytes}`);
  return found;
}
