/**
 * @file Communication beside computation: the training step of a chain of layers whose gradients are buckets of 4 MB, each with about
 * 30 ms of computation, on the processes of `mpirun`. Four programs take turns; figures are the best of the rounds:
 *
 *   compute    the step on one device: nothing is exchanged
 *   exchange   the communication: the sums of the buckets alone, one after the other
 *   blocking   the step with every collective done when its call returns
 *   in flight  the step as it is planned
 *
 * The goal is a step in flight of at most 1.1 times the longer of the first two, on a quiet machine with a core for each process.
 * Results of the last two must be equal to the last bit.
 *
 *   npm run bench:overlap                  2 processes
 *   npm run bench:overlap -- 4 12 256      processes, rounds, rows of the batch of a device
 */
import { createHash } from "node:crypto";
import { loadavg } from "node:os";
import { compile } from "../src/api/compile.ts";
import { valueAndGrad } from "../src/api/grad.ts";
import { random } from "../src/api/index.ts";
import type { CompileOptions } from "../src/api/request.ts";
import { NATIVE_RATES } from "../src/codegen/native/description.ts";
import { mpi } from "../src/node/index.ts";
import { allReduce, mesh, shard } from "../src/parallel/index.ts";
import { reportPlan } from "../src/plan/report.ts";
import type { Tensor } from "../src/trace/tensor.ts";

const WIDTH = 1024;
const LAYERS = 8;

type Weights = readonly Tensor[];

const [rounds = 6, rows = 384] = process.argv.slice(2).map(Number);
const { rank, size } = mpi();
const initial = (): Weights =>
  random.split(random.key(1), LAYERS).map((key) => random.normal(key, [WIDTH, WIDTH]).mul(0.03));
const batch = random.normal(random.key(2 + rank), [rows, WIDTH]);

/** A step on so many devices. */
const stepOn = (devices: number) =>
  shard(
    (state: Weights, x: Tensor) => {
      const [, grads] = valueAndGrad((ws: Weights) => {
        let h = x;
        for (const w of ws) h = h.matmul(w).tanh();
        return allReduce(h.square().mean(), { over: "data" });
      })(state);
      return state.map((w, i) => w.sub((grads[i] as Tensor).mul(0.1)));
    },
    { mesh: mesh({ data: devices }), in: [[], "data"], out: [] },
  );

const exchange = shard((state: Weights) => state.map((w) => allReduce(w, { over: "data" })), {
  mesh: mesh({ data: size }),
  in: ["data"],
  out: [],
});

interface Timed {
  readonly name: string;
  readonly run: () => void;
  readonly inFlight: number;
  readonly hash?: () => string;
  best: number;
}

function training(name: string, devices: number, options: CompileOptions = {}): Timed {
  const step = compile(stepOn(devices), { target: "native", donate: [0], name, ...options });
  let state = initial();
  const { plan } = step.program(state, batch);
  const inFlight = reportPlan(plan).exchanges.filter(({ wait }) => wait !== null).length;
  const run = (): void => {
    state = step(state, batch);
  };
  const hash = (): string => {
    const sum = createHash("sha256");
    for (const w of state) sum.update(w.data() as Float32Array);
    return sum.digest("hex");
  };
  return { name, run, inFlight, hash, best: Number.POSITIVE_INFINITY };
}

const weights = initial();
const sums = compile(exchange, { target: "native", name: "exchange", results: "borrowed" });
// exchanges that are predicted to take no time are not put in flight
const instant = { ...NATIVE_RATES, networkRate: 1e30, messageSeconds: 0 };
const compute = training("compute", 1);
const blocking = training("blocking", size, { costs: instant });
const flying = training("in flight", size);
const alone: Timed = { name: "exchange", run: () => sums(weights), inFlight: 0, best: Number.POSITIVE_INFINITY };
const all = [compute, alone, blocking, flying];

for (let round = 0; round < rounds; round++) {
  for (const one of all) {
    const started = performance.now();
    one.run();
    const ms = performance.now() - started;
    // the first run loads the code
    if (round > 0) one.best = Math.min(one.best, ms);
  }
}
if (blocking.hash?.() !== flying.hash?.()) throw new Error("collectives in flight changed bits");
if (rank === 0) {
  for (const { name, best, inFlight } of all) {
    console.log(`${name.padEnd(10)} ${best.toFixed(1).padStart(8)} ms${inFlight > 0 ? `, ${inFlight} in flight` : ""}`);
  }
  // what else runs on the machine: the figure wants none of it
  console.log(
    `load average ${loadavg()
      .map((load) => load.toFixed(1))
      .join(", ")}`,
  );
  const longer = Math.max(compute.best, alone.best);
  const layer = compute.best / LAYERS;
  console.log(
    `${size} processes, ${layer.toFixed(1)} ms a bucket; in flight ${(flying.best / longer).toFixed(2)} x max(compute, exchange)`,
  );
}
