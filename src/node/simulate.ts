/**
 * @file A simulation without derivatives that can be killed and resumed: only forward steps, in one arena, with the
 * state regularly written to a folder while later steps run. Called again with the same arguments it continues from the
 * last intact file, to the same bits; more steps may be requested later in the same folder. A step has the bits that it
 * has in `longRun` and in a `scan`.
 *
 * ```
 *   0 ──────────── 400 ──────── 500 ─ ✕            killed
 *                               500 ──────────── 1000
 * ```
 */
import { currentHost, targetOf } from "../api/host.ts";
import { requireTarget } from "../api/request.ts";
import { TidemarkError } from "../base/errors.ts";
import { madeFor } from "../runtime/choose-target.ts";
import type { Target } from "../runtime/device.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { DurablePoints } from "./durable-points.ts";
import type { Progress } from "./execution.ts";
import { type Files, NODE_FILES } from "./files.ts";
import { inFolder } from "./folder-lock.ts";
import { claimFolder, fingerprintOf, hashOfGraph, hashOfTensors, type Identity } from "./identity.ts";
import { tensorsOf } from "./layout.ts";
import {
  type LongRunOptions,
  RUN_TARGET,
  type RunTarget,
  requireInteger,
  requireStates,
  type UsedTarget,
  usedTarget,
} from "./long-run-options.ts";
import { Pace } from "./pace.ts";
import { ForwardPrograms } from "./programs.ts";
import { advanceGraph, type TracedStep, traceStep } from "./step-graphs.ts";
import { Store, windowBytes } from "./store.ts";

/** Options of {@link simulate}. */
export interface SimulateOptions<S extends Tree, C extends readonly Tree[]>
  extends RunTarget,
    Pick<LongRunOptions<S, C>, "step" | "steps" | "state" | "constants" | "directory" | "onProgress"> {
  /** Steps between durable points; default: about a second, and at most a twentieth of the time. */
  readonly every?: number;
}

/** What {@link simulate} returns. */
export interface SimulateResult<S> extends UsedTarget {
  /** The last one. */
  readonly state: S;
  /** Steps that this process ran. */
  readonly ran: number;
  /** The arena and the buffers of the window. */
  readonly memoryBytes: number;
  readonly resumed: boolean;
  /** Damaged files that were skipped. */
  readonly damaged: readonly string[];
}

const OPTIONS: OptionKinds<SimulateOptions<Tree, readonly Tree[]>> = {
  step: "a function",
  steps: "a number",
  state: "anything",
  constants: "anything",
  directory: "a text",
  every: "a number",
  onProgress: "a function",
  ...RUN_TARGET,
};

function requireSimulate(options: SimulateOptions<Tree, readonly Tree[]>): void {
  requireOptions("simulate", options, OPTIONS);
  requireTarget("simulate", options);
  requireFunction("simulate", "step", options.step, "simulate({ step: (state, i) => state, … })");
  requireInteger("simulate: steps", options.steps, 0, "give a whole number, 0 or more");
  if (options.every !== undefined)
    requireInteger("simulate: every", options.every, 1, "give a number of steps, 1 or more");
  if (options.constants !== undefined && !Array.isArray(options.constants)) {
    fail("InvalidArgument", `simulate: constants are ${describe(options.constants)}`, "give a list: constants: [k]");
  }
}

/** The number of steps is not part of the identity. */
function identityOf({ traced, inputs, states, constants }: TracedStep, { description }: Target): Identity {
  return {
    what: "simulation",
    step: hashOfGraph(traced.graph),
    state: hashOfTensors(inputs.slice(0, states)),
    constants: hashOfTensors(inputs.slice(states, states + constants)),
    captured: hashOfTensors(inputs.slice(states + constants)),
    arithmetic: description.arithmetic.name,
  };
}

async function openStore(files: Files, folder: string, identity: Identity, bytes: number): Promise<Store> {
  await claimFolder(files, folder, identity);
  return new Store(files, {
    folder,
    fingerprint: fingerprintOf(identity),
    sizes: { state: bytes, adjoint: 0 },
    afterFailure: "then run again: it continues from the last durable point",
  });
}

/** Makes the last intact state at or before `steps` current; returns its step, 0 if there is none. */
async function resume(store: Store, programs: ForwardPrograms, there: readonly number[], damaged: string[]) {
  for (const step of [...there].reverse()) {
    try {
      await store.get({ kind: "state", step }, (block) => programs.writeState(block));
      return step;
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error;
      damaged.push(error.summary);
    }
  }
  return 0;
}

/**
 * Runs `steps` steps from a state. With `directory` the run can be killed at any moment: called again with the same
 * arguments it continues from the last durable state, to the same bits.
 *
 * @throws InvalidArgument for options that are none; StorageError where the folder cannot be used or is
 * another run's
 *
 * @example import { simulate } from "tidemark/node"; import { type Tensor, tensor } from "tidemark";
 *
 * const { state } = await simulate({
 *   step: (x: Tensor, _i: Tensor, k: Tensor) => x.sub(x.mul(k)),
 *   steps: 1000,
 *   state: tensor([1, 2], { dtype: "f64" }),
 *   constants: [tensor(0.001, { dtype: "f64" })],
 * }); console.log(state.toArray());
 */
export async function simulate<S extends Tree, const C extends readonly Tree[] = readonly []>(
  options: SimulateOptions<S, C>,
  files: Files = NODE_FILES,
): Promise<SimulateResult<S>> {
  const untyped = options as unknown as SimulateOptions<Tree, readonly Tree[]>;
  requireSimulate(untyped);
  const run = (): Promise<SimulateResult<S>> => simulateAlone(untyped, files) as Promise<SimulateResult<S>>;
  return untyped.directory === undefined ? run() : inFolder(files, "simulate", untyped.directory, run);
}

async function simulateAlone(
  given: SimulateOptions<Tree, readonly Tree[]>,
  files: Files,
): Promise<SimulateResult<Tree>> {
  const { steps, directory, every = null, onProgress } = given;
  const flat = flatten(given.state, "state", "result");
  const step = traceStep(given.step, unflatten(flat.def, flat.leaves) as Tree, given.constants ?? [], "simulate");
  const host = currentHost();
  const { programs, target, on } = madeFor(targetOf(given, host), (chosen) => {
    requireStates("simulate", chosen.target);
    const programs = ForwardPrograms.load(advanceGraph(step), step.states, chosen.target, host);
    return { programs, target: chosen.target, on: usedTarget(chosen) };
  });
  const { bytes } = programs.state;
  const store = directory === undefined ? null : await openStore(files, directory, identityOf(step, target), bytes);
  const there = store ? (await store.labels()).map((label) => label.step).filter((each) => each <= steps) : [];
  const durableSteps = there.sort((a, b) => a - b);
  const damaged: string[] = [];
  const begun = store ? await resume(store, programs, durableSteps, damaged) : 0;
  if (begun === 0) programs.startFrom(step.inputs.slice(0, step.states) as readonly Tensor[]);
  const points = store && new DurablePoints(store, "state", durableSteps);
  const pace = new Pace(every);
  const save = async (at: number): Promise<void> => {
    await points?.add(
      at,
      (block) => programs.readState(block),
      () => false,
    );
    pace.saved();
  };
  for (let i = begun; i < steps; i++) {
    programs.advance(i);
    if (store && pace.stepped(store.writeMs) && i + 1 < steps) await save(i + 1);
    if (!pace.shouldYield(store?.busy ?? false)) continue;
    const progress: Progress = { phase: "forward", step: i, steps, forwardSteps: i + 1 - begun, reversedSteps: 0 };
    onProgress?.(progress);
    await pace.yieldToEvents();
    store?.check();
  }
  if (steps > begun) await save(steps);
  await store?.settled();
  const block = new Uint8Array(bytes);
  programs.readState(block);
  return {
    state: unflatten(flat.def, tensorsOf(programs.state, block)) as Tree,
    ran: steps - begun,
    memoryBytes: programs.arenaBytes + (store ? windowBytes({ state: bytes, adjoint: 0 }) : 0),
    resumed: begun > 0,
    damaged,
    ...on,
  };
}
