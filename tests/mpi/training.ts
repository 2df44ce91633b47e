/** @file Data-parallel training steps: on every device a part of the batch, gradients summed over all. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { compile, random, type Tensor, tensor, valueAndGrad } from "../../src/api/index.ts";
import { loadGraph } from "../../src/api/load-graph.ts";
import { nodeHost } from "../../src/node/host.ts";
import { mpi } from "../../src/node/mpi/public.ts";
import { type NativeRequest, nativeTarget } from "../../src/node/native/target.ts";
import { adam } from "../../src/optim/index.ts";
import { allGather, allReduce, dataParallel, mesh, shard } from "../../src/parallel/index.ts";
import { reportPlan, validate } from "../../src/plan/index.ts";
import { alignUp } from "../../src/plan/problem.ts";
import type { Target } from "../../src/runtime/device.ts";
import type { AnyFunction } from "../../src/trace/function.ts";
import { checkStep, load, stepGraph } from "../support/poison.ts";

const WIDTH = 256;
const LAYERS = 4;
const ROWS = 64;

export interface Trained {
  readonly losses: readonly number[];
  /** Of the parameters after the last step. */
  readonly hash: string;
  readonly arenaBytes: number;
  readonly inFlight: number;
}

const weights = (): readonly Tensor[] =>
  random.split(random.key(1), LAYERS).map((key) => random.normal(key, [WIDTH, WIDTH]).mul(0.05));

/** The rows of the batch that are a device's. */
function rowsOf(devices: number): Tensor {
  const rows = ROWS / devices;
  const first = mpi().rank * rows;
  return random.normal(random.key(2), [ROWS, WIDTH]).slice([[first, first + rows]]);
}

/** A step on one device: the gradients are summed because the weights are used where values vary. */
const stepOn = (devices: number, deterministic = false) =>
  shard(
    (state: readonly Tensor[], x: Tensor) => {
      const [loss, grads] = valueAndGrad((ws: readonly Tensor[]) => {
        let h = x;
        for (const w of ws) h = h.matmul(w).tanh();
        return allReduce(h.square().sum(), { over: "data" });
      })(state);
      return { state: state.map((w, i) => w.sub((grads[i] as Tensor).mul(0.001))), loss };
    },
    { mesh: mesh({ data: devices }), in: [[], "data"], out: [], deterministic },
  );

/** Steps of a chain of layers on so many devices, each with its rows of the batch. */
export function trained(devices: number, steps: number, options: Parameters<typeof compile>[1] = {}): Trained {
  const batch = rowsOf(devices);
  const step = compile(stepOn(devices), { target: "native", donate: [0], name: "train", ...options });
  let state = weights();
  const { plan, arenaBytes } = step.program(state, batch);
  const broken = validate(plan.program, plan);
  if (broken.length > 0) throw new Error(JSON.stringify(broken));
  const losses: number[] = [];
  for (let i = 0; i < steps; i++) {
    const done = step(state, batch);
    losses.push(done.loss.item());
    state = done.state;
  }
  const inFlight = reportPlan(plan).exchanges.filter(({ wait }) => wait !== null).length;
  return { losses, hash: hashOf(state), arenaBytes, inFlight };
}

const ROOM = 8 * 2 ** 20;
const UNTOUCHED = 0xa5;

function nativeHere(request: NativeRequest = {}): Target {
  const target = nativeTarget(request);
  if (typeof target === "string") throw new Error(target);
  return target;
}

/** Bytes up to the last one that a step writes, in a memory with room behind the arena; and those of the plan. */
function measured(devices: number): { readonly planned: number; readonly measured: number } {
  const target = nativeHere();
  const arena = target.allocate();
  arena.reserve(ROOM);
  arena.fill(0, ROOM, UNTOUCHED);
  const { graph, inputs, options } = stepGraph(stepOn(devices) as AnyFunction, [weights(), rowsOf(devices)]);
  const executable = loadGraph(graph, { ...options, target, arena, host: nodeHost });
  load(executable, graph, inputs);
  executable.run();
  const bytes = arena.bytesAt?.(0, ROOM) ?? new Uint8Array(0);
  let end = ROOM;
  while (end > 0 && bytes[end - 1] === UNTOUCHED) end--;
  return { planned: executable.placed.plan.height, measured: alignUp(end, 64) };
}

/** A step with every dead byte overwritten after each step of its plan; the bytes that were. */
const poisoned = (devices: number): number =>
  checkStep(stepOn(devices) as AnyFunction, [weights(), rowsOf(devices)], { target: nativeHere(), host: nodeHost });

/** What a number is on every rank, in order. */
export function onAllRanks(x: number): readonly number[] {
  const { size } = mpi();
  const gathered = compile(
    shard((own: Tensor) => allGather(own, { over: "data", invariant: true }), {
      mesh: mesh({ data: size }),
      in: ["data"],
      out: [],
    }),
    { target: "native", name: "gathered" },
  );
  return [...(gathered(tensor([x], { dtype: "f64" })).data() as Float64Array)];
}

export const hashOf = (leaves: readonly Tensor[]): string => {
  const hash = createHash("sha256");
  for (const leaf of leaves) hash.update(leaf.data() as Float32Array);
  return hash.digest("hex");
};

/** Steps with Adam, in which each device keeps what the stage of ZeRO says; `parts`: of one process, in so many microbatches. */
function sharded(devices: number, zero: 0 | 1 | 2 | 3, parts = 1) {
  const lossOf = (ws: readonly Tensor[], x: Tensor): Tensor => {
    let h = x;
    for (const w of ws) h = h.matmul(w).tanh();
    return h.square().mean();
  };
  const options = { mesh: mesh({ data: devices }), over: "data", zero, deterministic: true, microbatches: parts };
  const train = dataParallel(lossOf, adam({ lr: 0.01 }), options);
  const target = "native";
  const step = compile(train.step, { target, donate: [0], name: `zero${zero}` });
  let state = compile(train.init, { target, name: "init" })(weights().slice(0, 2));
  const batch = devices === 1 ? random.normal(random.key(2), [ROWS, WIDTH]) : rowsOf(devices);
  const { plan } = step.program(state, batch);
  for (let i = 0; i < 2; i++) ({ state } = step(state, batch));
  const params = compile(train.params, { target, name: "params" })(state);
  const inFlight = reportPlan(plan).exchanges.filter(({ wait }) => wait !== null).length;
  return { hash: hashOf(params), arenaBytes: plan.height, inFlight };
}

/** ZeRO on all processes, against one process with as many microbatches. */
export function zero() {
  const { size } = mpi();
  const stages = ([1, 3] as const).map((stage) => sharded(size, stage));
  return { alone: sharded(1, 0, size), stages, hashes: onAllRanks(short(stages[1]?.hash ?? "")) };
}

/** The first 48 bits of a hash, as a number. */
export const short = (hash: string): number => Number.parseInt(hash.slice(0, 12), 16);

/** How many different names the machines of the processes have. */
export const hostCount = (): number =>
  new Set(onAllRanks(short(createHash("sha256").update(hostname()).digest("hex")))).size;

/** Data-parallel training on all processes: what each rank found. */
export function training() {
  const { size } = mpi();
  const found = trained(size, 3);
  const bytes = measured(size);
  // calls are cut into pieces, between which what is in flight makes progress
  const inPieces = [1, 2].map((threads) => trained(size, 3, { target: nativeHere({ threads, shareFrom: 1000 }) }).hash);
  return {
    ...found,
    inPieces,
    hashes: onAllRanks(short(found.hash)),
    planned: onAllRanks(bytes.planned),
    measured: onAllRanks(bytes.measured),
    deadBytes: onAllRanks(poisoned(size)),
  };
}
