/**
 * @file A training loop that can be killed and resumed. The step is compiled with its state donated, so parameters and
 * moments stay in the arena; regularly they are copied out and written to a folder while later steps run. Called again
 * with the same arguments the loop continues from the last checkpoint, to the same bits: batches are a function of the
 * step number, so no state of them has to be saved.
 */
import { compile } from "../api/compile.ts";
import { currentHost, targetOf } from "../api/host.ts";
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type TensorType, tensorType } from "../ir/type.ts";
import { fail } from "../trace/arguments.ts";
import { type AnyFunction, flattenArguments, type Traced, traceFlat } from "../trace/function.ts";
import { spareTensor, type Tensor } from "../trace/tensor.ts";
import { type Flat, flatten, flattenLike, type Tree, unflatten } from "../trace/tree.ts";
import { DurablePoints } from "./durable-points.ts";
import { type Files, NODE_FILES } from "./files.ts";
import { inFolder } from "./folder-lock.ts";
import { claimFolder, fingerprintOf, hashOfGraph, hashOfTensors, type Identity } from "./identity.ts";
import { gather, type Layout, layoutOf, sectionOf, tensorsOf } from "./layout.ts";
import { usedTarget } from "./long-run-options.ts";
import { ranksOf } from "./mpi/ranks.ts";
import { Pace } from "./pace.ts";
import { trainOnMesh } from "./ranks/train.ts";
import { Store } from "./store.ts";
import {
  type AnyTrainOptions,
  isParallel,
  type ParallelTrainOptions,
  type ParallelTrainResult,
  requireDataParallel,
  requireTrain,
  stepOptions,
  type TrainOptions,
  type TrainResult,
} from "./train-options.ts";

/** The state with the last loss, as a block. */
interface Checkpoint {
  readonly layout: Layout;
  readonly flat: Flat;
}

function checkpointOf({ graph, resultTree }: Traced, flat: Flat): Checkpoint {
  const loss = resultTree.kind === "array" && resultTree.items.length === 2 ? resultTree.items[1] : undefined;
  if (loss?.kind !== "tensor") fail("InvalidTree", "train: step must return [state, loss]", "return [state, loss]");
  const states = flat.leaves.map((leaf): TensorType => tensorType(leaf.dtype, leaf.shape));
  return { layout: layoutOf([...states, at(graph.results, graph.results.length - 1).type]), flat };
}

/** The number of steps is not part of the identity: more may be requested later. */
function identityOf(traced: Traced, start: readonly Tensor[], arithmetic: string): Identity {
  return {
    what: "training",
    step: hashOfGraph(traced.graph),
    state: hashOfTensors(start),
    captured: hashOfTensors(traced.captures.map(({ tensor }) => tensor)),
    arithmetic,
  };
}

interface Point {
  readonly step: number;
  readonly state: Tree;
  readonly loss: Tensor | null;
}

/** The last intact checkpoint at or before `steps`; throws if there are some and none is intact. */
async function lastPoint(store: Store, { layout, flat }: Checkpoint, steps: number, damaged: string[]) {
  const there = (await store.labels()).map(({ step }) => step).sort((a, b) => a - b);
  let failure: unknown = null;
  for (const step of there.filter((each) => each <= steps).reverse()) {
    let leaves: readonly Tensor[] = [];
    try {
      await store.get({ kind: "state", step }, (block) => {
        leaves = tensorsOf(layout, block);
      });
      const point: Point = { step, state: unflatten(flat.def, leaves) as Tree, loss: leaves.at(-1) ?? null };
      return { point, there };
    } catch (error) {
      if (!(error instanceof TidemarkError)) throw error;
      damaged.push(error.summary);
      failure = error;
    }
  }
  if (failure !== null) throw failure;
  return { point: null, there };
}

/**
 * Trains for a number of steps; killed at any moment and called again, it continues from the last checkpoint.
 *
 * @throws InvalidArgument for options that are none; StorageError where the folder cannot be used or is
 * another run's
 *
 * @example import { mkdtempSync } from "node:fs"; import { tmpdir } from "node:os"; import { join } from "node:path";
 * import { type Tensor, tensor, valueAndGrad } from "tidemark"; import { train } from "tidemark/node";
 *
 * const { state, loss } = await train({
 *   step(w: Tensor, x: Tensor) {
 *     const [value, dw] = valueAndGrad((v: Tensor) => v.sub(x).square().sum())(w);
 *     return [w.sub(dw.mul(0.1)), value];
 *   },
 *   state: tensor([0, 0]),
 *   steps: 100,
 *   batch: (i) => [tensor([1, i % 2])],
 *   directory: mkdtempSync(join(tmpdir(), "training-")),
 * }); console.log(state.toArray(), loss?.item());
 */
export function train<S extends Tree, B extends readonly Tree[]>(
  options: TrainOptions<S, B>,
  files?: Files,
): Promise<TrainResult<S>>;
/**
 * Trains on a mesh of devices, with what `dataParallel` gives: every process that `mpirun` started calls it, with the same folder. Each
 * writes its part of the state; a run that was killed goes on from the last snapshot of which all parts are there, to the same bits, also
 * on another number of devices or with another `zero`.
 *
 * @throws InvalidArgument for options that are none, and where ranks start from other parameters; StorageError where the
 * folder cannot be used or is another run's; DeviceFailed for what another rank could not do
 *
 * @memory Beside the step's arena each device has a buffer for its part of the state.
 *
 * @example import { mkdtempSync } from "node:fs"; import { tmpdir } from "node:os"; import { join } from "node:path";
 * import { compile, random, type Tensor, tensor } from "tidemark"; import { mpi, train } from "tidemark/node";
 * import { adam } from "tidemark/optim"; import { dataParallel, mesh } from "tidemark/parallel";
 *
 * const devices = mesh({ data: mpi().size });
 * const lossOf = (w: Tensor, x: Tensor) => x.matmul(w).square().mean();
 * const training = dataParallel(lossOf, adam({ lr: 0.1 }), { mesh: devices, over: "data", zero: 2 });
 * const { state, device } = await train({
 *   parallel: training,
 *   params: tensor([1, 2]),
 *   steps: 20,
 *   batch: (i, { part, parts }) => [random.normal(random.key(i * parts + part), [8 / parts, 2])],
 *   directory: mkdtempSync(join(tmpdir(), "training-")), // of several processes the same one
 * });
 * const params = compile(training.params)(state);
 * if (device.rank === 0) console.log(params.shape); // [2]
 */
export function train<P extends Tree, B extends readonly Tree[]>(
  options: ParallelTrainOptions<P, B>,
  files?: Files,
): Promise<ParallelTrainResult<P>>;
export async function train(options: unknown, files: Files = NODE_FILES): Promise<TrainResult<Tree>> {
  if (isParallel(options)) {
    requireDataParallel(options);
    return trainOnMesh(options, files, ranksOf("train", options.parallel.mesh));
  }
  const alone = options as AnyTrainOptions;
  requireTrain(alone);
  return inFolder(files, "train", alone.directory, () => trainAlone(alone, files));
}

async function trainAlone(options: AnyTrainOptions, files: Files): Promise<TrainResult<Tree>> {
  const { step, steps, batch, directory, every = null, onStep } = options;
  const flat = flatten(options.state, "state", "result");
  // the steps donate their states, and the first one is the user's
  const first = unflatten(flat.def, flat.leaves.map(spareTensor)) as Tree;
  const traced = traceFlat(step as AnyFunction, flattenArguments(step as AnyFunction, [first, ...(await batch(0))]));
  const checkpoint = checkpointOf(traced, flat);
  const chosen = targetOf(options, currentHost());
  const { target } = chosen;
  const identity = identityOf(traced, flat.leaves, target.description.arithmetic.name);
  await claimFolder(files, directory, identity);
  const store = new Store(files, {
    folder: directory,
    fingerprint: fingerprintOf(identity),
    sizes: { state: checkpoint.layout.bytes, adjoint: 0 },
    afterFailure: "then train again: it continues from the last checkpoint",
  });
  const damaged: string[] = [];
  const { point, there } = await lastPoint(store, checkpoint, steps, damaged);
  const points = new DurablePoints(store, "state", there);
  const pace = new Pace(every);
  // exactly the target that the folder was claimed for
  const run = compile(step, { ...stepOptions(options), target, threads: target.threads });
  let { state, loss, step: i } = point ?? { state: first, loss: null, step: 0 };
  const begun = i;
  const save = async (): Promise<void> => {
    const leaves = [...flattenLike(flat.def, state, "state"), ...(loss ? [loss] : [])];
    // what has been waited for is read at once afterwards
    if (target.readsLater) await Promise.all(leaves.map((leaf) => leaf.dataAsync()));
    await points.add(
      i,
      (block) => gather(checkpoint.layout, sectionOf(leaves), block),
      () => false,
    );
    pace.saved();
  };
  while (i < steps) {
    [state, loss] = run(state, ...(await batch(i)));
    onStep?.(i, loss);
    i++;
    if (pace.stepped(store.writeMs) && i < steps) await save();
    if (pace.shouldYield(store.busy)) await pace.yieldToEvents();
  }
  if (i > begun) await save();
  await store.settled();
  return { state, loss, ran: i - begun, resumed: point !== null, damaged, ...usedTarget(chosen) };
}
