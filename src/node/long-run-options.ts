/** @file Options of a long run with their checks; losses of steps become part of the state. */
import { spec, zeros } from "../api/create.ts";
import { PLANNING_OPTIONS, type PlanningOptions, requireTarget } from "../api/request.ts";
import { specsOf } from "../api/specs-of.ts";
import { TidemarkError } from "../base/errors.ts";
import { MOST_ITERATIONS } from "../ops/loops.ts";
import type { ChosenTarget } from "../runtime/choose-target.ts";
import type { Target } from "../runtime/device.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import type { Progress } from "./execution.ts";
import type { FileCosts } from "./measure.ts";

/** Snapshots on disk. */
export interface DiskOptions {
  /** The most bytes of snapshots on disk; default: no limit. */
  readonly bytes?: string | number;
  /** Default: measured. */
  readonly costs?: FileCosts;
}

/** The target of the steps; a folder continues with the arithmetic it began with, on any number of threads. */
export type RunTarget = Pick<PlanningOptions, "target" | "threads">;

/** What steps ran on. */
export interface UsedTarget {
  readonly target: string;
  /** With `target: "auto"`, why it is not a faster one; other notes on the target. */
  readonly targetNote: string | null;
}

export const usedTarget = ({ target, note }: ChosenTarget): UsedTarget => ({
  target: target.description.name,
  targetNote: note,
});

/** The states of long runs and simulations are copied between memory and disk at once, which not every target can do. */
export function requireStates(what: string, { description, readsLater = false }: Target): void {
  if (!readsLater) return;
  throw new TidemarkError(
    "TargetUnsupported",
    `${what} cannot read states at once, which ${description.name} needs to wait for`,
    {
      help: 'give the target "wasm", "native" or "cuda"; compile() with scan and a budget, and train(), run there too',
    },
  );
}

const { target, threads } = PLANNING_OPTIONS;
export const RUN_TARGET: OptionKinds<RunTarget> = { target, threads };

/** Options of {@link longRun}. */
export interface LongRunOptions<S extends Tree, C extends readonly Tree[]> extends RunTarget {
  /** From the state before step `i`, an i32 scalar, to the one after it. Captured values have no gradient. */
  readonly step: (state: S, i: Tensor, ...constants: C) => S;
  readonly steps: number;
  /** The first state. */
  readonly state: S;
  /** The same in every step; they have gradients too. */
  readonly constants?: C;
  /** A scalar of the last state. */
  readonly loss?: (state: S, ...constants: C) => Tensor;
  /** A scalar of the state before each step; all are summed, and added to `loss` if there is one. */
  readonly stepLoss?: (state: S, i: Tensor, ...constants: C) => Tensor;
  /** The most bytes for programs, buffers and snapshots: `"64MB"` or a number. */
  readonly memory: string | number;
  /** Also keep snapshots in `directory`, if that is faster than recomputing steps. */
  readonly disk?: DiskOptions;
  /** A folder for this run alone: with it, a repeated call continues where the run stopped. */
  readonly directory?: string;
  /** Steps run or reversed between durable points; default: about a second, and at most a twentieth of the time. */
  readonly every?: number;
  /** Called repeatedly, at most every few milliseconds. */
  readonly onProgress?: (progress: Progress) => void;
}

const OPTIONS: OptionKinds<LongRunOptions<Tree, readonly Tree[]>> = {
  step: "a function",
  steps: "a number",
  state: "anything",
  constants: "anything",
  loss: "a function",
  stepLoss: "a function",
  memory: "anything",
  disk: "anything",
  directory: "a text",
  every: "a number",
  onProgress: "a function",
  ...RUN_TARGET,
};

const DISK_OPTIONS: OptionKinds<DiskOptions> = { bytes: "anything", costs: "anything" };

/** Requires an integer of at least `least`. */
export function requireInteger(name: string, value: unknown, least: number, help: string): void {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= MOST_ITERATIONS) return;
  fail("InvalidArgument", `${name} is ${describe(value)}`, help);
}

export function requireLongRun<S extends Tree, C extends readonly Tree[]>(options: LongRunOptions<S, C>): void {
  requireOptions("longRun", options as unknown as LongRunOptions<Tree, readonly Tree[]>, OPTIONS);
  requireTarget("longRun", options);
  requireFunction("longRun", "step", options.step, "longRun({ step: (state, i) => state, … })");
  requireInteger("longRun: steps", options.steps, 0, "give a whole number, 0 or more");
  if (options.every !== undefined)
    requireInteger("longRun: every", options.every, 1, "give a number of steps, 1 or more");
  if (!options.loss && !options.stepLoss) {
    fail("InvalidArgument", "longRun: there is no loss", "give loss, a function of the last state, or stepLoss");
  }
  if (options.constants !== undefined && !Array.isArray(options.constants)) {
    fail("InvalidArgument", `longRun: constants are ${describe(options.constants)}`, "give a list: constants: [k]");
  }
  if (typeof options.memory !== "string" && typeof options.memory !== "number") {
    fail("InvalidArgument", `longRun: memory is ${describe(options.memory)}`, 'give a number of bytes: memory: "64MB"');
  }
  if (!options.disk) return;
  requireOptions("longRun: disk", options.disk, DISK_OPTIONS);
  if (options.directory === undefined) {
    fail("InvalidArgument", "longRun: disk without a directory", "give directory, the folder for the snapshots");
  }
}

/** A run whose step losses, if any, are summed in its state. */
export interface SummedRun {
  readonly step: (state: Tree, i: Tensor, ...constants: readonly Tree[]) => Tree;
  readonly state: Tree;
  readonly loss: AnyFunction;
}

interface Summed {
  readonly state: Tree;
  readonly total: Tensor;
}

export function withTotal<S extends Tree, C extends readonly Tree[]>(options: LongRunOptions<S, C>): SummedRun {
  const { step, loss, stepLoss } = options as unknown as LongRunOptions<Tree, readonly Tree[]>;
  if (!stepLoss) return { step, state: options.state, loss: loss as AnyFunction };
  const constants = (options.constants ?? []) as readonly Tree[];
  const each: unknown = specsOf(stepLoss)(options.state, spec([], "i32"), ...constants);
  if (!(each instanceof Tensor) || each.rank > 0) {
    return fail("ShapeMismatch", `longRun: stepLoss gives ${describe(each)}`, "reduce it with sum() or mean()");
  }
  return {
    state: { state: options.state, total: zeros([], each.dtype) },
    step: (now, i, ...rest) => {
      const { state, total } = now as Summed;
      return { state: step(state, i, ...rest), total: total.add(stepLoss(state, i, ...rest)) };
    },
    loss: ((now: Summed, ...rest: readonly Tree[]) =>
      loss ? now.total.add(loss(now.state, ...rest)) : now.total) as AnyFunction,
  };
}
