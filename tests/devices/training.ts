/** @file Training steps on the devices of one process: losses and bits, planned and measured bytes. */
import { createHash } from "node:crypto";
import { currentHost } from "../../src/api/host.ts";
import { compile, random, type Tensor } from "../../src/api/index.ts";
import { loadGraph } from "../../src/api/load-graph.ts";
import { adam } from "../../src/optim/index.ts";
import { allReduce, type Device, dataParallel, mesh, shard } from "../../src/parallel/index.ts";
import { validate } from "../../src/plan/index.ts";
import { alignUp } from "../../src/plan/problem.ts";
import type { Target } from "../../src/runtime/device.ts";
import { wasmTarget } from "../../src/runtime/wasm-target.ts";
import type { AnyFunction } from "../../src/trace/function.ts";
import { checkStep, load, stepGraph } from "../support/poison.ts";
import type { Input } from "./module.ts";

const WIDTH = 96;
const LAYERS = 2;
const ROWS = 48;

export interface Trained {
  readonly losses: readonly number[];
  /** Of the parameters after the last step. */
  readonly hash: string;
  readonly arenaBytes: number;
}

export interface Course {
  readonly zero: 0 | 1 | 2 | 3;
  readonly deterministic?: boolean;
  /** Of one process, in the place of devices. */
  readonly microbatches?: number;
  readonly target?: Target | "wasm";
}

const lossOf = (ws: readonly Tensor[], x: Tensor): Tensor => {
  let h = x;
  for (const w of ws) h = h.matmul(w).tanh();
  return h.square().mean();
};

const weights = (): readonly Tensor[] =>
  random.split(random.key(1), LAYERS).map((key) => random.normal(key, [WIDTH, WIDTH]).mul(0.05));

const batch = (): Tensor => random.normal(random.key(2), [ROWS, WIDTH]);

function rowsOf(rank: number, devices: number): Tensor {
  const rows = ROWS / devices;
  return batch().slice([[rank * rows, (rank + 1) * rows]]);
}

const hashOf = (leaves: readonly Tensor[]): string => {
  const hash = createHash("sha256");
  for (const leaf of leaves) hash.update(leaf.data() as Float32Array);
  return hash.digest("hex");
};

/** Three steps with Adam on a device's rows of the batch. */
export function trained(rank: number, devices: number, course: Course): Trained {
  const { zero, deterministic = true, microbatches = 1, target = "wasm" } = course;
  const options = { mesh: mesh({ data: devices }), over: "data", zero, deterministic, microbatches };
  const train = dataParallel(lossOf, adam({ lr: 0.01 }), options);
  const step = compile(train.step, { target, donate: [0], name: `zero${zero}` });
  let state = compile(train.init, { target, name: "init" })(weights());
  const own = rowsOf(rank, devices);
  const { plan } = step.program(state, own);
  const broken = validate(plan.program, plan);
  if (broken.length > 0) throw new Error(JSON.stringify(broken));
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const done = step(state, own);
    losses.push(done.loss.item());
    state = done.state;
  }
  const params = compile(train.params, { target, name: "params" })(state);
  return { losses, hash: hashOf(params), arenaBytes: plan.height };
}

const ROOM = 2 ** 21;
const UNTOUCHED = 0xa5;

/** A step that adds up gradients, as a function of the weights and a device's rows. */
const plainStep = (devices: number): AnyFunction =>
  shard(
    (ws: readonly Tensor[], x: Tensor) =>
      ws.map((w) => w.sub(allReduce(x.matmul(w).tanh().sum(0), { over: "data" }).mul(0.01))),
    { mesh: mesh({ data: devices }), in: [[], "data"], out: [] },
  ) as AnyFunction;

const targetHere = (): Target => wasmTarget(undefined, { devices: currentHost().devices });

/** Bytes up to the last one that a step writes, in a memory with room behind the arena; those of the plan; and dead ones. */
function measured({ rank, size }: Device<Input>) {
  const target = targetHere();
  const arena = target.allocate();
  arena.reserve(ROOM);
  arena.fill(0, ROOM, UNTOUCHED);
  const args = [weights(), rowsOf(rank, size)];
  const { graph, inputs, options } = stepGraph(plainStep(size), args);
  const host = currentHost();
  const executable = loadGraph(graph, { ...options, target, arena, host });
  load(executable, graph, inputs);
  executable.run();
  const bytes = arena.bytesAt?.(0, ROOM) ?? new Uint8Array(0);
  let end = ROOM;
  while (end > 0 && bytes[end - 1] === UNTOUCHED) end--;
  const deadBytes = checkStep(plainStep(size), args, { target, host });
  return { planned: executable.placed.plan.height, measured: alignUp(end, 64), deadBytes };
}

export const training = {
  trained: ({ rank, size, input }: Device<Input>) =>
    (input.given as readonly Course[]).map((course) => trained(rank, size, course)),
  measured,
};
