/**
 * @file A compiled program and its arguments: writes what is not there yet, runs, hands out results. Donated arguments
 * that are already in their slot are not touched; results that replace them stay in the arena.
 */
import { at, invariant } from "../base/invariant.ts";
import type { PlanningHost } from "../compiler/host.ts";
import type { PlanRequest } from "../compiler/request.ts";
import type { ChosenProgram } from "../compiler/stored.ts";
import { byteLength, type TensorType } from "../ir/type.ts";
import { paramsElsewhere } from "../plan/space.ts";
import { untouchedParams } from "../plan/untouched.ts";
import { Arena, type Tenant } from "../runtime/arena.ts";
import { runChecked } from "../runtime/check-nan.ts";
import type { Machine, Target } from "../runtime/device.ts";
import { type Elements, Executable } from "../runtime/executable.ts";
import { ResidentStorage } from "../runtime/resident.ts";
import { laterLocation } from "../trace/source-location.ts";
import type { TensorStorage } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";
import type { CompileRequest } from "./request.ts";
import type { TracedProgram } from "./traced-program.ts";

/** What a program runs on. */
export interface RunsOn {
  readonly target: Target;
  readonly host: PlanningHost;
  /** What it runs in, in turn with others; asked for when it is loaded. Default: an arena of its own. */
  readonly arena?: () => Arena;
}

/** What is loaded: `TracedProgram` without the trace. */
export type LoadableProgram = Pick<TracedProgram, "graph" | "donated" | "persistent" | "firstCapture">;

/** Addresses of a program's parameters and results. */
export interface ProgramPlaces {
  readonly params: readonly number[];
  readonly results: readonly number[];
  readonly arenaBytes: number;
  /** Parameters that stay in the machine's file, at addresses of it, and its bytes; default: none. */
  readonly inFile?: readonly number[];
  readonly fileBytes?: number;
  /** Parameters whose elements are still there after a run (plan/untouched.ts). */
  readonly untouched: readonly number[];
}

/** What a target has made of a program. */
export interface LoadedCode {
  readonly machine: Machine;
  /** Default: an arena of its own. */
  readonly arena: Arena | undefined;
  /** Where NaN is looked for. */
  readonly watched?: Executable | null;
}

/** A value of the program that goes in or comes out, and whose memory it is in. */
interface Place {
  readonly type: TensorType;
  readonly address: number;
  readonly arena: Arena;
}

/** Ready to run. What it was made from is not kept: graph and plan may take as much as a small arena. */
export class LoadedProgram {
  readonly arena: Arena;
  readonly #name: string;
  readonly #params: readonly Place[];
  readonly #results: readonly Place[];
  readonly #donated: ReadonlyMap<number, number>;
  readonly #replaces: ReadonlyMap<number, number>;
  /** What it leaves in the arena, and in the file beside it. */
  readonly #tenants: readonly (readonly [Arena, Tenant])[];
  readonly #firstCapture: number;
  readonly #machine: Machine;
  /** To look for NaN. */
  readonly #watched: Executable | null;
  /** What the last run was given, of parameters whose elements are still there. */
  readonly #given = new Map<number, WeakRef<TensorStorage> | null>();

  constructor(source: LoadableProgram, places: ProgramPlaces, { machine, arena, watched }: LoadedCode) {
    const { graph, donated, persistent, firstCapture } = source;
    this.#name = graph.name;
    this.#donated = donated;
    this.#replaces = new Map([...donated].flatMap(([param, result]) => (result >= 0 ? [[result, param]] : [])));
    this.#firstCapture = firstCapture;
    this.#machine = machine;
    this.#watched = watched ?? null;
    this.arena = arena ?? new Arena(machine.memory);
    const { inFile = [], fileBytes = 0 } = places;
    const file = inFile.length > 0 && machine.file ? this.arena.inFile(machine.file) : null;
    const elsewhere = new Set(inFile);
    this.#params = graph.params.map(({ type }, i): Place => {
      const own = elsewhere.has(i) ? file : this.arena;
      invariant(own, () => `parameter ${i} is in a file that is not there`);
      return { type, address: at(places.params, i), arena: own };
    });
    this.#results = graph.results.map(({ type }, i) => ({ type, address: at(places.results, i), arena: this.arena }));
    const slots = [...persistent].map((i) => at(this.#params, i));
    for (const param of places.untouched) if (param < firstCapture) this.#given.set(param, null);
    const tenantOf = (own: Arena, height: number): readonly [Arena, Tenant] => {
      const sizes = slots
        .filter((slot) => slot.arena === own)
        .map((slot) => [slot.address, byteLength(slot.type)] as const);
      // One without elements has the address of its neighbour.
      return [own, { slots: new Map(sizes.filter(([, bytes]) => bytes > 0)), height }];
    };
    this.#tenants = [tenantOf(this.arena, places.arenaBytes), ...(file ? [tenantOf(file, fileBytes)] : [])];
  }

  run(args: readonly Tensor[]): readonly Tensor[] {
    const storages = args.map(storageOf);
    const isNew = this.#tenants.map(([arena, tenant]) => !arena.enter(tenant)).includes(true);
    if (isNew) for (const param of this.#given.keys()) this.#given.set(param, null);
    this.#write(storages);
    if (this.#watched) runChecked(this.#watched);
    else this.#machine.run();
    return this.#outputs();
  }

  get moduleBytes(): number {
    return this.#machine.moduleBytes;
  }

  /** Of the file that its values are moved to; 0 where there is none. */
  get spillBytes(): number {
    return this.#machine.spillBytes?.() ?? 0;
  }

  get kernelFunctions(): number {
    return this.#machine.kernelFunctions;
  }

  /** Ends its threads. It cannot run again. */
  close(): void {
    this.#machine.close();
  }

  #write(storages: readonly TensorStorage[]): void {
    // What is already in its slot stays; everything else is read before any slot is overwritten. What is written once and
    // not computed yet is computed in its slot.
    const pending: { readonly param: number; readonly write: (into: Elements) => void }[] = [];
    storages.forEach((storage, i) => {
      const { address, arena } = at(this.#params, i);
      const isConstant = i >= this.#firstCapture;
      if (isConstant ? arena.hasConstant(address, storage) : this.#donated.has(i) && isAt(storage, arena, address))
        return;
      if (this.#isGivenAgain(storage, i)) return;
      pending.push({ param: i, write: this.#writerOf(storage, i) });
    });
    this.#consume(storages);
    this.arena.begin();
    for (const { param, write } of pending) {
      const { type, address, arena } = at(this.#params, param);
      // One without elements has the address of its neighbour.
      if (byteLength(type) === 0) continue;
      arena.vacate(address);
      const isLeft = this.#given.has(param);
      if (isLeft) this.#given.set(param, null);
      arena.write(type, address, write);
      if (isLeft) this.#given.set(param, new WeakRef(at(storages, param)));
      if (param >= this.#firstCapture) arena.putConstant(address, at(storages, param), byteLength(type));
    }
  }

  /** Whether a parameter's elements are there from the last run; elements of a tensor never change. */
  #isGivenAgain(storage: TensorStorage, param: number): boolean {
    return !storage.isConsumed && this.#given.get(param)?.deref() === storage;
  }

  /** What writes a parameter into its slot: other slots may have been overwritten by then, and donated tensors consumed. */
  #writerOf(storage: TensorStorage, param: number): (into: Elements) => void {
    const isConstant = param >= this.#firstCapture;
    const isResident = storage instanceof ResidentStorage;
    const isHere = isResident && this.#tenants.some(([arena]) => storage.isIn(arena));
    if (!isConstant && isResident && !isHere) return storage.writer();
    // Lazy elements that stay are computed where they stay; those that are given again and again have an array.
    if ((isConstant || this.#donated.has(param)) && storage.writeTo && !storage.isConsumed) {
      const own = storage.spare?.() ?? storage;
      return (into) => own.writeTo?.(into);
    }
    const data = isConstant ? this.arena.readConstant(storage) : storage.read();
    return (into) => into.set(data);
  }

  #consume(storages: readonly TensorStorage[]): void {
    const given = storages.filter((_, i) => this.#donated.has(i));
    if (given.length === 0) return;
    const to = { by: this.#name, where: laterLocation() };
    for (const storage of given) storage.consume?.(to);
  }

  #outputs(): readonly Tensor[] {
    return this.#results.map(({ type, address, arena }, i) => {
      const param = this.#replaces.get(i);
      if (param === undefined) return new Tensor(arena.output(type, address));
      const slot = at(this.#params, param);
      return new Tensor(slot.arena.put(type, slot.address));
    });
  }
}

/** What is asked of a program that is loaded. */
type Loading = Pick<CompileRequest, "checkNaN"> & Pick<CompileRequest, "spillTo">;

/** Plans and loads a program; `placed` says how it was planned. */
export function loadProgram(
  source: LoadableProgram,
  request: PlanRequest & Loading,
  on: RunsOn,
): { readonly program: LoadedProgram; readonly placed: ChosenProgram } {
  const placed = on.host.planner.assemble(source, on.target.description, request, on.host);
  return { program: loadPlaced(source, placed, on, request), placed };
}

/** Loads a program that is planned. */
export function loadPlaced(
  source: LoadableProgram,
  placed: ChosenProgram,
  { target, arena: shared }: RunsOn,
  { checkNaN, spillTo: spill }: Loading,
): LoadedProgram {
  const arena = shared?.();
  const executable = new Executable(placed, target, { stepwise: checkNaN, memory: arena?.memory, spill });
  const { params, results, plan } = placed;
  const watched = checkNaN ? executable : null;
  const places: ProgramPlaces = {
    ...{ params, results, arenaBytes: plan.height, untouched: untouchedParams(plan) },
    ...{ inFile: paramsElsewhere(plan.program), fileBytes: plan.others[0]?.height ?? 0 },
  };
  return new LoadedProgram(source, places, { machine: executable.machine, arena, watched });
}

function isAt(storage: TensorStorage, arena: Arena, address: number): boolean {
  return storage instanceof ResidentStorage && storage.isAt(arena, address);
}
