/** @file Options of training runs, of one process and of several, with their checks. */
import { PLANNING_OPTIONS, type PlanningOptions, parsePlanning } from "../api/request.ts";
import type { DataParallel, ParallelState } from "../parallel/data-parallel.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { requireInteger, type UsedTarget } from "./long-run-options.ts";

/** Options of planning and compilation; these are not part of the run's identity. */
const PLANNED = ["memory", "maxSlowdown", "strategy", "segments", "target", "threads"] as const;
type StepOptions = Pick<PlanningOptions, (typeof PLANNED)[number]>;

/** The planning options among all options. */
function plannedOf<T extends object>(from: T): Pick<T, Extract<keyof T, (typeof PLANNED)[number]>> {
  return Object.fromEntries(Object.entries(from).filter(([name]) => PLANNED.includes(name as never))) as never;
}

/** A run that is worth a folder is worth the whole search for a plan. */
export const stepOptions = (options: StepOptions): PlanningOptions => ({
  effort: "full",
  ...plannedOf(options),
  donate: [0],
});

/** What training on one process and on several have in common. */
interface CommonOptions extends StepOptions {
  readonly steps: number;
  readonly directory: string;
  /** Steps between checkpoints; default: about a second, and at most a twentieth of the time. */
  readonly every?: number;
  /** Called after each step; of several processes on the first alone. */
  readonly onStep?: (i: number, loss: Tensor) => void;
}

/** Options of {@link train}. */
export interface TrainOptions<S extends Tree, B extends readonly Tree[]> extends CommonOptions {
  /** One step: the next state, of the same structure and types, and the loss. */
  readonly step: (state: S, ...batch: B) => readonly [S, Tensor];
  readonly state: S;
  /** The further arguments of step `i`; must be a pure function of `i`. */
  readonly batch: (i: number) => Readonly<B> | Promise<Readonly<B>>;
}

/**
 * Which device of a mesh a process is.
 *
 * @example
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { random, type Tensor, tensor } from "tidemark";
 * import { type TrainDevice, train } from "tidemark/node";
 * import { adam } from "tidemark/optim";
 * import { dataParallel, mesh } from "tidemark/parallel";
 *
 * const rows = (x: Tensor, { part, parts }: TrainDevice) => x.slice([[(part * 8) / parts, ((part + 1) * 8) / parts]]);
 * const lossOf = (w: Tensor, x: Tensor) => x.matmul(w).square().mean();
 * const parallel = dataParallel(lossOf, adam(), { mesh: mesh({ data: 1 }), over: "data" });
 * const batch = (i: number, device: TrainDevice): [Tensor] => [rows(random.normal(random.key(i), [8, 2]), device)];
 * const directory = mkdtempSync(join(tmpdir(), "training-"));
 * const { device } = await train({ parallel, params: tensor([1, 2]), steps: 2, batch, directory });
 * console.log(device); // → { rank: 0, size: 1, part: 0, parts: 1 }
 */
export interface TrainDevice {
  /** Its place in the mesh, and the number of devices. */
  readonly rank: number;
  readonly size: number;
  /** Its number among the devices that have different parts of the batch, and how many those are. */
  readonly part: number;
  readonly parts: number;
}

/**
 * Options of {@link train} on a mesh of devices.
 *
 * @example
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { random, type Tensor, tensor } from "tidemark";
 * import { type ParallelTrainOptions, train } from "tidemark/node";
 * import { adam } from "tidemark/optim";
 * import { dataParallel, mesh } from "tidemark/parallel";
 *
 * const lossOf = (w: Tensor, x: Tensor) => x.matmul(w).square().mean();
 * const parallel = dataParallel(lossOf, adam(), { mesh: mesh({ data: 1 }), over: "data" });
 * const options: ParallelTrainOptions<Tensor, [Tensor]> = {
 *   parallel,
 *   params: tensor([1, 2]),
 *   steps: 4,
 *   batch: (i, { rank, size }) => [random.normal(random.key(i * size + rank), [8, 2])],
 *   directory: mkdtempSync(join(tmpdir(), "training-")),
 *   every: 2,
 * };
 * const { ran } = await train(options);
 * console.log(ran); // → 4
 */
export interface ParallelTrainOptions<P extends Tree, B extends readonly Tree[]> extends CommonOptions {
  /** What `dataParallel` gives. */
  readonly parallel: DataParallel<P, B>;
  /** The first parameters, as `init` takes them: the same on all devices but for those in parts of their own. */
  readonly params: P;
  /** The device's part of the batch of step `i`, of the same types in every step; must be a pure function of its arguments. */
  readonly batch: (i: number, device: TrainDevice) => Readonly<B> | Promise<Readonly<B>>;
}

/** What {@link train} returns. */
export interface TrainResult<S> extends UsedTarget {
  readonly state: S;
  /** Of the last step; null if no step ran. */
  readonly loss: Tensor | null;
  /** Steps that this process ran. */
  readonly ran: number;
  readonly resumed: boolean;
  /** Damaged checkpoints that were skipped. */
  readonly damaged: readonly string[];
}

/**
 * What {@link train} returns on each device of a mesh.
 *
 * @example
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { random, type Tensor, tensor } from "tidemark";
 * import { type ParallelTrainResult, train } from "tidemark/node";
 * import { adam } from "tidemark/optim";
 * import { dataParallel, mesh } from "tidemark/parallel";
 *
 * const lossOf = (w: Tensor, x: Tensor) => x.matmul(w).square().mean();
 * const parallel = dataParallel(lossOf, adam(), { mesh: mesh({ data: 1 }), over: "data" });
 * const directory = mkdtempSync(join(tmpdir(), "training-"));
 * const batch = (i: number): [Tensor] => [random.normal(random.key(i), [8, 2])];
 * const to = (steps: number): Promise<ParallelTrainResult<Tensor>> =>
 *   train({ parallel, params: tensor([1, 2]), steps, batch, directory });
 * await to(3);
 * const { ran, resumedFrom } = await to(5);
 * console.log(ran, resumedFrom); // → 2 data=1
 */
export interface ParallelTrainResult<P extends Tree> extends TrainResult<ParallelState<P>> {
  readonly device: TrainDevice;
  /** The mesh whose snapshot it went on from, `data=4`; null where it began. */
  readonly resumedFrom: string | null;
}

export type AnyTrainOptions = TrainOptions<Tree, readonly Tree[]>;
export type AnyParallelOptions = ParallelTrainOptions<Tree, readonly Tree[]>;

const COMMON: OptionKinds<CommonOptions> = {
  steps: "a number",
  directory: "a text",
  every: "a number",
  onStep: "a function",
  ...plannedOf(PLANNING_OPTIONS),
};
const OPTIONS: OptionKinds<AnyTrainOptions> = { ...COMMON, step: "a function", state: "anything", batch: "a function" };
const PARALLEL_OPTIONS: OptionKinds<AnyParallelOptions> = {
  ...COMMON,
  parallel: "anything",
  params: "anything",
  batch: "a function",
};

function requireCommon(options: CommonOptions): void {
  parsePlanning("train", stepOptions(options));
  requireInteger("train: steps", options.steps, 0, "give a whole number, 0 or more");
  if (options.every !== undefined)
    requireInteger("train: every", options.every, 1, "give a number of steps, 1 or more");
  if (typeof options.directory !== "string") {
    fail("InvalidArgument", `train: directory is ${describe(options.directory)}`, "give the path of a folder");
  }
}

export function requireTrain(options: AnyTrainOptions): void {
  requireOptions("train", options, OPTIONS);
  requireFunction("train", "step", options.step, "train({ step: (state, x, y) => [state, loss], … })");
  requireFunction("train", "batch", options.batch, "train({ batch: (i) => [x, y], … })");
  requireCommon(options);
}

export const isParallel = (options: unknown): options is AnyParallelOptions =>
  typeof options === "object" && options !== null && "parallel" in options;

/** What says which processes train together, so that all other mistakes can be told to all of them. */
export function requireDataParallel({ parallel }: AnyParallelOptions): void {
  if (typeof parallel?.layout === "function" && typeof parallel.mesh === "object") return;
  const help = "give what dataParallel gives: train({ parallel: dataParallel(lossOf, adam(), { mesh, over }), … })";
  fail("InvalidArgument", `train: parallel is ${describe(parallel)}`, help);
}

export function requireParallel(options: AnyParallelOptions): void {
  requireOptions("train", options, PARALLEL_OPTIONS);
  const example = "train({ batch: (i, { part, parts }) => [rows of this part], … })";
  requireFunction("train", "batch", options.batch, example);
  if (options.params === undefined)
    fail("InvalidArgument", "train: params is missing", "give the first parameters: train({ params, … })");
  requireCommon(options);
}
