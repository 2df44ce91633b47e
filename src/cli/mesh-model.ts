/**
 * @file A program in terms of a mesh, for forms that are chosen (parallel/forms.ts): its loss and the parameters of one device, whole, in
 * parts along `tensor`, and as stages along `pipeline`. Of b blocks on p stages of v pieces, piece c of stage i has b / pv of them, those
 * from (c·p + i) · b / pv on.
 */
import { compile } from "../api/compile.ts";
import { reshape, slice } from "../api/shape.ts";
import { specsOf } from "../api/specs-of.ts";
import { at } from "../base/invariant.ts";
import { allGather } from "../parallel/collectives.ts";
import type { FormSettings, MeshModel, ModelOnMesh } from "../parallel/forms.ts";
import { type Spec, withAxes } from "../parallel/mesh.ts";
import { pipeline } from "../parallel/pipeline/pipeline.ts";
import { shard } from "../parallel/shard.ts";
import type { AnyFunction } from "../trace/function.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import { usageError } from "./command.ts";
import { gatheredParameters, ownParameters, parameterSpec } from "./mesh-tensor.ts";
import type { AnyProgram } from "./programs/built-in.ts";
import type { BlockForm, ModelParts, TensorAxis } from "./programs/program.ts";
import { argumentsOf } from "./target-settings.ts";

type Parts = ModelParts<object>;
type Staged = { readonly shared: object; readonly stages: readonly (readonly object[])[] };

const [TENSOR, PIPELINE] = ["tensor", "pipeline"] as const;

/** What a step is made of; `option` is what needs it. */
export function partsOf({ name, model }: AnyProgram, option: string): Parts {
  if (model) return model as unknown as Parts;
  throw usageError(
    `bench: ${name} is a step as a whole, and ${option} needs its loss and its optimizer`,
    "take a built-in program, or export program.model = { loss, optimizer } as well",
  );
}

/** Where a device is along the axes of a form: the last axis is the fastest. */
function placeOf({ mesh: { axes } }: FormSettings, rank: number): { readonly stage: number; readonly part: number } {
  return { stage: Math.floor(rank / axes.tensor) % axes.pipeline, part: rank % axes.tensor };
}

const axisOf = ({ mesh: { axes } }: FormSettings): TensorAxis | null =>
  axes.tensor > 1 ? { over: TENSOR, parts: axes.tensor } : null;

/** Blocks that follow one another, one group for each piece of each stage. */
function groupsOf<T>(all: readonly T[], { mesh: { axes }, chunks }: FormSettings): readonly (readonly T[])[] {
  const each = all.length / (axes.pipeline * chunks);
  return Array.from({ length: axes.pipeline * chunks }, (_, k) => all.slice(k * each, (k + 1) * each));
}

/** The parameters of a device. */
export function ownParts(parts: Parts, params: object, form: FormSettings, rank: number): object {
  const { stage, part } = placeOf(form, rank);
  const axis = axisOf(form);
  const own = axis ? ownParameters(params, parts.tensor?.cuts ?? {}, axis.parts, part) : params;
  const stages = form.mesh.axes.pipeline;
  if (stages === 1 || !parts.blocks) return own;
  const { shared, blocks } = parts.blocks.split(own);
  const groups = groupsOf(blocks, form);
  return {
    shared,
    stages: Array.from({ length: form.chunks }, (_, c) => at(groups, c * stages + stage)),
  } satisfies Staged;
}

/** The axes over which they vary. */
function variesOf({ tensor, blocks }: Parts, own: object, form: FormSettings): Spec {
  const axis = axisOf(form);
  const spec = (params: object): Spec => (axis && tensor ? parameterSpec(params, tensor.cuts, axis) : []);
  if (form.mesh.axes.pipeline === 1 || !blocks) return spec(own);
  const { shared, stages } = own as Staged;
  return { shared: spec(shared), stages: withAxes(spec(stages), PIPELINE) };
}

/** The model as stages of blocks. */
function staged(blocks: BlockForm<object>, form: FormSettings) {
  const { microbatches, schedule, chunks } = form;
  const { first, block, last } = blocks.functions(axisOf(form));
  const model = {
    first: (shared: Tree, ...batch: Tree[]) => first(shared as object, ...(batch as Tensor[])),
    stage: (own: Tree, x: Tensor) => (own as unknown as readonly object[]).reduce<Tensor>((h, b) => block(b, h), x),
    last: (shared: Tree, y: Tensor, ...batch: Tree[]) => last(shared as object, y, ...(batch as Tensor[])),
  };
  return pipeline(model, { over: PIPELINE, microbatches, ...(schedule ? { schedule } : {}), chunks });
}

/** The program's model, of which all devices together have the batch, and in which forms it can be. */
export function meshModel(program: AnyProgram, option: string): MeshModel<Tree, readonly Tree[]> {
  const parts = partsOf(program, option);
  const [state, ...batch] = argumentsOf(program) as [{ readonly params: object }, ...Tensor[]];
  return {
    optimizer: parts.optimizer,
    batch,
    parts: {
      ...(parts.tensor ? { tensor: parts.tensor.most } : {}),
      ...(parts.blocks ? { pipeline: parts.blocks.count } : {}),
    },
    on(form): ModelOnMesh<Tree, readonly Tree[]> {
      const params = specsOf((all: Tree) => ownParts(parts, all as object, form, 0) as Tree)(state.params as Tree);
      const axis = axisOf(form);
      const whole = axis && parts.tensor ? parts.tensor.loss(axis) : parts.loss.bind(parts);
      const hasStages = form.mesh.axes.pipeline > 1;
      const loss = hasStages && parts.blocks ? staged(parts.blocks, form) : whole;
      return { loss: loss as never, params, varies: variesOf(parts, params as object, form) };
    },
  };
}

/** All blocks from those of each stage, inside of `shard`. */
function gatheredBlocks(stages: Staged["stages"], form: FormSettings): readonly object[] {
  const count = form.mesh.axes.pipeline;
  const { def, leaves } = flatten(stages, "stages");
  const all = leaves.map((x) => allGather(reshape(x, [1, ...x.shape]), { over: PIPELINE, axis: 0, invariant: true }));
  const of = (stage: number): Staged["stages"] =>
    unflatten(
      def,
      all.map((x) => slice(x, [stage])),
    ) as unknown as Staged["stages"];
  return Array.from({ length: count * form.chunks }, (_, k) => at(of(k % count), Math.floor(k / count))).flat();
}

/** The function of one device that gives all parameters. */
export function gatheredAll(parts: Parts, own: object, form: FormSettings): AnyFunction {
  const { mesh } = form;
  const axis = axisOf(form);
  const gathered = (given: object): object => {
    const whole = axis ? gatheredParameters(given, parts.tensor?.cuts ?? {}, axis) : given;
    if (mesh.axes.pipeline === 1 || !parts.blocks) return whole;
    const { shared, stages } = whole as Staged;
    return parts.blocks.join(shared, gatheredBlocks(stages, form));
  };
  return shard(gathered as never, { mesh, in: [variesOf(parts, own, form)], out: [] }) as AnyFunction;
}

/** All parameters, on every device, for the hash of a state. */
export const allParameters = (parts: Parts, own: object, form: FormSettings): object =>
  compile(gatheredAll(parts, own, form) as never, { target: "native", name: "whole" })(own as never) as object;
