/**
 * @file One device's training step in a form, planned by this library's planner as it would run there: any loss, on any mesh that the program
 * can be on. Nothing runs, and no other device has to be here.
 */
import { extname } from "node:path";
import { spec } from "../api/create.ts";
import { currentHost } from "../api/host.ts";
import { byteLength } from "../ir/type.ts";
import type { FormFigures, PlannedForm } from "../parallel/choose.ts";
import type { FormSettings, MeshForm, MeshModel } from "../parallel/forms.ts";
import type { Plan } from "../plan/problem.ts";
import { reportPlan } from "../plan/report.ts";
import { chooseTarget } from "../runtime/choose-target.ts";
import type { CostModel } from "../target/work.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, type Tree } from "../trace/tree.ts";
import { type Arguments, type Io, integerOption, usageError } from "./command.ts";
import { type FitSource, fitSource, requireOneBatch } from "./fit-source.ts";
import { rateOf } from "./form-options.ts";
import { type Loaded, loadProgram } from "./load.ts";
import { machineModel } from "./machine.ts";
import { withNetwork } from "./mesh-form.ts";
import { meshModel } from "./mesh-model.ts";
import { sizesOf } from "./model-program.ts";
import type { AnyProgram } from "./programs/built-in.ts";

export type Model = MeshModel<Tree, readonly Tree[]>;

export interface PlannedStep extends FormFigures {
  readonly settings: FormSettings;
  /** What is live at the tightest step, by kind; `rest` is what the placement adds. */
  readonly perDeviceBytes: Readonly<Record<string, number>>;
}

export function plannedStep({ form, figures, plan }: PlannedForm<MeshForm<Tree, readonly Tree[]>>): PlannedStep {
  const [state] = form.args as readonly [{ readonly params: unknown; readonly slots: unknown }];
  return { ...figures, settings: form, perDeviceBytes: bytesByKind(plan, state) };
}

/** The state is told apart by what it is for; everything else as the planner does. */
function bytesByKind(plan: Plan, state: { readonly params: unknown; readonly slots: unknown }): Record<string, number> {
  const bytesOf = (tree: unknown): number =>
    flatten(tree as never, "state").leaves.reduce((sum, x) => sum + byteLength(x), 0);
  const kinds = reportPlan(plan).kinds.filter(({ bytesAtPeak }) => bytesAtPeak > 0);
  const atPeak = Object.fromEntries(kinds.map(({ kind, bytesAtPeak }) => [kind, bytesAtPeak]));
  const { persistent = 0, ...others } = atPeak;
  const [parameters, optimizer] = [bytesOf(state.params), bytesOf(state.slots)];
  const named = { parameters, optimizer, constants: persistent - parameters - optimizer, ...others };
  const rest = plan.height - Object.values(named).reduce((sum, bytes) => sum + bytes, 0);
  return Object.fromEntries(Object.entries({ ...named, rest }).filter(([, bytes]) => bytes > 0));
}

function programOf(loaded: Loaded): AnyProgram {
  if (loaded.kind === "training" && loaded.program.model !== undefined) return loaded.program;
  throw usageError(
    `scale: ${loaded.name} is a step as a whole, and it takes its loss and its optimizer`,
    "export program.model = { loss, optimizer } as well, or give a config.json, .pt2 or .onnx",
  );
}

const resized = (x: Tensor, rows: number): Tensor => spec([rows, ...x.shape.slice(1)], x.dtype);

/** A file, whose program is recorded for the rows that a device has at a time. */
function exportedModel(source: FitSource, rows: number | undefined): Model {
  const at = (batch: number | undefined): Model => meshModel(programOf(source.at(batch).loaded), "scale");
  const model = at(rows);
  const all = rows ?? (model.batch[0] as Tensor | undefined)?.shape[0] ?? 1;
  return {
    ...model,
    on: (form) => at(all / (form.mesh.axes.data * form.microbatches)).on(form),
  };
}

/** The model of a program or a file, with as many rows over all devices as are asked for. */
export async function scaledModel(
  args: Arguments,
  devices: number,
): Promise<{ readonly name: string; readonly model: Model }> {
  const word = args.positionals[0] as string;
  const settings = { optimizer: "adamw", sizes: sizesOf(args), floatBytes: undefined, dropout: false } as const;
  const source = await fitSource(word, settings);
  requireOneBatch(args, source, settings);
  const rows = args.has("batch") ? integerOption(args, "batch", devices, { least: 1 }) : undefined;
  const isFile = [".pt2", ".onnx"].includes(extname(word).toLowerCase());
  if (isFile) return { name: source.name, model: exportedModel(source, rows) };
  const model = meshModel(programOf(await loadProgram(word)), "scale");
  if (rows === undefined) return { name: source.name, model };
  return {
    name: source.name,
    model: { ...model, batch: (model.batch as readonly Tensor[]).map((x) => resized(x, rows)) },
  };
}

/** Rates of native code here, with those that are given. */
export function scaleCosts(args: Arguments, io: Io, devices: number): CostModel {
  const { description } = chooseTarget(currentHost(), "native", { isPlanned: true }).target;
  const { costs } = machineModel(io.err, description.rates);
  const [networkRate, messageSeconds] = [rateOf(args, "network"), rateOf(args, "latency")];
  const network = {
    ...(networkRate === undefined ? {} : { networkRate }),
    ...(messageSeconds === undefined ? {} : { messageSeconds }),
    ...(args.has("flops") ? { productRate: rateOf(args, "flops") ?? costs.productRate } : {}),
  };
  return withNetwork(costs, network, (rateOf(args, "cores") ?? devices) / devices);
}
