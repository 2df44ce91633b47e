/**
 * @file `train` on a mesh of devices. Every process calls it, with the same folder:
 *
 *   prepare    each traces its step; they compare what they start from, the first one locks and claims the folder
 *   find       the last snapshot that all can read, of this mesh or of another one (snapshots.ts, spread.ts)
 *   steps      every rank runs them; they meet now and then, and write what they keep
 *   finish     when the last snapshot is complete, all return
 *
 * An error at a meeting is one on all ranks (meeting.ts). One in a user's function between meetings is its rank's alone and ends all
 * processes, since the others are waiting in the middle of a step.
 */
import { compile } from "../../api/compile.ts";
import { currentHost, targetOf } from "../../api/host.ts";
import { specsOf } from "../../api/specs-of.ts";
import { TidemarkError } from "../../base/errors.ts";
import { at, invariant } from "../../base/invariant.ts";
import { byteLength, type TensorType, tensorType, typeText } from "../../ir/type.ts";
import { groupRanks, groupSize } from "../../kernel/device-group.ts";
import { newElements } from "../../kernel/dtype.ts";
import type { ParallelState } from "../../parallel/data-parallel.ts";
import type { StateLayout } from "../../parallel/state-layout.ts";
import type { ChosenTarget } from "../../runtime/choose-target.ts";
import { meshText } from "../../runtime/communicator.ts";
import { fail } from "../../trace/arguments.ts";
import { type AnyFunction, flattenArguments, type Traced, traceFlat } from "../../trace/function.ts";
import { lineOf } from "../../trace/source-location.ts";
import { ArrayStorage } from "../../trace/storage.ts";
import { Tensor } from "../../trace/tensor.ts";
import { type Flat, flatten, flattenLike, type Tree, treeKey, unflatten } from "../../trace/tree.ts";
import type { Files } from "../files.ts";
import { type FolderLock, lockFolder, type Owner, ourselves } from "../folder-lock.ts";
import { hashOfGraph, hashOfTensors, hashOfText, type Identity } from "../identity.ts";
import { bytesOfTensors, bytesOfView } from "../layout.ts";
import { usedTarget } from "../long-run-options.ts";
import {
  type AnyParallelOptions,
  type ParallelTrainResult,
  requireParallel,
  stepOptions,
  type TrainDevice,
} from "../train-options.ts";
import { type Claim, claimShared, requireShared } from "./folder.ts";
import { Meeting, type Ranks } from "./meeting.ts";
import { RankPace } from "./pace.ts";
import { Snapshots } from "./snapshots.ts";
import { keptBy, partAt, type Spread } from "./spread.ts";

/** A run as one rank has it before the folder is looked at. */
interface Prepared {
  readonly options: AnyParallelOptions;
  readonly layout: StateLayout;
  readonly spread: Spread;
  readonly device: TrainDevice;
  readonly step: AnyFunction;
  readonly traced: Traced;
  readonly loss: TensorType;
  /** The state of the device, as specs. */
  readonly state: Flat;
  readonly batch: BatchForm;
}

/** What ranks tell each other before they begin. */
interface Introduction {
  readonly owner: Owner;
  readonly parameters: string;
  readonly every: number | null;
  readonly steps: number;
}

const deviceOf = (spread: Spread, { rank, size }: Meeting): TrainDevice => ({
  ...{ rank, size },
  part: partAt(spread, rank),
  parts: groupSize(spread),
});

/** What is the same of every batch; its numbers may differ. */
interface BatchForm {
  readonly structure: string;
  readonly types: string;
}

function formOf(batch: readonly Tree[]): BatchForm {
  const { def, leaves } = flatten(batch, "batch", "argument", () => true);
  const types = leaves.map((leaf) => typeText(tensorType(leaf.dtype, leaf.shape)));
  return { structure: treeKey(def), types: types.join(", ") };
}

function prepared(given: Pick<Prepared, "options" | "layout" | "spread" | "device">, batch: readonly Tree[]): Prepared {
  const { parallel, params } = given.options;
  // messages name programs after functions
  const step = (state: ParallelState, ...rows: Tree[]): readonly [ParallelState, Tensor] => {
    const { state: next, loss } = parallel.step(state, ...rows);
    return [next, loss];
  };
  const specs = specsOf((all: Tree) => parallel.init(all))(params);
  const traced = traceFlat(step as AnyFunction, flattenArguments(step as AnyFunction, [specs, ...batch]));
  const { graph } = traced;
  const loss = at(graph.results, graph.results.length - 1).type;
  return {
    ...given,
    traced,
    state: flatten(specs, "state", "result"),
    step: step as AnyFunction,
    loss: tensorType(loss.dtype, loss.shape),
    batch: formOf(batch),
  };
}

/** The identity of a run on any number of devices, and what of it depends on the devices. */
function identityOf({ layout, traced, options, spread }: Prepared, parameters: string, arithmetic: string) {
  const { optimizer, zero } = layout;
  const update = ((state: never, grads: never) => optimizer.update(state, grads)) as AnyFunction;
  const whole = specsOf((all: Tree) => optimizer.init(all))(options.params);
  const identity: Identity = {
    what: "training on devices",
    parameters,
    optimizer: hashOfGraph(traceFlat(update, flattenArguments(update, [whole, whole.params])).graph),
    arithmetic,
  };
  const captured = hashOfTensors(traced.captures.map(({ tensor }) => tensor));
  const form = `${meshText(spread)} over ${spread.over.join()}, zero ${zero}`;
  return { identity, form, steps: { step: hashOfGraph(traced.graph), captured } };
}

/** What a user's function threw, as parts of an error. */
function partsOf(thrown: unknown): {
  readonly text: string;
  readonly where?: string | undefined;
  readonly help?: string;
} {
  if (thrown instanceof TidemarkError) {
    const { code, summary, where, help } = thrown;
    return { text: `${code}: ${summary}`, where, ...(help !== undefined && { help }) };
  }
  return { text: String(thrown), ...(thrown instanceof Error && { where: lineOf(thrown) }) };
}

/** The error of a user's function, with rank, step and line. */
function failureIn(what: string, { rank, size }: Ranks, step: number, thrown: unknown): TidemarkError {
  const { text, where, help = "mend it and train again: it continues from the last snapshot" } = partsOf(thrown);
  const summary = `train: ${what} of step ${step} failed on rank ${rank} of ${size}: ${text}`;
  return Object.assign(new TidemarkError("DeviceFailed", summary, { where, help }), { cause: thrown });
}

/** Runs a user's function, which may fail on this rank alone. */
async function calling<T>(what: string, ranks: Ranks, step: number, call: () => T | Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    if (ranks.size === 1) throw thrown;
    throw failureIn(what, ranks, step, thrown);
  }
}

/** The same between meetings, where it ends all ranks. */
async function alone<T>(ranks: Ranks, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    ranks.fail(thrown as Error);
    throw thrown;
  }
}

/** Tensors of the state of this device, and the loss, that are not yet filled, and their bytes. */
function blankTensors({ layout, spread, device, state, loss }: Prepared) {
  const { tensors } = layout;
  const made = [...state.leaves, loss].map(({ dtype, shape }) => {
    const data = newElements(
      dtype,
      shape.reduce((n, extent) => n * extent, 1),
    );
    return { tensor: new Tensor(new ArrayStorage(dtype, shape, data)), bytes: bytesOfView(data) };
  });
  tensors.forEach((tensor, k) => {
    const { from, to } = keptBy(tensor, spread, device.rank);
    const most = tensorType(tensor.type.dtype, [to - from]);
    invariant(byteLength(most) <= at(made, k).bytes.length, () => `${tensor.path} does not lie as its layout says`);
  });
  const blank = made.slice(0, state.leaves.length).map(({ tensor }) => tensor);
  const last = at(made, made.length - 1);
  return {
    state: unflatten(state.def, blank) as Tree,
    loss: last.tensor,
    kept: [...made.slice(0, tensors.length).map(({ bytes }) => bytes), last.bytes],
  };
}

/** Trains on a mesh of devices: every one of its processes calls it. */
export async function trainOnMesh(
  options: AnyParallelOptions,
  files: Files,
  ranks: Ranks,
): Promise<ParallelTrainResult<Tree>> {
  const meeting = new Meeting(ranks);
  let own: Prepared | null = null;
  const introductions = await meeting.all(async () => {
    requireParallel(options);
    const layout = options.parallel.layout(options.params);
    const spread = { mesh: Object.entries(layout.mesh.axes), over: layout.over };
    const device = deviceOf(spread, meeting);
    const batch = await calling("batch", ranks, 0, () => options.batch(0, device));
    own = prepared({ options, layout, spread, device }, batch);
    const parameters = hashOfTensors(flatten(options.params, "params").leaves);
    const { every = null, steps } = options;
    return JSON.stringify({ owner: ourselves(), parameters, every, steps } satisfies Introduction);
  });
  invariant(own, () => "a rank that has said nothing");
  const all = introductions.map((text) => JSON.parse(text) as Introduction);
  let lock: FolderLock | null = null;
  let isOver = true;
  try {
    const text = await meeting.fromFirst(async () => {
      const owners = all.map(({ owner }) => owner).slice(1);
      lock = await lockFolder(files, "train", options.directory, owners);
      return lock.text;
    });
    await meeting.all(() => requireShared(files, options.directory, text, meeting));
    return await trainInFolder(own, { files, ranks, meeting, all });
  } catch (error) {
    // the others are elsewhere, and may be writing: the lock is theirs until they have ended
    isOver = ranks.size === 1 || meeting.isOnAll(error);
    throw error;
  } finally {
    if (isOver) await (lock as FolderLock | null)?.release();
  }
}

interface Surroundings {
  readonly files: Files;
  readonly ranks: Ranks;
  readonly meeting: Meeting;
  readonly all: readonly Introduction[];
}

async function trainInFolder(own: Prepared, around: Surroundings): Promise<ParallelTrainResult<Tree>> {
  const { options, layout, spread, loss } = own;
  const { files, meeting, all } = around;
  const { directory: folder } = options;
  const claims: (Claim & { readonly chosen: ChosenTarget })[] = [];
  await meeting.all(() => {
    const chosen = targetOf(options, currentHost());
    const parts = identityOf(own, commonOf(all, own), chosen.target.description.arithmetic.name);
    claims.push({ ...parts, spread, own: layout.own, chosen });
    return "";
  });
  const { chosen, ...claim } = at(claims, 0);
  await meeting.fromFirst(async () => {
    await claimShared(files, folder, claim);
    return "";
  });
  const { identity } = claim;
  const snapshots = new Snapshots({ files, folder, identity, meeting, spread, tensors: layout.tensors, loss });
  try {
    return await trainFrom(own, { ...around, snapshots, chosen });
  } catch (error) {
    // before another run begins here, what is being written has to be there or not
    if (meeting.isOnAll(error)) await meeting.all(() => snapshots.rest());
    throw error;
  }
}

/** Finds the last snapshot, and runs the steps from there on. */
async function trainFrom(
  own: Prepared,
  { ranks, snapshots, chosen }: Surroundings & { readonly snapshots: Snapshots; readonly chosen: ChosenTarget },
): Promise<ParallelTrainResult<Tree>> {
  const { options, device } = own;
  const { steps, parallel, params } = options;
  const { target } = chosen;
  const damaged: string[] = [];
  const blank = blankTensors(own);
  const found = await snapshots.find(steps, blank.kept, damaged);
  const init = (all: Tree): Tree => parallel.init(all);
  const begin = (): Tree => compile(init, { target, threads: target.threads })(params);
  const begun = found?.step ?? 0;
  const last = await runSteps(own, {
    ...{ ranks, snapshots, begun },
    state: found ? blank.state : begin(),
    loss: found ? blank.loss : null,
    run: compile(own.step as (...args: Tree[]) => readonly [Tree, Tensor], {
      ...{ ...stepOptions(options), target, threads: target.threads, name: "step" },
    }),
    readsLater: target.readsLater ?? false,
  });
  await snapshots.finish();
  return {
    ...{ state: last.state as ParallelState<Tree>, loss: last.loss, ran: steps - begun },
    ...{ resumed: found !== null, resumedFrom: found && meshText(found.spread), damaged, device },
    ...usedTarget(chosen),
  };
}

/** The parameters that all start from, as a hash; throws where ranks differ that should not. */
function commonOf(all: readonly Introduction[], { layout, spread }: Prepared): string {
  const shared = spread.mesh.map(([axis]) => axis).filter((axis) => !layout.own.includes(axis));
  const firsts = all.map((_, rank) => firstAlong({ ...spread, over: shared }, rank));
  all.forEach(({ parameters, every, steps }, rank) => {
    const first = at(firsts, rank);
    if (parameters !== at(all, first).parameters) {
      const summary = `train: rank ${rank} starts from other parameters than rank ${first}`;
      fail("InvalidArgument", summary, "give the same on all ranks: from the same seed, or read from one file");
    }
    const { every: others, steps: most } = at(all, 0);
    if (every === others && steps === most) return;
    const [mine, theirs] = [`${steps} steps, every ${every}`, `${most} steps, every ${others}`];
    fail("InvalidArgument", `train: rank ${rank} has ${mine}, rank 0 ${theirs}`, "give all ranks the same options");
  });
  const different = [...new Set(firsts)].map((rank) => at(all, rank).parameters);
  return different.length === 1 ? at(different, 0) : hashOfText(different.join(" "));
}

/** The first device of those that differ along some axes alone. */
const firstAlong = (group: Spread, rank: number): number => at(groupRanks(group, rank), 0);

interface Steps {
  readonly ranks: Ranks;
  readonly snapshots: Snapshots;
  readonly begun: number;
  readonly state: Tree;
  readonly loss: Tensor | null;
  readonly run: (state: Tree, ...batch: Tree[]) => readonly [Tree, Tensor];
  /** Values have to be waited for before they are read. */
  readonly readsLater: boolean;
}

/** Runs the steps, and meets and saves on the way. */
async function runSteps(own: Prepared, { ranks, snapshots, begun, run, readsLater, ...first }: Steps) {
  const { options, layout, state: flat } = own;
  const { steps, every = null, onStep } = options;
  const pace = new RankPace(every, begun, steps);
  let { state, loss } = first;
  let next = pace.first;
  const kept = async (): Promise<readonly Uint8Array[]> => {
    const leaves = flattenLike(flat.def, state, "state").slice(0, layout.tensors.length);
    const saved = [...leaves, ...(loss ? [loss] : [])];
    // what has been waited for is read at once afterwards
    if (readsLater) await Promise.all(saved.map((leaf) => leaf.dataAsync()));
    return bytesOfTensors(saved);
  };
  for (let i = begun; i < steps; i++) {
    const rows = await alone(ranks, () => batchOf(own, ranks, i));
    const [after, value] = run(state, ...rows);
    [state, loss] = [after, value];
    if (ranks.rank === 0 && onStep) await alone(ranks, () => calling("onStep", ranks, i, () => onStep(i, value)));
    pace.stepped(snapshots.writeMs);
    if (i + 1 === next) next = await snapshots.meet(i + 1, () => pace.decide(i + 1), kept);
    if (pace.shouldYield(snapshots.busy)) await pace.yieldToEvents();
  }
  return { state, loss };
}

/** The batch of a step. Of another type it would be another program, which ranks come to together or never. */
async function batchOf({ options, device, batch: first }: Prepared, ranks: Ranks, i: number): Promise<readonly Tree[]> {
  const batch = await calling("batch", ranks, i, () => options.batch(i, device));
  if (ranks.size === 1) return batch;
  const { structure, types } = formOf(batch);
  if (structure === first.structure && types === first.types) return batch;
  const than = types === first.types ? "another structure" : types;
  const summary = `train: batch of step ${i} on rank ${ranks.rank} of ${ranks.size} has ${than}, that of step 0 ${first.types}`;
  throw new TidemarkError("ShapeMismatch", summary, { help: "give all batches one shape: leave out rows, or pad" });
}
