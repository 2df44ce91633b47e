/**
 * @file A compiled program and its arguments: writes what is not there yet, runs, hands out results. Donated arguments
 * that are already in their slot are not touched; results that replace them stay in the arena.
 */
import { at } from "../base/invariant.ts";
import { assemble, type ChosenProgram, type MemoryRequest } from "../compiler/assemble.ts";
import type { PlanProgress } from "../compiler/graph-plans.ts";
import type { Graph } from "../ir/graph.ts";
import { byteLength, sameType, type TensorType, tensorType } from "../ir/type.ts";
import { pipeline } from "../passes/pipeline.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import { Arena, type Tenant } from "../runtime/arena.ts";
import { runChecked } from "../runtime/check-nan.ts";
import type { Machine, Target } from "../runtime/device.ts";
import { type Elements, Executable } from "../runtime/executable.ts";
import { ResidentStorage } from "../runtime/resident.ts";
import { wasmTarget } from "../runtime/wasm-target.ts";
import type { CostModel } from "../target/work.ts";
import { laterLocation } from "../trace/source-location.ts";
import type { TensorStorage } from "../trace/storage.ts";
import { storageOf, Tensor } from "../trace/tensor.ts";

export interface ProgramOptions {
  readonly name: string;
  /** Parameter → the result that takes over its storage. */
  readonly donated?: ReadonlyMap<number, number>;
  /** Parameters from this one on are captured constants: written once. */
  readonly firstCapture?: number;
  readonly memory?: MemoryRequest;
  /** Default: WebAssembly. */
  readonly target?: Target | undefined;
  readonly costs?: CostModel | undefined;
  readonly solver?: IntegerSolver | undefined;
  readonly progress?: ((made: PlanProgress) => void) | undefined;
  readonly cache?: boolean | undefined;
  readonly verify?: boolean;
  /** Look for NaN in arguments and after every operation. */
  readonly checkNaN?: boolean;
  /** What it runs in, in turn with others; asked for when it is loaded. Default: an arena of its own. */
  readonly arena?: (() => Arena) | undefined;
}

/** A value of the program that goes in or comes out. */
interface Place {
  readonly type: TensorType;
  readonly address: number;
}

/** A watched program updates nothing in place, so that arguments survive an error. */
const donatedOf = ({ donated, checkNaN }: ProgramOptions): ReadonlyMap<number, number> =>
  checkNaN || !donated ? new Map() : donated;

/** A program planned as `LoadedProgram` runs it. */
export function planned(graph: Graph, options: ProgramOptions): ChosenProgram {
  const donated = donatedOf(options);
  const { description } = options.target ?? wasmTarget();
  return assemble(graph, description, {
    donated,
    persistent: persistentParams(graph, donated, options.firstCapture ?? graph.params.length),
    memory: options.memory,
    costs: options.costs,
    solver: options.solver,
    progress: options.progress,
    cache: options.cache,
    verify: options.verify ?? false,
    // Operation by operation, so that the one to blame can be named.
    ...(options.checkNaN ? { passes: pipeline } : {}),
  });
}

/** Ready to run. What it was made from is not kept: graph and plan may take as much as a small arena. */
export class LoadedProgram {
  readonly arena: Arena;
  readonly #name: string;
  readonly #params: readonly Place[];
  readonly #results: readonly Place[];
  readonly #donated: ReadonlyMap<number, number>;
  readonly #replaces: ReadonlyMap<number, number>;
  readonly #tenant: Tenant;
  readonly #firstCapture: number;
  readonly #machine: Machine;
  /** To look for NaN. */
  readonly #watched: Executable | null;

  constructor(graph: Graph, options: ProgramOptions, placed: ChosenProgram) {
    const { checkNaN = false, target = wasmTarget() } = options;
    this.#name = options.name;
    this.#donated = donatedOf(options);
    this.#replaces = new Map([...this.#donated].flatMap(([param, result]) => (result >= 0 ? [[result, param]] : [])));
    this.#firstCapture = options.firstCapture ?? graph.params.length;
    const arena = options.arena?.();
    const executable = new Executable(placed, target, { stepwise: checkNaN, arena: arena?.memory });
    const { machine } = executable;
    this.#machine = machine;
    this.#watched = checkNaN ? executable : null;
    this.arena = arena ?? new Arena(machine.memory);
    this.#params = graph.params.map(({ type }, i) => ({ type, address: at(placed.params, i) }));
    this.#results = graph.results.map(({ type }, i) => ({ type, address: at(placed.results, i) }));
    const persistent = [...persistentParams(graph, this.#donated, this.#firstCapture)].map((i) => at(this.#params, i));
    const sizes = persistent.map(({ type, address }) => [address, byteLength(type)] as const);
    // One without elements has the address of its neighbour.
    this.#tenant = { slots: new Map(sizes.filter(([, bytes]) => bytes > 0)), height: placed.plan.height };
  }

  run(args: readonly Tensor[]): readonly Tensor[] {
    const storages = args.map(storageOf);
    this.arena.enter(this.#tenant);
    this.#write(storages);
    if (this.#watched) runChecked(this.#watched);
    else this.#machine.run();
    return this.#made();
  }

  get moduleBytes(): number {
    return this.#machine.moduleBytes;
  }

  get kernelFunctions(): number {
    return this.#machine.kernelFunctions;
  }

  /** Ends its threads. It cannot run again. */
  close(): void {
    this.#machine.close();
  }

  #write(storages: readonly TensorStorage[]): void {
    const { arena } = this;
    // What is already in its slot stays; everything else is read before any slot is overwritten. What is written once and
    // not computed yet is computed in its slot.
    const pending: { readonly param: number; readonly write: (into: Elements) => void }[] = [];
    storages.forEach((storage, i) => {
      const { address } = at(this.#params, i);
      const isConstant = i >= this.#firstCapture;
      if (isConstant ? arena.hasConstant(address, storage) : this.#donated.has(i) && isAt(storage, arena, address))
        return;
      pending.push({ param: i, write: this.#writerOf(storage, i) });
    });
    this.#consume(storages);
    for (const { param, write } of pending) {
      const { type, address } = at(this.#params, param);
      // One without elements has the address of its neighbour.
      if (byteLength(type) === 0) continue;
      arena.vacate(address);
      arena.write(type, address, write);
      if (param >= this.#firstCapture) arena.putConstant(address, at(storages, param), byteLength(type));
    }
  }

  /** What writes a parameter into its slot: other slots may have been overwritten by then, and donated tensors consumed. */
  #writerOf(storage: TensorStorage, param: number): (into: Elements) => void {
    const isConstant = param >= this.#firstCapture;
    const isResident = storage instanceof ResidentStorage;
    if (!isConstant && isResident && !storage.isIn(this.arena)) return storage.writer();
    // Lazy elements that stay are computed where they stay; those that are given again and again have an array.
    if ((isConstant || this.#donated.has(param)) && storage.writeTo) return (into) => storage.writeTo?.(into);
    const data = isConstant ? this.arena.readConstant(storage) : storage.read();
    return (into) => into.set(data);
  }

  #consume(storages: readonly TensorStorage[]): void {
    const given = storages.filter((storage, i) => this.#donated.has(i) && storage instanceof ResidentStorage);
    if (given.length === 0) return;
    const where = laterLocation();
    for (const storage of given) (storage as ResidentStorage).consume(this.#name, where);
  }

  #made(): readonly Tensor[] {
    const { arena } = this;
    return this.#results.map(({ type, address }, i) => {
      const param = this.#replaces.get(i);
      if (param !== undefined) return new Tensor(arena.put(type, at(this.#params, param).address));
      return new Tensor(arena.result(type, address));
    });
  }
}

/** Plans and loads a program; how it was planned goes to whoever wants to know. */
export function loadProgram(
  graph: Graph,
  options: ProgramOptions,
): { readonly program: LoadedProgram; readonly placed: ChosenProgram } {
  const placed = planned(graph, options);
  return { program: new LoadedProgram(graph, options, placed), placed };
}

/** Parameters that stay in the arena between runs: those that a result replaces, and captured constants. */
export function persistentParams(
  graph: Graph,
  donated: ReadonlyMap<number, number>,
  firstCapture: number,
): ReadonlySet<number> {
  const persistent = new Set([...donated].flatMap(([param, result]) => (result >= 0 ? [param] : [])));
  for (let i = firstCapture; i < graph.params.length; i++) persistent.add(i);
  return persistent;
}

function isAt(storage: TensorStorage, arena: Arena, address: number): boolean {
  return storage instanceof ResidentStorage && storage.isAt(arena, address);
}

/**
 * Which result takes over which donated argument: the one at the same path below its own root, else the first of the
 * same type that is left.
 */
export function matchDonated(
  params: readonly { readonly index: number; readonly path: string; readonly type: TensorType }[],
  results: readonly { readonly path: string; readonly type: TensorType }[],
): ReadonlyMap<number, number> {
  const taken = new Set<number>();
  const matched = new Map<number, number>();
  const find = (test: (result: { readonly path: string; readonly type: TensorType }) => boolean): number =>
    results.findIndex((result, i) => !taken.has(i) && test(result));
  const take = (index: number, result: number): void => {
    taken.add(result);
    matched.set(index, result);
  };
  const byPath = new Map<string, number[]>();
  // Only paths that are looked for: every result ends in the empty one.
  const wanted = new Set(params.map(({ path }) => belowRoot(path)));
  results.forEach((result, i) => {
    for (const tail of tails(result.path)) {
      if (!wanted.has(tail)) continue;
      const found = byPath.get(tail);
      if (found) found.push(i);
      else byPath.set(tail, [i]);
    }
  });
  for (const { index, path, type } of params) {
    const found = (byPath.get(belowRoot(path)) ?? []).find((i) => !taken.has(i) && sameType(at(results, i).type, type));
    if (found !== undefined) take(index, found);
  }
  for (const { index, type } of params) {
    if (matched.has(index)) continue;
    const found = find((result) => sameType(result.type, tensorType(type.dtype, type.shape)));
    matched.set(index, -1);
    if (found >= 0) take(index, found);
  }
  return matched;
}

/** `state.params.w` → `.params.w`. */
const belowRoot = (path: string): string => path.replace(/^[^.[]+/, "");

/** `result[0].params.w` → itself and what is left after each step from the root. */
function tails(path: string): readonly string[] {
  const steps = path.match(/^[^.[]+|\.[^.[]+|\[[^\]]*\]/g) ?? [];
  return steps.map((_, i) => steps.slice(i + 1).join(""));
}
