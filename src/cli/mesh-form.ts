/**
 * @file `bench --mesh auto`, and forms that are spelled out: the program of one device, and the choice. Rank 0 plans and chooses, with rates
 * that all ranks measured together, and tells the others.
 */
import { availableParallelism } from "node:os";
import { compile } from "../api/compile.ts";
import { currentHost } from "../api/host.ts";
import { communicator } from "../node/mpi/communicator.ts";
import { launched } from "../node/mpi/launched.ts";
import { measuredRates } from "../node/mpi/rates.ts";
import type { OptimizerState } from "../optim/optimizer.ts";
import type { FormFigures } from "../parallel/choose.ts";
import type { ParallelState } from "../parallel/data-parallel.ts";
import { type FormSettings, formOf, formSettings, searchForms } from "../parallel/forms.ts";
import { chooseTarget } from "../runtime/choose-target.ts";
import type { CostModel } from "../target/work.ts";
import type { Tensor } from "../trace/tensor.ts";
import type { Tree } from "../trace/tree.ts";
import { type Arguments, type Io, sizeOf, usageError } from "./command.ts";
import { AUTO, formArguments, rateOf } from "./form-options.ts";
import { machineModel } from "./machine.ts";
import { beginMpi, type MeshProgram, type MpiFigures, requireStarted, rowsOf } from "./mesh.ts";
import { allParameters, meshModel, ownParts, partsOf } from "./mesh-model.ts";
import type { AnyProgram } from "./programs/built-in.ts";

/** The rates of native code on this machine, of exchanges, and of cores that are shared. */
export function formCosts(args: Arguments, io: Io, devices: number): CostModel {
  const target = currentHost().targets.native ? "native" : "wasm";
  const { description } = chooseTarget(currentHost(), target, { isPlanned: true }).target;
  const { costs } = machineModel(io.err, description.rates);
  const processes = devices === 1 ? null : communicator("bench --mesh");
  const [network, latency] = [rateOf(args, "network"), rateOf(args, "latency")];
  const measured = processes && (network === undefined || latency === undefined) ? measuredRates(processes) : null;
  const near = processes?.countNear() ?? 1;
  const own = withNetwork(costs, { ...measured, ...given(network, latency) }, coresOf(args) / near);
  return processes ? (JSON.parse(processes.told(JSON.stringify(own))) as CostModel) : own;
}

const given = (networkRate?: number, messageSeconds?: number): Partial<CostModel> => ({
  ...(networkRate === undefined ? {} : { networkRate }),
  ...(messageSeconds === undefined ? {} : { messageSeconds }),
});

/** Rates with those of exchanges, and with what a device has of a core. */
export const withNetwork = (costs: CostModel, network: Partial<CostModel>, coresPerDevice: number): CostModel => ({
  ...costs,
  ...network,
  ...(coresPerDevice < 1 ? { coresPerDevice } : {}),
});

/** Cores that devices share. */
export const coresOf = (args: Arguments): number => rateOf(args, "cores") ?? availableParallelism();

/** A form among others. */
interface ListedForm extends FormFigures {
  /** The options that ask for it. */
  readonly arguments: readonly string[];
}

/** What was chosen, and why. */
export interface ChoiceFigures {
  readonly form: string;
  readonly why: readonly string[];
  readonly costs: CostModel;
  /** Those that were planned: those that fit, the fastest first, then the others. */
  readonly forms: readonly ListedForm[];
}

export interface Choice {
  readonly settings: FormSettings;
  readonly figures: ChoiceFigures;
}

/** The fastest form of a program on so many devices, each with so many bytes. */
export function chooseOn(
  program: AnyProgram,
  devices: number,
  { costs, memory, io }: { readonly costs: CostModel; readonly memory: number | null; readonly io: Io },
): Choice {
  const model = meshModel(program, "--mesh auto");
  const all = formSettings("--mesh auto", model as never, { devices });
  let count = 0;
  const settingsOf = new Map<string, FormSettings>();
  const options = { costs, ...(memory === null ? {} : { memory }) };
  const chosen = searchForms(model, all, options, {
    name: "--mesh auto",
    planned: ({ form, figures }) => {
      count += 1;
      settingsOf.set(form.name, form);
      io.progress?.({
        doing: `planning forms of ${program.name}: ${figures.name}`,
        share: count / all.length,
        blocks: true,
      });
    },
  });
  const forms = chosen.forms.map((one) => ({
    ...one,
    arguments: formArguments(settingsOf.get(one.name) as FormSettings),
  }));
  const { mesh, zero, microbatches, schedule, chunks } = chosen.form;
  const settings = { mesh, zero, microbatches, schedule, chunks };
  return { settings, figures: { form: chosen.name, why: chosen.why.split("\n"), costs, forms } };
}

/** The same on the processes of a run: rank 0 chooses. */
function chooseTogether(program: AnyProgram, devices: number, how: Parameters<typeof chooseOn>[2]): Choice {
  const alone = (): Choice => chooseOn(program, devices, how);
  if (devices === 1) return alone();
  const processes = communicator("bench --mesh auto");
  return JSON.parse(processes.told(processes.rank === 0 ? JSON.stringify(alone()) : "")) as Choice;
}

/** A form that is spelled out must be one that there is. */
function requireForm(program: AnyProgram, form: FormSettings): void {
  const model = meshModel(program, "--mesh");
  const { tensor = 1, pipeline = 1 } = model.parts ?? {};
  const { axes } = form.mesh;
  const wrong = (summary: string, help: string): never => {
    throw usageError(`--mesh ${formArguments(form)[1]}: ${summary}`, help);
  };
  if (tensor % axes.tensor !== 0) {
    const none = `the layers of ${program.name} are not split over an axis tensor`;
    wrong(tensor === 1 ? none : `${tensor} parts in ${axes.tensor}`, `give a number that divides ${tensor}`);
  }
  if (pipeline % (axes.pipeline * form.chunks) !== 0) {
    const none = `the layers of ${program.name} are no stages of a pipeline`;
    const pieces = axes.pipeline * form.chunks;
    wrong(pipeline === 1 ? none : `${pipeline} blocks in ${pieces} pieces`, `give a number that divides ${pipeline}`);
  }
  const rows = (model.batch[0] as Tensor).shape[0] ?? 1;
  if (rows % (axes.data * form.microbatches) !== 0) {
    const parts = axes.data * form.microbatches;
    wrong(`a batch of ${rows} rows in ${parts} parts`, `give --mesh and --microbatches whose product divides ${rows}`);
  }
}

/** A program in a form, on the processes that were started. */
export interface FormRun {
  readonly program: MeshProgram;
  readonly rank: number;
  readonly devices: number;
  readonly form: FormSettings;
  /** By which plans and choices are made, the same on all processes. */
  readonly costs: CostModel;
  readonly auto: ChoiceFigures | null;
  readonly mpi: MpiFigures | null;
}

/** Begins MPI, and chooses the form where it is left to be chosen. */
export function formRun(program: AnyProgram, asked: FormSettings | typeof AUTO, args: Arguments, io: Io): FormRun {
  const { rank, size: devices } =
    asked === AUTO ? (launched() ?? { rank: 0, size: 1 }) : requireStarted(args.value("mesh") ?? "", asked.mesh.size);
  const mpi = beginMpi({ devices });
  const costs = formCosts(args, io, devices);
  const choice =
    asked === AUTO ? chooseTogether(program, devices, { costs, memory: sizeOf(args, "budget"), io }) : null;
  const form = choice?.settings ?? (asked as FormSettings);
  const own = formProgram(program, form, { rank, deterministic: args.has("deterministic") });
  return { program: own, rank, devices, form, costs, auto: choice?.figures ?? null, mpi };
}

/** The program of one device in a form. */
export function formProgram(
  program: AnyProgram,
  form: FormSettings,
  { rank, deterministic }: { readonly rank: number; readonly deterministic: boolean },
): MeshProgram {
  requireForm(program, form);
  const parts = partsOf(program, "--mesh");
  const { train } = formOf(meshModel(program, "--mesh"), form, { deterministic });
  const { axes } = form.mesh;
  const row = Math.floor(rank / (axes.pipeline * axes.tensor));
  const step = (state: object, ...batch: Tensor[]): readonly [object, Tensor] => {
    const done = train.step(state as ParallelState<Tree>, ...batch);
    return [done.state, done.loss];
  };
  const native = { target: "native" } as const;
  // its specs and named axes are those of the whole batch
  const { specs: _, axes: __, ...rest } = program;
  return {
    ...rest,
    step: { [program.name]: step }[program.name] as unknown as AnyProgram["step"],
    init() {
      const own = ownParts(parts, (program.init() as OptimizerState).params as object, form, rank);
      return compile(train.init as never, { ...native, name: "init" })(own as never) as object;
    },
    batch: () => program.batch().map((x) => rowsOf(x, row, axes.data, "parts")),
    whole(state) {
      const own = compile(train.params as never, { ...native, name: "params" })(state as never) as object;
      return { params: allParameters(parts, own, form) };
    },
  };
}
