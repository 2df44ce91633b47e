/**
 * @file Simulations of many steps, differentiated from the host: the step and its reverse are compiled once, a schedule
 * (src/node/reverse) says which states to keep in memory and on disk within a number of bytes, and with a folder the
 * run can be killed at any moment and resumed. See docs/long-runs.md.
 */
import { currentHost, targetOf } from "../api/host.ts";
import { parseBytes } from "../base/bytes.ts";
import { grouped, TidemarkError } from "../base/errors.ts";
import { at, invariant } from "../base/invariant.ts";
import { tensorType } from "../ir/type.ts";
import { madeFor } from "../runtime/choose-target.ts";
import type { Target } from "../runtime/device.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type Flat, flatten, leafCount, type Tree, unflatten } from "../trace/tree.ts";
import { DISK, Execution } from "./execution.ts";
import { type Files, NODE_FILES } from "./files.ts";
import { inFolder } from "./folder-lock.ts";
import { claimFolder, fingerprintOf, hashOfGraph, hashOfTensors, type Identity } from "./identity.ts";
import { tensorFrom, tensorsOf } from "./layout.ts";
import {
  type DiskOptions,
  type LongRunOptions,
  requireLongRun,
  requireStates,
  type UsedTarget,
  usedTarget,
  withTotal,
} from "./long-run-options.ts";
import { measureCosts } from "./measure.ts";
import { ReversePrograms } from "./programs.ts";
import { findRun, freshRun } from "./resume.ts";
import type { LevelSpec } from "./reverse/action.ts";
import { type KnownLoopPlan, planLoop } from "./reverse/plan-loop.ts";
import { HEADER_BYTES } from "./snapshot-file.ts";
import { advanceGraph, type LossGraph, lossGraph, reverseGraphs, type TracedStep, traceStep } from "./step-graphs.ts";
import { Store, windowBytes } from "./store.ts";

/** What a long run did, as counts. */
export interface LongRunCounts {
  /** Evaluations of steps by this process, and those beyond one for each step that it reversed. */
  readonly forwardSteps: number;
  readonly recomputedSteps: number;
  readonly reversedSteps: number;
  /** Files written and read. */
  readonly filesWritten: number;
  readonly filesRead: number;
}

/** What {@link longRun} returns. */
export interface LongRunResult<S, C extends readonly unknown[]> extends UsedTarget {
  readonly value: Tensor;
  /** The last one. */
  readonly state: S;
  /** With the structures of state and constants; integers have zeros. */
  readonly gradients: { readonly state: S; readonly constants: C };
  readonly counts: LongRunCounts;
  /** The schedule that the run began or resumed with; null if no steps were left to reverse. */
  readonly schedule: { readonly name: string; readonly recomputedSteps: number; readonly slotBytes: number } | null;
  /** Arenas, buffers and slots. */
  readonly memoryBytes: number;
  /** Whether the run resumed from files in the folder. */
  readonly resumed: boolean;
  /** Files that were damaged; their contents were recomputed. */
  readonly damaged: readonly string[];
}

/** A run that is ready to begin. */
interface Prepared {
  readonly step: TracedStep;
  readonly loss: LossGraph;
  readonly programs: ReversePrograms;
  readonly target: Target;
  readonly on: UsedTarget;
  readonly state: Flat;
  /** Leaves of the first state and of constants. */
  readonly start: readonly Tensor[];
  readonly constants: readonly Tensor[];
}

function prepare<S extends Tree, C extends readonly Tree[]>(options: LongRunOptions<S, C>): Prepared {
  const summed = withTotal(options);
  const state = flatten(summed.state, "state", "result");
  const first = unflatten(state.def, state.leaves) as Tree;
  const constants = (options.constants ?? []) as readonly Tree[];
  const step = traceStep(summed.step, first, constants);
  const loss = lossGraph(summed.loss, first, constants);
  const [start, rest] = [
    step.inputs.slice(0, step.states),
    step.inputs.slice(step.states, step.states + step.constants),
  ];
  const graphs = { advance: advanceGraph(step), reverse: reverseGraphs(step), loss };
  const host = currentHost();
  const prepared = madeFor(targetOf(options, host), (chosen) => {
    const { target } = chosen;
    requireStates("longRun", target);
    const programs = new ReversePrograms({ target, host, ...graphs, states: step.states, constants: rest });
    return { programs, target, on: usedTarget(chosen) };
  });
  return { step, loss, ...prepared, state, start, constants: rest };
}

function identityOf({ step, loss, start, constants, target }: Prepared, steps: number): Identity {
  return {
    what: "long run",
    step: hashOfGraph(step.traced.graph),
    loss: hashOfGraph(loss.bound.graph),
    steps,
    state: hashOfTensors(start),
    constants: hashOfTensors(constants),
    captured: hashOfTensors([...step.inputs.slice(step.states + step.constants), ...loss.bound.constants]),
    // whether products are fused with additions changes bits
    arithmetic: target.description.arithmetic.name,
  };
}

/** Bytes by use. */
interface Budget {
  readonly memory: number;
  /** Arenas, window, last state. */
  readonly fixed: number;
}

function budgetOf(memory: string | number, { programs }: Prepared, durable: boolean): Budget {
  const sizes = { state: programs.state.bytes, adjoint: programs.adjoint.bytes };
  const window = durable ? windowBytes(sizes) : 0;
  return { memory: parseBytes(memory), fixed: programs.arenaBytes + window + programs.state.bytes };
}

/** The cheapest schedule for some steps in the bytes left for slots. */
function planSteps(steps: number, { programs }: Prepared, { memory, fixed }: Budget, disk: LevelSpec | null) {
  const [stateBytes, tapeBytes] = [programs.state.bytes, programs.tapeLayout.bytes];
  const slots = memory - fixed;
  try {
    // the working tape is in the arenas already
    const budgetBytes = Math.max(0, slots) + tapeBytes;
    const slower = disk && disk.units > 0 ? [disk] : undefined;
    if (slots >= 0) return planLoop({ steps, stateBytes, tapeBytes, budgetBytes, alignBytes: 8, slower });
  } catch (error) {
    if (!(error instanceof TidemarkError) || error.code !== "PlanInfeasible") throw error;
  }
  const minimum = fixed + Math.min(stateBytes, Math.max(0, steps - 1) * tapeBytes);
  const parts = `programs and buffers take ${grouped(fixed)} bytes, a state ${grouped(stateBytes)}`;
  throw new TidemarkError(
    "PlanInfeasible",
    `longRun: ${grouped(steps)} steps cannot be reversed in ${grouped(memory)} bytes: ${parts}`,
    { help: `raise memory to ${grouped(minimum)} bytes or more` },
  );
}

async function openStore(files: Files, folder: string, prepared: Prepared, steps: number): Promise<Store> {
  const identity = identityOf(prepared, steps);
  await claimFolder(files, folder, identity);
  const { programs } = prepared;
  return new Store(files, {
    folder,
    fingerprint: fingerprintOf(identity),
    sizes: { state: programs.state.bytes, adjoint: programs.adjoint.bytes },
    afterFailure: "then run again: it continues from the last durable point",
  });
}

/** The disk level: costs of files in steps, and their maximum number. */
async function diskLevel(disk: DiskOptions, { programs, start }: Prepared, store: Store): Promise<LevelSpec> {
  const { writeCost, readCost } = disk.costs ?? (await measureCosts(programs, start, store));
  const bytes = disk.bytes === undefined ? Number.POSITIVE_INFINITY : parseBytes(disk.bytes);
  const units = Math.floor(bytes / (HEADER_BYTES + programs.state.bytes));
  return { name: DISK, units, writeCost, readCost };
}

/** Reverses the remaining steps, repeatedly starting from the last available state. */
async function reverseAll(
  run: Execution,
  plan: (steps: number, files: number) => KnownLoopPlan,
  steps: number,
): Promise<KnownLoopPlan | null> {
  let first: KnownLoopPlan | null = null;
  if (run.begun) {
    await run.goTo(steps);
    run.keepFinal();
  }
  while (run.left > 0) {
    const base = await run.load(run.left - 1);
    const chosen = plan(run.left - base, [...run.files].filter((step) => step < steps).length);
    first ??= chosen;
    await run.reverseFrom(base, chosen);
    await run.dropFile(base);
  }
  if (!run.begun) {
    await run.goTo(steps);
    await run.begin();
  }
  return first;
}

/** Value, last state and gradients, copied out of arenas and blocks. */
function resultOf<S extends Tree, C extends readonly Tree[]>(
  { steps, stepLoss }: LongRunOptions<S, C>,
  { programs, state, step, constants, loss }: Prepared,
  run: Execution,
): Pick<LongRunResult<S, C>, "value" | "state" | "gradients"> {
  invariant(run.final, () => "a run without a last state");
  const userState = (tree: unknown): S => (stepLoss ? (tree as { readonly state: S }).state : (tree as S));
  const gradient = (tensor: Tensor, leaf: number): Tensor =>
    tensorFrom(tensorType(tensor.dtype, tensor.shape), programs.cotangent(leaf, steps > 0));
  const gradients = constants.map((tensor, k) => gradient(tensor, step.states + k));
  let next = 0;
  const trees = step.traced.argTrees.slice(1).map((tree) => {
    const count = leafCount(tree);
    next += count;
    return unflatten(tree, gradients.slice(next - count, next));
  });
  return {
    value: tensorFrom(at(loss.bound.graph.results, 0).type, programs.value),
    state: userState(unflatten(state.def, tensorsOf(programs.state, run.final))),
    gradients: { state: userState(unflatten(state.def, state.leaves.map(gradient))), constants: trees as unknown as C },
  };
}

/**
 * Runs `steps` steps from a state and differentiates a loss of the result, in bounded memory. With `directory` the run
 * can be killed at any moment: called again with the same arguments it continues from the last durable point, to the
 * same bits.
 *
 * @throws InvalidArgument for options that are none; StorageError where the folder cannot be used or is
 * another run's
 *
 * @example import { longRun } from "tidemark/node"; import { type Tensor, tensor } from "tidemark";
 *
 * const { value, gradients } = await longRun({
 *   step: (x: Tensor, _i: Tensor, k: Tensor) => x.sub(x.mul(k)),
 *   steps: 1000,
 *   state: tensor([1, 2], { dtype: "f64" }),
 *   constants: [tensor(0.001, { dtype: "f64" })],
 *   loss: (x) => x.square().sum(),
 *   memory: "1MB",
 * }); console.log(value.item(), gradients.constants[0].item());
 */
export async function longRun<S extends Tree, const C extends readonly Tree[] = readonly []>(
  options: LongRunOptions<S, C>,
  files: Files = NODE_FILES,
): Promise<LongRunResult<S, C>> {
  requireLongRun(options);
  const run = (): Promise<LongRunResult<S, C>> => runAlone(options, files);
  return options.directory === undefined ? run() : inFolder(files, "longRun", options.directory, run);
}

async function runAlone<S extends Tree, C extends readonly Tree[]>(
  options: LongRunOptions<S, C>,
  files: Files,
): Promise<LongRunResult<S, C>> {
  const { steps, directory, disk } = options;
  const prepared = prepare(options);
  const { programs, start } = prepared;
  const budget = budgetOf(options.memory, prepared, directory !== undefined);
  const store = directory === undefined ? null : await openStore(files, directory, prepared, steps);
  const point = store ? await findRun(store, programs, steps) : freshRun(steps);
  const { every = null, onProgress = null } = options;
  const run = new Execution({ programs, steps, start, store, every, onProgress }, point);
  const level = disk && store && run.left > 1 ? await diskLevel(disk, prepared, store) : null;
  let slotBytes = 0;
  const schedule = await reverseAll(
    run,
    (count, used) => {
      const free = level && { ...level, units: Math.max(0, level.units - used) };
      const plan = planSteps(count, prepared, budget, free);
      slotBytes = Math.max(slotBytes, plan.bytes - programs.tapeLayout.bytes);
      return plan;
    },
    steps,
  );
  await run.finish();
  return {
    ...resultOf(options, prepared, run),
    counts: {
      forwardSteps: run.forwardSteps,
      recomputedSteps: run.forwardSteps - run.reversedSteps,
      reversedSteps: run.reversedSteps,
      filesWritten: store?.written ?? 0,
      filesRead: store?.read ?? 0,
    },
    schedule: schedule && { name: schedule.schedule.name, recomputedSteps: schedule.extraSteps, slotBytes },
    memoryBytes: budget.fixed + slotBytes,
    resumed: point.states.length + point.adjoints.length > 0,
    damaged: run.damaged,
    ...prepared.on,
  };
}
