/**
 * @file `bench --mesh data=4`: a built-in program on the processes that `mpirun` started. Each has its rows of the batch and all
 * parameters; gradients are summed over all. One process with as many microbatches adds up the same sums one after the other:
 *
 *   4 processes       g = all_reduce(g of its rows) · 1/4
 *   4 microbatches    g = (((g0 + g1) + g2) + g3) · 1/4
 *
 * With `--deterministic` the first sum has the order of the second, and both have the same bits. With `tensor=2` devices that differ along
 * that axis have the same rows, and parts of the weights (mesh-tensor.ts).
 */
import { add, mul } from "../api/elementwise.ts";
import { valueAndGrad } from "../api/grad.ts";
import { slice } from "../api/shape.ts";
import { formatBytes } from "../base/bytes.ts";
import { counted, grouped, TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type NcclFigures, ncclFigures } from "../node/cuda/nccl-groups.ts";
import { communicator } from "../node/mpi/communicator.ts";
import { type Launched, launched } from "../node/mpi/launched.ts";
import type { OptimizerState } from "../optim/optimizer.ts";
import { allReduce, vary } from "../parallel/collectives.ts";
import { type Mesh, mesh as makeMesh, type Spec } from "../parallel/mesh.ts";
import { shard } from "../parallel/shard.ts";
import type { Plan } from "../plan/problem.ts";
import { reportPlan } from "../plan/report.ts";
import type { Tensor } from "../trace/tensor.ts";
import { flatten, unflatten } from "../trace/tree.ts";
import { type Arguments, integerOption, type OptionSpec, usageError } from "./command.ts";
import { FORM_OPTIONS } from "./form-options.ts";
import { residentBytes } from "./memory.ts";
import { partsOf } from "./mesh-model.ts";
import { ownParameters, parameterSpec, wholeParameters } from "./mesh-tensor.ts";
import type { AnyProgram } from "./programs/built-in.ts";

export const MESH_OPTIONS = {
  mesh: {
    value: "AXES",
    help: "train on the processes that mpirun started: data=4 (each has a quarter of the batch), data=2,tensor=2 (and half of the weights of gpt), pipeline=4, or auto: the fastest within --budget",
  },
  ...FORM_OPTIONS,
  deterministic: { help: "with --mesh: sums in the order of the ranks, whatever the library does" },
  microbatches: {
    value: "N",
    help: "compute the gradient of a step from N equal parts of the batch, one after the other",
  },
} as const satisfies Record<string, OptionSpec>;

/** The axes that programs can be split over: their batch, and the weights of those that have a form for it. */
const AXES = ["data", "tensor"];

export interface MeshAxis {
  readonly name: string;
  readonly extent: number;
  readonly index: number;
}

export interface MeshSettings {
  /** As it was given; null: one process. */
  readonly mesh: string | null;
  readonly devices: number;
  /** Of the axes: with their extents, and where this process is along them. */
  readonly axes: readonly MeshAxis[];
  readonly rank: number;
  readonly microbatches: number;
  readonly isDeterministic: boolean;
}

const batchInstead = (axes: readonly (readonly [string, number])[]): string =>
  `split the batch instead: --mesh data=${axes.reduce((n, [, extent]) => n * extent, 1)}`;

function axesOf(mesh: string): readonly (readonly [name: string, extent: number])[] {
  const axes = mesh.split(",").map((part): readonly [string, number] => {
    const [name = "", extent = ""] = part.split("=");
    if (name === "" || !/^[1-9][0-9]*$/.test(extent)) {
      throw usageError(`--mesh ${mesh}: ${part}`, "give axes with their extents: --mesh data=4");
    }
    return [name, Number(extent)];
  });
  const other = axes.find(([name, extent]) => !AXES.includes(name) && extent > 1);
  if (other) {
    throw usageError(`--mesh ${mesh}: programs are not split over an axis ${other[0]}`, batchInstead(axes));
  }
  return axes;
}

/** Where a rank is: the last axis is the fastest. */
function placesOf(axes: readonly (readonly [name: string, extent: number])[], rank: number): readonly MeshAxis[] {
  let rest = rank;
  return [...axes]
    .reverse()
    .map(([name, extent]) => {
      const index = rest % extent;
      rest = Math.floor(rest / extent);
      return { name, extent, index };
    })
    .reverse();
}

/** What the options say; null where they say nothing of devices and microbatches. */
export function meshSettings(args: Arguments): MeshSettings | null {
  const mesh = args.value("mesh") ?? null;
  const isDeterministic = args.has("deterministic");
  if (isDeterministic && mesh === null) throw usageError("--deterministic without --mesh", "give --mesh data=N");
  if (mesh === null && args.value("microbatches") === undefined) return null;
  const microbatches = integerOption(args, "microbatches", 1, { least: 1 });
  if (mesh === null) return { mesh, devices: 1, axes: [], rank: 0, microbatches, isDeterministic };
  const devices = axesOf(mesh).reduce((n, [, extent]) => n * extent, 1);
  const started = requireStarted(mesh, devices);
  const axes = placesOf(axesOf(mesh), started.rank);
  return { mesh, devices, axes, rank: started.rank, microbatches, isDeterministic };
}

/** The processes that were started; throws where they are not as many as devices. */
export function requireStarted(mesh: string, devices: number): Launched {
  const started = launched() ?? { rank: 0, size: 1 };
  if (started.size === devices) return started;
  const processes = started.size === 1 ? "one process" : `${started.size} processes`;
  const summary = `bench: the mesh ${mesh} has ${counted(devices, "device")}, and ${processes} ${started.size === 1 ? "was" : "were"} started`;
  throw new TidemarkError("UsageError", summary, { help: `mpirun -n ${devices} tidemark bench … --mesh ${mesh}` });
}

/** What MPI takes of a process. */
export interface MpiFigures {
  readonly version: string;
  /** Resident bytes that it took when it was begun; null if the system does not say. No plan has them. */
  readonly startBytes: number | null;
}

/** Begins MPI where there are several processes. */
export function beginMpi({ devices }: Pick<MeshSettings, "devices">): MpiFigures | null {
  if (devices === 1) return null;
  const before = residentBytes();
  const { version } = communicator("bench --mesh");
  const after = residentBytes();
  return { version, startBytes: before === null || after === null ? null : after - before };
}

/** The part of the figures of `bench` that is about devices. */
export interface MeshFigures {
  readonly axes: string | null;
  readonly devices: number;
  readonly deterministic: boolean;
  readonly microbatches: number;
  /** Collectives of a step outside of loops, how many of them are in flight beside other steps, and the bytes that they give. */
  readonly exchanges: number;
  readonly inFlight: number;
  readonly exchangedBytes: number;
  /** Of a form that is chosen or spelled out: processor time of a step on each rank, waiting for others included. */
  readonly rankCpuMs?: readonly number[];
  readonly mpi: MpiFigures | null;
  /** On CUDA devices: what NCCL took of each when it connected them. */
  readonly nccl: NcclFigures | null;
}

type Split = Pick<MeshSettings, "mesh" | "devices" | "isDeterministic" | "microbatches">;

export function meshFigures(settings: Split, mpi: MpiFigures | null, plan: Plan): MeshFigures {
  const { mesh, devices, isDeterministic, microbatches } = settings;
  const { exchanges } = reportPlan(plan);
  return {
    ...{ axes: mesh, devices, deterministic: isDeterministic, microbatches, mpi, nccl: ncclFigures() },
    exchanges: exchanges.length,
    inFlight: exchanges.filter(({ wait }) => wait !== null).length,
    exchangedBytes: exchanges.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/** The same as rows of a table. */
export function meshRows({ axes, exchanges, inFlight, exchangedBytes, mpi, nccl }: MeshFigures): readonly string[][] {
  if (axes === null) return [];
  const flying = `${counted(exchanges, "collective")}, ${grouped(inFlight)} in flight beside other steps; mesh ${axes}`;
  const rows = [["exchanged", formatBytes(exchangedBytes), flying]];
  if (mpi) rows.push(["mpi", mpi.startBytes === null ? "" : formatBytes(mpi.startBytes), `in no plan; ${mpi.version}`]);
  if (nccl) rows.push(["nccl", formatBytes(nccl.startBytes), `of the device, in no plan; ${nccl.version}`]);
  return rows;
}

/** Collectives run on native code; the default elsewhere is another target. */
export const onNative = (args: Arguments): Arguments => ({
  ...args,
  has: (name) => name === "target" || args.has(name),
  value: (name) => args.value(name) ?? (name === "target" ? "native" : undefined),
});

/** One of so many equal parts of the rows. */
export function rowsOf(x: Tensor, part: number, parts: number, what: string): Tensor {
  const rows = x.shape[0] ?? 1;
  if (rows % parts !== 0) {
    throw usageError(
      `bench: a batch of ${counted(rows, "row")} in ${parts} ${what}`,
      `give a number that divides ${rows}`,
    );
  }
  return slice(x, [[(part * rows) / parts, ((part + 1) * rows) / parts]]);
}

const mapped = (tree: object, to: (leaf: Tensor, i: number) => Tensor): object => {
  const { def, leaves } = flatten(tree, "params");
  return unflatten(def, leaves.map(to)) as object;
};

/** A program of one device, and the parameters of all for the hash of a state. */
export type MeshProgram = AnyProgram & { readonly whole?: (state: object) => object };

/** The weights of a program in parts; null where all devices have all of them. */
function inParts(program: AnyProgram, { axes, mesh }: MeshSettings) {
  const axis = axes.find(({ name, extent }) => name === "tensor" && extent > 1);
  if (!axis) return null;
  const form = partsOf(program, "--mesh").tensor;
  if (!form) {
    const all = axes.map(({ name, extent }) => [name, extent] as const);
    throw usageError(
      `--mesh ${mesh}: the layers of ${program.name} are not split over an axis tensor`,
      batchInstead(all),
    );
  }
  const { extent: parts, index, name: over } = axis;
  if (form.most % parts !== 0) {
    throw usageError(
      `--mesh ${mesh}: ${counted(form.most, "head")} in ${parts} parts`,
      `give a number that divides ${form.most}`,
    );
  }
  return { form, index, axis: { over, parts } };
}

/** The loss and its gradients, sums over the microbatches of a device. */
function summedOver(
  loss: (params: object, ...batch: readonly Tensor[]) => Tensor,
  microbatches: number,
): (params: object, batch: readonly Tensor[]) => readonly [Tensor, object] {
  const gradients = valueAndGrad((params: object, ...batch: readonly Tensor[]) => loss(params, ...batch));
  return (params, batch) => {
    const own = (i: number): readonly [Tensor, object] =>
      gradients(params, ...batch.map((x) => (microbatches === 1 ? x : rowsOf(x, i, microbatches, "microbatches")))) as [
        Tensor,
        object,
      ];
    let [value, grads] = own(0);
    for (let i = 1; i < microbatches; i++) {
      const [nextValue, next] = own(i);
      const { leaves } = flatten(next, "gradients");
      value = add(value, nextValue);
      grads = mapped(grads, (sum, k) => add(sum, at(leaves, k)));
    }
    return [value, grads];
  };
}

/** The program of one device, or with its gradient in parts. */
export function onMesh(program: AnyProgram, settings: MeshSettings): MeshProgram {
  const { mesh, devices, axes, microbatches, isDeterministic } = settings;
  const { loss: wholeLoss, optimizer } = partsOf(program, mesh === null ? "--microbatches" : "--mesh");
  const tensor = inParts(program, settings);
  const loss = tensor ? tensor.form.loss(tensor.axis) : wholeLoss;
  const over = axes.map(({ name }) => name).filter((name) => name !== tensor?.axis.over);
  const rows = axes.filter(({ name }) => over.includes(name));
  const [parts, part] = [
    rows.reduce((n, { extent }) => n * extent, 1),
    rows.reduce((n, { extent, index }) => n * extent + index, 0),
  ];
  const summed = summedOver(loss, microbatches);
  const share = 1 / (parts * microbatches);
  const step = (given: object, ...batch: Tensor[]): readonly [object, Tensor] => {
    const state = given as OptimizerState;
    const isAlone = devices === 1 || over.length === 0;
    const params = isAlone ? state.params : mapped(state.params as object, (w) => vary(w, { over }));
    const mean = (sum: Tensor): Tensor => mul(isAlone ? sum : allReduce(sum, { over }), share);
    const [value, grads] = summed(params as object, batch);
    return [optimizer.update(state, mapped(grads, mean) as never), mean(value)];
  };
  const devicesOf = (): Mesh => makeMesh(Object.fromEntries(axes.map(({ name, extent }) => [name, extent])));
  const sharded = (state: object, ...batch: Tensor[]): readonly [object, Tensor] => {
    const { params, slots } = state as OptimizerState;
    const spec = tensor ? parameterSpec(params as object, tensor.form.cuts, tensor.axis) : [];
    const ofState = { params: spec, slots: mappedValues(slots, () => spec), step: [] };
    const options = { mesh: devicesOf(), in: [ofState, ...batch.map(() => over)], out: [ofState, []] };
    const onDevice = shard(step as never, { ...options, deterministic: isDeterministic }) as typeof step;
    return onDevice(state, ...batch);
  };
  const ownState = (): object => {
    const state = program.init() as OptimizerState;
    if (!tensor) return state;
    const params = ownParameters(state.params as object, tensor.form.cuts, tensor.axis.parts, tensor.index);
    return optimizer.init(params as never);
  };
  // its specs and named axes are those of the whole batch
  const { specs: _, axes: __, ...rest } = program;
  return {
    ...rest,
    step: {
      [program.name]: (...args: [object, ...Tensor[]]) => (devices === 1 ? step(...args) : sharded(...args)),
    }[program.name] as unknown as AnyProgram["step"],
    init: ownState,
    batch: () => program.batch().map((x) => (devices === 1 ? x : rowsOf(x, part, parts, "parts"))),
    ...(tensor && {
      whole: (state: object) => ({
        params: wholeParameters((state as OptimizerState).params as object, tensor.form.cuts, tensor.axis, devicesOf()),
      }),
    }),
  };
}

const mappedValues = (of: object, to: () => Spec): Spec =>
  Object.fromEntries(Object.keys(of).map((key) => [key, to()]));
