/**
 * @file All forms in which a model's training step can be shared among a number of devices, and the fastest of them:
 *
 *   devices      = data · tensor · pipeline     every factorisation whose extents divide what the model can be cut into
 *   zero         0 to 3 where data > 1          up to 2 with a pipeline
 *   microbatches what divides a device's rows   with a pipeline at least as many as stages, where there are so many rows
 *   schedule     each of four with a pipeline   interleaved with two pieces a stage
 *
 * All are planned without a limit first. Of forms that differ in microbatches alone, those with more are planned until one fits and is slower
 * than one with fewer that fits. Recomputation only adds time: forms that do not fit by themselves are planned within the memory in the order
 * of their times, until the next one is slower without a limit than the fastest that fits.
 */
import { spec } from "../api/create.ts";
import { specsOf } from "../api/specs-of.ts";
import { formatBytes, parseBytes } from "../base/bytes.ts";
import { at } from "../base/invariant.ts";
import type { Optimizer } from "../optim/optimizer.ts";
import type { TargetDescription } from "../target/description.ts";
import { describe, fail, type OptionKinds, requireFunction, requireOptions } from "../trace/arguments.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree, unflatten } from "../trace/tree.ts";
import {
  type ChooseFormOptions,
  type ChosenForm,
  type FormFigures,
  fastest,
  formDescription,
  noneFits,
  type ParallelForm,
  type PlannedForm,
  plannedForm,
} from "./choose.ts";
import { type DataParallel, dataParallel, type LossWithGradients } from "./data-parallel.ts";
import { type Mesh, mesh, type Spec } from "./mesh.ts";
import { type PipelineScheduleName, SCHEDULES } from "./pipeline/schedule.ts";

/** The axes that are chosen among, the slowest first: neighbours along `tensor` send most. */
export const FORM_AXES = ["data", "pipeline", "tensor"] as const;

/** How a step is shared among devices. */
export interface FormSettings {
  /** With the axes `data`, `pipeline` and `tensor`, some of which may have one device. */
  readonly mesh: Mesh<{ readonly data: number; readonly pipeline: number; readonly tensor: number }>;
  /** How much of the state is cut along `data`. */
  readonly zero: 0 | 1 | 2 | 3;
  /** Equal parts of a device's batch, one after the other. */
  readonly microbatches: number;
  /** Null where there is one stage. */
  readonly schedule: PipelineScheduleName | null;
  /** Pieces of the model on each stage. */
  readonly chunks: number;
}

/** A model on a mesh: what one device of it has. */
export interface ModelOnMesh<P extends Tree = Tree, B extends readonly Tree[] = readonly Tree[]> {
  /** Of a device's rows; with several stages what `pipeline` gives for the microbatches and the schedule that are asked for. */
  readonly loss: ((params: P, ...batch: B) => Tensor) | LossWithGradients<P, B>;
  /** Parameters of one device, or their specs. */
  readonly params: P;
  /** The axes over which they vary, as `params` of `dataParallel`. Default: none. */
  readonly varies?: Spec;
}

/** A model in terms of a mesh. */
export interface MeshModel<P extends Tree = Tree, B extends readonly Tree[] = readonly Tree[]> {
  readonly optimizer: Optimizer;
  /** Of all devices together, or its specs: rows along the first axis, which are shared out along `data`. */
  readonly batch: B;
  /** Into how many equal parts the model can be cut along other axes: heads along `tensor`, layers along `pipeline`. Default: none. */
  readonly parts?: { readonly tensor?: number; readonly pipeline?: number };
  /** The model in a form. */
  on(form: FormSettings): ModelOnMesh<P, B>;
}

/** A form of a model: how it is shared out, and the step of one device. */
export interface MeshForm<P extends Tree = Tree, B extends readonly Tree[] = readonly Tree[]>
  extends FormSettings,
    ParallelForm {
  readonly train: DataParallel<P, B>;
}

/** What forms are enumerated for. */
export interface FormsOptions {
  readonly devices: number;
}

const range = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i + 1);
const divisors = (n: number): readonly number[] => range(n).filter((d) => n % d === 0);

/** Pieces of an interleaved stage. */
const PIECES = 2;

/** `data=2,tensor=2, ZeRO 1, 4 microbatches`. */
export function formText({ mesh: { axes }, zero, microbatches, schedule, chunks }: FormSettings): string {
  const extents = FORM_AXES.filter((axis) => axes[axis] > 1).map((axis) => `${axis}=${axes[axis]}`);
  const parts = [extents.join(",") || "one device"];
  if (axes.data > 1) parts.push(`ZeRO ${zero}`);
  if (microbatches > 1 || schedule) parts.push(`${microbatches} microbatch${microbatches === 1 ? "" : "es"}`);
  if (schedule) parts.push(chunks > 1 ? `${schedule} in ${chunks} pieces` : schedule);
  return parts.join(", ");
}

/** Rows of a batch: the first extent of all of its tensors. */
function rowsOf(batch: readonly Tree[]): number {
  const leaves = batch.flatMap((arg) => flatten(arg, "batch").leaves);
  const rows = leaves[0]?.shape[0];
  if (rows !== undefined && leaves.every((x) => x.shape[0] === rows)) return rows;
  const shapes = leaves.map((x) => `[${x.shape.join(",")}]`).join(", ");
  const help = "give tensors or specs with one first axis, along which devices have parts";
  return fail("ShapeMismatch", `parallelForms: the batch has no rows in common: ${shapes || "no tensors"}`, help);
}

/** A device's part of the rows, as specs. */
const partOf = (batch: readonly Tree[], parts: number): readonly Tree[] =>
  batch.map((arg) => {
    const { def, leaves } = flatten(arg, "batch");
    const own = leaves.map((x) => spec([(x.shape[0] ?? 0) / parts, ...x.shape.slice(1)], x.dtype));
    return unflatten(def, own) as Tree;
  });

/** Microbatches of so many rows: with a pipeline as many as stages, or if there are fewer rows one for each. */
function microbatchesOf(rows: number, stages: number): readonly number[] {
  const all = divisors(rows);
  if (stages === 1) return all;
  const enough = all.filter((count) => count >= stages);
  return enough.length > 0 ? enough : all.slice(-1);
}

type Pieces = Pick<FormSettings, "schedule" | "chunks">;

/** Schedules of a number of stages; null where there is one. */
function schedulesOf(stages: number, microbatches: number, layers: number): readonly Pieces[] {
  if (stages === 1) return [{ schedule: null, chunks: 1 }];
  return SCHEDULES.flatMap((schedule): readonly Pieces[] => {
    if (schedule !== "interleaved") return [{ schedule, chunks: 1 }];
    return microbatches % stages === 0 && layers % (PIECES * stages) === 0 ? [{ schedule, chunks: PIECES }] : [];
  });
}

/** The stages of ZeRO that there are. */
function stagesOfZero(data: number, pipeline: number, perElement: boolean): readonly FormSettings["zero"][] {
  if (data === 1 || !perElement) return [0];
  return pipeline > 1 ? [0, 1, 2] : [0, 1, 2, 3];
}

/** All settings, without what a model makes of them. */
function settingsOf({ optimizer, batch, parts = {} }: MeshModel, devices: number): readonly FormSettings[] {
  const rows = rowsOf(batch);
  const perElement = optimizer.perElement === true;
  // parts of a norm over all parameters are not that norm
  const [heads, layers] = perElement ? [parts.tensor ?? 1, parts.pipeline ?? 1] : [1, 1];
  return divisors(devices).flatMap((tensor) => {
    if (heads % tensor !== 0) return [];
    return divisors(devices / tensor).flatMap((stages) => {
      const data = devices / tensor / stages;
      if (layers % stages !== 0 || rows % data !== 0) return [];
      const on = mesh({ data, pipeline: stages, tensor });
      return microbatchesOf(rows / data, stages).flatMap((microbatches) =>
        schedulesOf(stages, microbatches, layers).flatMap((pieces) =>
          stagesOfZero(data, stages, perElement).map((zero) => ({ mesh: on, zero, microbatches, ...pieces })),
        ),
      );
    });
  });
}

/** A model in one form. @internal */
export function formOf<P extends Tree, B extends readonly Tree[]>(
  model: MeshModel<P, B>,
  settings: FormSettings,
  { deterministic = false }: { readonly deterministic?: boolean } = {},
): MeshForm<P, B> {
  const { mesh: on, zero, microbatches, schedule } = settings;
  const { loss, params, varies } = model.on(settings);
  const train = dataParallel<P, B>(loss, model.optimizer, {
    ...{ mesh: on, over: "data", zero, deterministic },
    // a pipeline has been told
    microbatches: schedule === null ? microbatches : 1,
    ...(varies === undefined ? {} : { params: varies }),
  });
  const args = [specsOf(train.init)(params), ...partOf(model.batch, on.axes.data)];
  return { ...settings, name: formText(settings), step: train.step as ParallelForm["step"], args, train };
}

function requireModel(name: string, model: MeshModel, { devices }: FormsOptions): void {
  const example = `${name}({ optimizer, batch, parts: { tensor: heads }, on: ({ mesh }) => ({ loss, params }) }, { devices: 4 })`;
  requireFunction(name, "on of the model", model?.on, example);
  if (!Number.isInteger(devices) || devices < 1) {
    fail("InvalidArgument", `${name}: devices is ${describe(devices)}`, "give a whole number of at least 1");
  }
  for (const [axis, count] of Object.entries(model.parts ?? {})) {
    if (!["tensor", "pipeline"].includes(axis)) {
      fail("InvalidArgument", `${name}: parts has ${axis}`, "a model can be cut along tensor and pipeline");
    }
    if (Number.isInteger(count) && count >= 1) continue;
    fail("InvalidArgument", `${name}: parts.${axis} is ${describe(count)}`, "give the number of heads, or of layers");
  }
}

/** The settings of all forms of a model. @internal */
export function formSettings(name: string, model: MeshModel, options: FormsOptions): readonly FormSettings[] {
  requireModel(name, model, options);
  const all = settingsOf(model, options.devices);
  if (all.length > 0) return all;
  const { tensor = 1, pipeline = 1 } = model.parts ?? {};
  const has = `${rowsOf(model.batch)} rows, ${tensor} parts along tensor and ${pipeline} along pipeline`;
  return fail(
    "InvalidArgument",
    `${name}: there is no form for ${options.devices} devices: the model has ${has}`,
    "give a batch with a multiple of rows, or another number of devices",
  );
}

/**
 * All forms in which the training step of a model can be shared among devices: each mesh over the axes along which it can be cut, stages of
 * ZeRO, microbatches, and schedules where there are stages. They are steps for `chooseForm`; nothing is planned.
 *
 * @example
 * import { random, type Tensor } from "tidemark";
 * import { adam } from "tidemark/optim";
 * import { parallelForms } from "tidemark/parallel";
 *
 * const model = {
 *   optimizer: adam(),
 *   batch: [random.normal(random.key(0), [8, 16])] as [Tensor],
 *   on: () => ({ loss: (w: Tensor, x: Tensor) => x.matmul(w).square().mean(), params: random.normal(random.key(1), [16, 16]) }),
 * };
 * console.log(parallelForms(model, { devices: 4 }).map(({ name }) => name)[3]); // data=4, ZeRO 3
 */
export function parallelForms<P extends Tree, B extends readonly Tree[]>(
  model: MeshModel<P, B>,
  options: FormsOptions,
): readonly MeshForm<P, B>[] {
  return formSettings("parallelForms", model as never, options).map((settings) => formOf(model, settings));
}

/** What devices there are, and what they have. */
export interface AutoFormOptions extends FormsOptions, ChooseFormOptions {}

const OPTIONS: OptionKinds<AutoFormOptions> = {
  ...{ devices: "a number", memory: "anything", network: "a number", latency: "a number" },
  ...{ coresPerDevice: "a number", costs: "anything" },
};

type Planned<P extends Tree, B extends readonly Tree[]> = PlannedForm<MeshForm<P, B>>;

type Found<P extends Tree, B extends readonly Tree[]> = Pick<Planned<P, B>, "form" | "figures">;

/** Forms that differ in microbatches alone, the fewest first. */
function families(all: readonly FormSettings[]): readonly (readonly FormSettings[])[] {
  const found = new Map<string, FormSettings[]>();
  for (const one of all) {
    const key = formText({ ...one, microbatches: 0 });
    found.set(key, [...(found.get(key) ?? []), one]);
  }
  return [...found.values()].map((some) => some.toSorted((a, b) => a.microbatches - b.microbatches));
}

/** `data=4, ZeRO 1, 4 to 64 microbatches`. */
function rangeText(family: readonly FormSettings[]): string {
  const [first, last] = [at(family, 0), at(family, family.length - 1)];
  const text = formText(last);
  return first === last
    ? text
    : text.replace(`${last.microbatches} m`, `${first.microbatches} to ${last.microbatches} m`);
}

/** What a search plans with. */
interface Search<P extends Tree, B extends readonly Tree[]> {
  readonly model: MeshModel<P, B>;
  readonly memoryBytes: number | null;
  readonly description: TargetDescription;
  readonly planned: ((one: Planned<P, B>) => void) | undefined;
}

/** A form that is larger than the memory without recomputing. */
interface Larger extends Pick<FormFigures, "predictedMs" | "arenaBytes"> {
  readonly settings: FormSettings;
}

/** Forms whose state alone is larger than the memory. */
interface TooLarge {
  readonly family: readonly FormSettings[];
  readonly persistentBytes: number;
}

/** Every form without a limit: those that fit are done; of the others that is the least time that they take. */
function planWithoutLimit<P extends Tree, B extends readonly Tree[]>(
  { model, memoryBytes, description, planned }: Search<P, B>,
  all: readonly FormSettings[],
) {
  const memory = memoryBytes ?? Number.POSITIVE_INFINITY;
  const fitting: Found<P, B>[] = [];
  const larger: Larger[] = [];
  const tooLarge: TooLarge[] = [];
  const skipped: FormSettings[] = [];
  let best = Number.POSITIVE_INFINITY;
  for (const family of families(all)) {
    let least = Number.POSITIVE_INFINITY;
    for (const [i, settings] of family.entries()) {
      const one = plannedForm(formOf(model, settings), null, description);
      const { persistentBytes } = one;
      const { arenaBytes, predictedMs } = one.figures;
      // what stays between steps is the same for any number of microbatches
      if (persistentBytes > memory) {
        tooLarge.push({ family: family.slice(i), persistentBytes });
        break;
      }
      const fits = arenaBytes <= memory;
      if (fits) {
        planned?.(one);
        fitting.push({ form: one.form, figures: one.figures });
        best = Math.min(best, predictedMs);
      } else larger.push({ settings, arenaBytes, predictedMs });
      // more microbatches take longer from here on
      if (predictedMs >= least && (fits || predictedMs >= best)) {
        skipped.push(...family.slice(i + 1));
        break;
      }
      least = Math.min(least, predictedMs);
    }
  }
  return { fitting, larger: larger.toSorted((x, y) => x.predictedMs - y.predictedMs), tooLarge, skipped };
}

/** Plans forms of one model, which are told `planned` one by one. @internal */
export function searchForms<P extends Tree, B extends readonly Tree[]>(
  model: MeshModel<P, B>,
  all: readonly FormSettings[],
  options: ChooseFormOptions,
  { name, planned }: { readonly name: string; readonly planned?: (one: Planned<P, B>) => void },
): ChosenForm<MeshForm<P, B>> {
  const memoryBytes = options.memory === undefined ? null : parseBytes(options.memory);
  const search = { model, memoryBytes, description: formDescription(options), planned };
  const { fitting, larger, tooLarge, skipped } = planWithoutLimit(search, all);
  const found = [...fitting];
  let best = Math.min(...fitting.map(({ figures }) => figures.predictedMs));
  const late: Larger[] = [];
  for (const one of larger) {
    if (one.predictedMs >= best) {
      late.push(one);
      continue;
    }
    const within = plannedForm(formOf(model, one.settings), memoryBytes, search.description);
    planned?.(within);
    found.push({ form: within.form, figures: within.figures });
    if (within.figures.fits) best = Math.min(best, within.figures.predictedMs);
  }
  if (found.length === 0) {
    const stays = formatBytes(Math.min(...tooLarge.map(({ persistentBytes }) => persistentBytes)));
    throw noneFits(name, `${stays} for what stays between steps alone`, memoryBytes);
  }
  const chosen = fastest(name, found, memoryBytes);
  const lines = [
    ...tooLarge.map(
      ({ family, persistentBytes }) =>
        `${rangeText(family)} does not fit: ${formatBytes(persistentBytes)} stay between steps`,
    ),
    ...late.map(({ settings, arenaBytes, predictedMs }) => {
      const ratio = (predictedMs / chosen.predictedMs).toFixed(2);
      return `${formText(settings)}: ${ratio} × the time without a limit, ${formatBytes(arenaBytes)}, and not less within it`;
    }),
    ...families(skipped).map((family) => `${rangeText(family)}: not planned, fewer are faster`),
  ];
  return { ...chosen, why: [chosen.why, ...lines].join("\n") };
}

/**
 * The fastest form of a model on a number of devices that fits the memory of each: all forms are enumerated (`parallelForms`), the step of
 * one device is planned in each, and the one with the least predicted time is taken, as `chooseForm` does it. `why` has a line for each form, or for several alike.
 * What cannot be the fastest is not planned within the memory: forms that take longer without a limit, and those with more microbatches than
 * others that fit and are faster. Processes that ask with equal rates make the same choice.
 *
 * @throws PlanInfeasible where no form fits; InvalidArgument for options that are none, and where devices cannot share the model
 *
 * @memory Nothing is allocated for the programs: parameters and batch may be specs.
 *
 * @example
 * import { random, type Tensor } from "tidemark";
 * import { sgd } from "tidemark/optim";
 * import { autoForm, parallelMlp } from "tidemark/parallel";
 *
 * const draw = (seed: number, shape: readonly number[]) => random.normal(random.key(seed), shape);
 * const over = "tensor";
 * const model = {
 *   optimizer: sgd({ lr: 0.1 }),
 *   batch: [draw(0, [64, 16])] as [Tensor],
 *   parts: { tensor: 32 }, // hidden elements
 *   on: ({ mesh }: { mesh: { axes: { tensor: number } } }) => ({
 *     loss: ({ up, down }: { up: Tensor; down: Tensor }, x: Tensor) =>
 *       parallelMlp(x, { up: { w: up }, down: { w: down } }, { over }).square().mean(),
 *     params: { up: draw(1, [16, 32 / mesh.axes.tensor]), down: draw(2, [32 / mesh.axes.tensor, 16]) },
 *     varies: over,
 *   }),
 * };
 * const { form, why } = autoForm(model, { devices: 2, memory: "1MiB", network: 1e9, latency: 1e-5 });
 * console.log(form.mesh.size, why.split("\n").length > 1); // → 2 true
 */
export function autoForm<P extends Tree, B extends readonly Tree[]>(
  model: MeshModel<P, B>,
  options: AutoFormOptions,
): ChosenForm<MeshForm<P, B>> {
  requireOptions("autoForm", options, OPTIONS);
  const { devices, ...rest } = options;
  const all = formSettings("autoForm", model as never, { devices });
  return searchForms(model, all, rest, { name: "autoForm" });
}
