/** @file Training steps whose stages are on different devices, with each schedule; and the same model on one process. */
import { compile, random, type Tensor } from "../../src/api/index.ts";
import { NATIVE_RATES } from "../../src/codegen/native/description.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { adam } from "../../src/optim/index.ts";
import { dataParallel, mesh, pipeline } from "../../src/parallel/index.ts";
import { SCHEDULES } from "../../src/parallel/pipeline/schedule.ts";
import { reportPlan } from "../../src/plan/report.ts";
import { flatten } from "../../src/trace/tree.ts";
import { hashOf, onAllRanks, short } from "./training.ts";

const WIDTH = 64;
const ROWS = 128;
const STAGES = 8;
const MICROBATCHES = 8;
const STEPS = 2;
const NATIVE = { target: "native" } as const;
/** On a network on which even small messages are worth a start and a wait. */
const SLOW_NETWORK = { ...NATIVE_RATES, networkRate: 1e7 };

interface Shared {
  readonly table: Tensor;
  readonly out: Tensor;
}
interface Own {
  readonly up: Tensor;
  readonly down: Tensor;
}

const model = {
  first: ({ table }: Shared, x: Tensor): Tensor => x.matmul(table),
  stage: ({ up, down }: Own, x: Tensor): Tensor => x.add(x.matmul(up).gelu().matmul(down)),
  last: ({ out }: Shared, y: Tensor): Tensor => y.matmul(out).square().mean(),
};

const draw = (seed: number, shape: readonly number[]): Tensor => random.normal(random.key(seed), shape).mul(0.1);
const shared = (): Shared => ({ table: draw(1, [WIDTH, WIDTH]), out: draw(2, [WIDTH, 8]) });
const ownOf = (stage: number): Own => ({
  up: draw(10 + stage, [WIDTH, 4 * WIDTH]),
  down: draw(20 + stage, [4 * WIDTH, WIDTH]),
});
const batch = (): Tensor => random.normal(random.key(3), [ROWS, WIDTH]);

interface Found {
  readonly losses: readonly number[];
  /** Of the own stages' parameters, in the order of the model; then of the shared ones. */
  readonly stages: readonly string[];
  readonly shared: string;
  readonly arenaBytes: number;
  /** Collectives in loops that are in flight beside other steps. */
  readonly inFlight: number;
}

interface Layout {
  readonly data: number;
  readonly devices: number;
  readonly schedule: (typeof SCHEDULES)[number];
}

/** Steps of a model of four stages on `devices` devices of a pipeline, and as many rows of them as `data` says. */
function piped({ data, devices, schedule }: Layout, zero: 0 | 1 | 2 = 0): Found {
  const { rank } = mpi();
  const [chunks, device, row] = [STAGES / devices, rank % devices, Math.floor(rank / devices)];
  const isChunked = schedule === "interleaved";
  // without pieces a stage is what the pieces of a device are together
  const stage = (own: readonly Own[], x: Tensor): Tensor => own.reduce((h, each) => model.stage(each, h), x);
  const loss = pipeline(
    { ...model, stage },
    { over: "pipeline", microbatches: MICROBATCHES / data, schedule, ...(isChunked ? { chunks } : {}) },
  );
  const options = { mesh: mesh({ data, pipeline: devices }), over: "data", zero, deterministic: true };
  const train = dataParallel(loss, adam({ lr: 0.01 }), { ...options, params: { shared: [], stages: "pipeline" } });
  const mine = Array.from({ length: chunks }, (_, c) => (isChunked ? c * devices + device : device * chunks + c));
  const stages = isChunked ? mine.map((i) => [ownOf(i)]) : [mine.map(ownOf)];
  let state = compile(train.init, { ...NATIVE, name: "init" })({ shared: shared(), stages });
  const step = compile(train.step, {
    ...NATIVE,
    costs: SLOW_NETWORK,
    donate: [0],
    name: `pipeline_${schedule.replace("-", "_")}`,
  });
  const rows = ROWS / data;
  const own = batch().slice([[row * rows, (row + 1) * rows]]);
  const { arenaBytes, plan } = step.program(state, own);
  const losses: number[] = [];
  for (let i = 0; i < STEPS; i++) {
    const done = step(state, own);
    losses.push(done.loss.item());
    state = done.state;
  }
  const params = compile(train.params, { ...NATIVE, name: "params" })(state);
  const hashes = params.stages.flat().map(({ up, down }) => short(hashOf([up, down])));
  const all = hashes.map((hash) => onAllRanks(hash));
  const byStage = Array.from({ length: STAGES }, (_, i) => {
    const [c, at] = isChunked ? [Math.floor(i / devices), i % devices] : [i % chunks, Math.floor(i / chunks)];
    return String(all[c]?.[at]);
  });
  return {
    losses,
    stages: byStage,
    shared: hashOf(flatten(params.shared, "shared").leaves),
    arenaBytes,
    inFlight: reportPlan(plan).exchangesInBodies.filter(({ wait }) => wait !== null).length,
  };
}

/** The same on one process, a microbatch after the other. */
function alone(): Found {
  const lossOf = (p: { shared: Shared; stages: readonly Own[] }, x: Tensor): Tensor =>
    model.last(
      p.shared,
      p.stages.reduce((h, own) => model.stage(own, h), model.first(p.shared, x)),
    );
  const options = { mesh: mesh({ data: 1 }), over: "data", microbatches: MICROBATCHES };
  const train = dataParallel(lossOf, adam({ lr: 0.01 }), options);
  const stages = Array.from({ length: STAGES }, (_, i) => ownOf(i));
  let state = compile(train.init, { ...NATIVE, name: "init" })({ shared: shared(), stages });
  const step = compile(train.step, { ...NATIVE, donate: [0], name: "whole" });
  const { arenaBytes } = step.program(state, batch());
  const losses: number[] = [];
  for (let i = 0; i < STEPS; i++) {
    const done = step(state, batch());
    losses.push(done.loss.item());
    state = done.state;
  }
  const { params } = state;
  const hashes = params.stages.map(({ up, down }) => String(short(hashOf([up, down]))));
  return { losses, stages: hashes, shared: hashOf(flatten(params.shared, "shared").leaves), arenaBytes, inFlight: 0 };
}

/** A pipeline of all devices, and the same on one process. */
export const onePipeline = () => ({
  alone: alone(),
  piped: piped({ data: 1, devices: mpi().size, schedule: "1f1b" }),
});

/** All schedules on all devices, and two of them on half as many with two rows of data, against one process. */
export function pipelines() {
  const { size } = mpi();
  const of = (layout: Layout, zero: 0 | 2 = 0) => ({ ...layout, ...piped(layout, zero) });
  const found = SCHEDULES.map((schedule) => of({ data: 1, devices: size, schedule }));
  const rows = { data: 2, devices: size / 2 };
  const other = [of({ ...rows, schedule: "gpipe" }), of({ ...rows, schedule: "1f1b" }, 2)];
  return { alone: alone(), found: [...found, ...other] };
}
