/** @file Training with parts of the state on each device, as one process with as many microbatches would. */
import { compile, concat, random, type Tensor } from "../../src/api/index.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { adam } from "../../src/optim/index.ts";
import { dataParallel, mesh } from "../../src/parallel/index.ts";

const WIDTH = 48;
const LAYERS = 2;
const ROWS = 8;

const lossOf = (ws: readonly Tensor[], x: Tensor): Tensor =>
  ws
    .reduce((h, w) => h.matmul(w).tanh(), x)
    .sub(x)
    .square()
    .mean();

const rowsOf = (rank: number, step: number): Tensor => random.normal(random.key(10 * step + rank), [ROWS, WIDTH]);

interface Course {
  readonly losses: readonly number[];
  readonly last: readonly number[];
  readonly arenaBytes: number;
}

/** Three steps on so many devices; what every device has at the end. */
function course(devices: number, zero: 0 | 1 | 2 | 3, batchOf: (step: number) => Tensor, microbatches = 1): Course {
  const options = { mesh: mesh({ data: devices }), over: "data", zero, microbatches, deterministic: true } as const;
  const train = dataParallel(lossOf, adam({ lr: 0.01 }), options);
  const native = { target: "native" } as const;
  const start = random.split(random.key(1), LAYERS).map((key) => random.normal(key, [WIDTH, WIDTH]).mul(0.1));
  let state = compile(train.init, native)(start);
  const step = compile(train.step, { ...native, donate: [0] });
  const { arenaBytes } = step.program(state, batchOf(0));
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const done = step(state, batchOf(i));
    losses.push(done.loss.item());
    state = done.state;
  }
  const params = zero === 3 ? compile(train.params, native)(state) : state.params;
  const [first] = params as readonly [Tensor];
  return { losses, last: [...(first.data() as Float32Array).slice(0, 64)], arenaBytes };
}

/** All ways with parts on all processes, and one process with all rows. */
export function parts() {
  const { rank, size } = mpi();
  const all = ([1, 2, 3] as const).map((zero) => course(size, zero, (step) => rowsOf(rank, step)));
  const joined = (step: number): Tensor =>
    concat(
      Array.from({ length: size }, (_, r) => rowsOf(r, step)),
      0,
    );
  return { all, one: course(1, 0, joined, size) };
}
