/** @file Models whose stages are on different devices, of which each works on a microbatch while the others work on others. */
import { mul } from "../../api/elementwise.ts";
import { dynamicSlice } from "../../api/indexing.ts";
import { reshape } from "../../api/shape.ts";
import { counted } from "../../base/errors.ts";
import { at } from "../../base/invariant.ts";
import { type TensorType, tensorType, typeText } from "../../ir/type.ts";
import { type DType, isFloat } from "../../kernel/dtype.ts";
import { fail, type OptionKinds, requireFunction, requireOptions } from "../../trace/arguments.ts";
import { Tensor, tensorTypeOf } from "../../trace/tensor.ts";
import { type Flat, flatten, type Tree, treeKey, unflatten } from "../../trace/tree.ts";
import { sameTogether } from "../buckets.ts";
import { allReduce, vary } from "../collectives.ts";
import { currentMesh } from "../current.ts";
import type { LossWithGradients } from "../data-parallel.ts";
import { requireSummable } from "../loss-type.ts";
import { axesOf, type Over } from "../mesh.ts";
import { devicesAlong } from "../shards.ts";
import { type CutStage, cutStage } from "./cut.ts";
import { pipelineRows } from "./rows.ts";
import { runSlots } from "./run.ts";
import { type PipelineScheduleName, pipelineSchedule } from "./schedule.ts";
import { tableTensor } from "./table.ts";

/** A model in parts: what is in front of the stages, one of equal stages, and what is behind them. */
export interface PipelineModel<P extends Tree, S extends Tree, B extends readonly Tree[]> {
  /** The operand of the first stage, an embedding for example. */
  first(shared: P, ...batch: B): Tensor;
  /** One stage: takes and gives a tensor of the same type. */
  stage(own: S, x: Tensor): Tensor;
  /** The loss behind the last stage, a mean over the rows of the batch. */
  last(shared: P, y: Tensor, ...batch: B): Tensor;
}

/** Parameters of a pipeline, as one device has them. */
export interface PipelineParams<P extends Tree, S extends Tree> {
  /** Of `first` and `last`: equal on all stages. */
  readonly shared: P;
  /** Of the device's own stages: one, or with `chunks` as many. */
  readonly stages: readonly S[];
}

/** How the stages work together. */
export interface PipelineOptions {
  /** The axis of the mesh along which devices have different stages. */
  readonly over: Over;
  /** Equal parts of a device's batch, along the first axis. */
  readonly microbatches: number;
  /** Default: `"1f1b"`. */
  readonly schedule?: PipelineScheduleName;
  /** With `"interleaved"`: stages of each device, of which number c on device i is stage c·p + i of the model. */
  readonly chunks?: number;
}

const OPTIONS: OptionKinds<PipelineOptions> = {
  over: "anything",
  microbatches: "a number",
  schedule: "a text",
  chunks: "a number",
};

type Tensors = readonly Tensor[];

const axesIn = (x: Tensor): readonly string[] => tensorTypeOf(x).varies?.over ?? [];
const union = (all: readonly (readonly string[])[]): readonly string[] => [...new Set(all.flat())];

/** Varies over these axes too. */
const varied = (x: Tensor, over: readonly string[]): Tensor => (over.length === 0 ? x : vary(x, { over }));

/** Sums over the axes over which a leaf did not vary before. */
function summed(grads: Tensors, leaves: Tensors, over: readonly string[]): Tensors {
  const missing = leaves.map((leaf) => over.filter((axis) => !axesIn(leaf).includes(axis)));
  const made = [...grads];
  for (const axes of new Map(missing.map((own) => [own.join(), own])).values()) {
    if (axes.length === 0) continue;
    const which = [...grads.keys()].filter((i) => missing[i]?.join() === axes.join());
    const sums = sameTogether(
      which.map((i) => at(grads, i)),
      BUCKET_BYTES,
      (x) => allReduce(x, { over: axes }),
    );
    for (const [n, i] of which.entries()) made[i] = at(sums, n);
  }
  return made;
}

const BUCKET_BYTES = 2 ** 22;

/** [n, …] → [microbatches, n / microbatches, …], and one of them. */
function microbatchesOf(batch: readonly Tree[], count: number): (k: Tensor) => readonly Tree[] {
  const stacks = batch.map((arg) => {
    const { def, leaves } = flatten(arg, "batch");
    const rows = leaves.map((x) => {
      const [n = 0, ...shape] = x.shape;
      if (x.rank > 0 && n % count === 0) return reshape(x, [count, n / count, ...shape]);
      const summary = `pipeline: a batch ${typeText(x)} in ${counted(count, "microbatch")}`;
      return fail("ShapeMismatch", summary, `make its first axis a multiple of ${count}`);
    });
    return { def, rows };
  });
  return (k) =>
    stacks.map(({ def, rows }) =>
      unflatten(
        def,
        rows.map((x) => {
          const shape = x.shape.slice(1);
          return reshape(dynamicSlice(x, [k, ...shape.map(() => 0)], [1, ...shape]), shape);
        }),
      ),
    ) as readonly Tree[];
}

/**
 * A model whose stages are on the devices of an axis of the mesh. Stages send results on and cotangents back; while one works on
 * a microbatch, the others work on others. All schedules add up the same gradients in the same order. What is given has `valueAndGrad`, for
 * use inside of `shard`, and is what `dataParallel` takes in place of a loss.
 *
 * @memory A stage holds what its backward pass reads for as many microbatches as are in flight on it: `inFlight`
 * of `pipelineSchedule`.
 *
 * @example
 * import { compile, random, type Tensor } from "tidemark";
 * import { sgd } from "tidemark/optim";
 * import { dataParallel, mesh, pipeline } from "tidemark/parallel";
 *
 * const model = {
 *   first: (shared: { out: Tensor }, x: Tensor) => x,
 *   stage: (w: Tensor, x: Tensor) => x.matmul(w).tanh(),
 *   last: ({ out }: { out: Tensor }, y: Tensor) => y.matmul(out).square().mean(),
 * };
 * const loss = pipeline(model, { over: "pipeline", microbatches: 4 });
 * const devices = mesh({ data: 1, pipeline: 1 });
 * const params = { shared: [], stages: "pipeline" };
 * const train = dataParallel(loss, sgd({ lr: 0.1 }), { mesh: devices, over: "data", params });
 * const [w, out] = [random.normal(random.key(0), [3, 3]), random.normal(random.key(1), [3, 2])];
 * const state = compile(train.init)({ shared: { out }, stages: [w] });
 * console.log(compile(train.step)(state, random.normal(random.key(2), [8, 3])).loss.shape); // []
 */
export function pipeline<P extends Tree, S extends Tree, B extends readonly Tree[]>(
  model: PipelineModel<P, S, B>,
  options: PipelineOptions,
): LossWithGradients<PipelineParams<P, S>, B> {
  const example = "pipeline({ first, stage, last }, { over, microbatches })";
  for (const name of ["first", "stage", "last"] as const) requireFunction("pipeline", name, model?.[name], example);
  requireOptions("pipeline", options, OPTIONS);
  return { valueAndGrad: (params, ...batch) => valueAndGrads(model, options, params, batch) };
}

/** Fails where a device's stages have other parameters than its first, or the same in another order. */
function requireAlike(own: readonly Flat[]): void {
  const keyOf = ({ def, leaves }: Flat): string =>
    `${treeKey(def)} ${leaves.map(({ dtype, shape }) => typeText(tensorType(dtype, shape))).join(", ")}`;
  const [first = "", ...others] = own.map(keyOf);
  const other = others.findIndex((key) => key !== first) + 1;
  if (other === 0) return;
  const summary = `pipeline: stages[${other}] has other parameters than stages[0]: ${others[other - 1]}, not ${first}`;
  fail(
    "InvalidTree",
    summary,
    "stages are equal: give all of them the same members, in the same order, of the same types",
  );
}

/** Fails where devices do not have what they need along the pipeline: stages of their own, and the same rows. */
function requireApart(axes: readonly string[], stages: Tensors, batch: Tensors): void {
  const over = axes.join(", ");
  if (stages.length > 0 && !stages.some((leaf) => axes.some((axis) => axesIn(leaf).includes(axis)))) {
    const help = `say that they differ: params: { shared: [], stages: ${JSON.stringify(axes[0])} }`;
    fail("VarianceMismatch", `pipeline: parameters of stages are equal on all devices along ${over}`, help);
  }
  const cut = batch.find((leaf) => axes.some((axis) => axesIn(leaf).includes(axis)));
  if (!cut) return;
  const summary = `pipeline: the batch ${typeText(tensorTypeOf(cut))} differs along ${over}, whose devices work on the same rows`;
  fail("VarianceMismatch", summary, "share it out along another axis of the mesh");
}

/** The element type of the loss; fails where that is no float, or there are several. */
function lossTypeOf(loss: unknown): DType {
  if (!(loss instanceof Tensor)) {
    const help = "return the loss, a mean over the rows of the batch";
    return fail("InvalidTree", "pipeline: last gives no tensor", help);
  }
  const summary = `pipeline: last gives a loss of the type ${typeText(tensorType(loss.dtype, loss.shape))}`;
  if (loss.rank > 0) return fail("ShapeMismatch", `${summary}, not a scalar`, "reduce it with mean()");
  if (!isFloat(loss.dtype)) return fail("NotDifferentiable", summary, 'cast it: loss.cast("f32")');
  requireSummable("pipeline", loss);
  return loss.dtype;
}

/** The type that goes from stage to stage: it varies over all that a stage makes it vary over. */
function cutOf(
  stage: (own: Tree, x: Tensor) => Tensor,
  own: Tree,
  given: Tensor,
  apart: boolean,
): { readonly cut: CutStage; readonly x: TensorType } {
  for (let x = given; ; ) {
    const next = varied(
      x,
      axesIn(stage(own, x)).filter((axis) => !axesIn(x).includes(axis)),
    );
    if (next === x) return { cut: cutStage(stage, own, x, apart), x: tensorTypeOf(x) };
    x = next;
  }
}

function valueAndGrads<P extends Tree, S extends Tree, B extends readonly Tree[]>(
  model: PipelineModel<P, S, B>,
  { over, microbatches, schedule: name = "1f1b", chunks = 1 }: PipelineOptions,
  params: PipelineParams<P, S>,
  batch: B,
): [Tensor, PipelineParams<P, S>] {
  const axes = axesOf("pipeline", over, currentMesh("pipeline").mesh);
  const stages = devicesAlong(over);
  const schedule = pipelineSchedule(name, { stages, microbatches, chunks });
  if (!Array.isArray(params?.stages) || params.stages.length !== chunks) {
    const given = counted(params?.stages?.length ?? 0, "stage");
    const summary = `pipeline: parameters of ${given} of a device, with ${counted(chunks, "chunk")}`;
    fail("InvalidTree", summary, `give { shared, stages: [${chunks === 1 ? "own" : "first, second, …"}] }`);
  }
  const given = { shared: flatten(params.shared, "shared"), own: params.stages.map((own) => flatten(own, "stages")) };
  requireAlike(given.own);
  const batchLeaves = batch.flatMap((arg) => flatten(arg, "batch").leaves);
  requireApart(
    axes,
    given.own.flatMap(({ leaves }) => leaves),
    batchLeaves,
  );
  const all = union([axes, ...batchLeaves.map(axesIn)]);
  const varying = (x: Tensor): Tensor =>
    varied(
      x,
      all.filter((axis) => !axesIn(x).includes(axis)),
    );
  const shared = { def: given.shared.def, leaves: given.shared.leaves.map(varying) };
  const own = given.own.map(({ leaves }) => leaves.map(varying));
  const batchAt = microbatchesOf(
    batch.map((arg) => {
      const { def, leaves } = flatten(arg, "batch");
      return unflatten(def, leaves.map(varying)) as Tree;
    }),
    microbatches,
  );

  const rows = pipelineRows(schedule);
  const table = varied(tableTensor(rows, stages), axes);
  const zero = reshape(dynamicSlice(table, [0, 0, 0], [1, 1, 1]), []);
  const first = (p: Tree, args: readonly Tree[]): Tensor => model.first(p as P, ...(args as unknown as B));
  const last = (p: Tree, y: Tensor, args: readonly Tree[]): Tensor => model.last(p as P, y, ...(args as unknown as B));
  const begun = first(unflatten(shared.def, shared.leaves) as Tree, batchAt(zero));
  if (!(begun instanceof Tensor))
    fail("InvalidTree", "pipeline: first gives no tensor", "return the operand of the first stage");
  const ownTree = unflatten(at(given.own, 0).def, at(own, 0)) as Tree;
  const stage = (p: Tree, x: Tensor): Tensor => model.stage(p as S, x);
  const { cut, x } = cutOf(stage, ownTree, varying(begun), name === "zero-bubble");
  const lossType = lossTypeOf(model.last(params.shared, begun, ...(batchAt(zero) as unknown as B)));
  const sums = runSlots({ over, stages, rows, cut, x, lossType, first, last, shared, own, batchAt }, table);

  const share = 1 / microbatches;
  const mean = (grads: Tensors, leaves: Tensors): Tensors => summed(grads, leaves, all).map((g) => mul(g, share));
  const grads = {
    shared: unflatten(given.shared.def, mean(sums.shared, given.shared.leaves)) as P,
    stages: given.own.map(({ def, leaves }, c) => unflatten(def, mean(at(sums.own, c), leaves)) as S),
  };
  return [mul(allReduce(sums.loss, { over }), share), grads];
}
