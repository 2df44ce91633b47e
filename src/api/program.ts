/**
 * @file A compiled program and its arguments: writes what is not there yet, runs, hands out results. Donated arguments
 * that are already in their slot are not touched; results that replace them stay in the arena.
 */
import { at } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { sameType, type TensorType, tensorType } from "../ir/type.ts";
import { pipeline } from "../passes/pipeline.ts";
import type { CostModel } from "../plan/cost/model.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import type { ChosenProgram, MemoryRequest } from "../runtime/assemble.ts";
import { runChecked } from "../runtime/check-nan.ts";
import { type Elements, Executable } from "../runtime/executable.ts";
import { ResidentStorage } from "../runtime/resident.ts";
import type { Target } from "../runtime/target.ts";
import { laterLocation } from "../trace/source-location.ts";
import { ArrayStorage, type TensorStorage } from "../trace/storage.ts";
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
  readonly cache?: boolean | undefined;
  readonly verify?: boolean;
  /** Look for NaN in arguments and after every operation. */
  readonly checkNaN?: boolean;
}

export class LoadedProgram {
  readonly executable: Executable<ChosenProgram>;
  readonly #name: string;
  readonly #graph: Graph;
  readonly #donated: ReadonlyMap<number, number>;
  readonly #replaces: ReadonlyMap<number, number>;
  /** What is in the slot of a persistent parameter. */
  readonly #inSlot = new Map<number, TensorStorage>();
  readonly #firstCapture: number;
  readonly #checkNaN: boolean;

  constructor(graph: Graph, options: ProgramOptions) {
    this.#name = options.name;
    this.#graph = graph;
    this.#checkNaN = options.checkNaN ?? false;
    // A watched program updates nothing in place, so that arguments survive an error.
    this.#donated = this.#checkNaN ? new Map() : (options.donated ?? new Map());
    this.#replaces = new Map([...this.#donated].flatMap(([param, result]) => (result >= 0 ? [[result, param]] : [])));
    this.#firstCapture = options.firstCapture ?? graph.params.length;
    const persistent = persistentParams(graph, this.#donated, this.#firstCapture);
    this.executable = Executable.from(graph, {
      donated: this.#donated,
      persistent,
      memory: options.memory,
      target: options.target,
      costs: options.costs,
      solver: options.solver,
      cache: options.cache,
      verify: options.verify ?? false,
      // Operation by operation, so that the one to blame can be named.
      ...(this.#checkNaN ? { stepwise: true, passes: pipeline } : {}),
    });
  }

  run(args: readonly Tensor[]): readonly Tensor[] {
    const storages = args.map(storageOf);
    this.#write(storages);
    if (this.#checkNaN) runChecked(this.executable);
    else this.executable.run();
    return this.#results();
  }

  #write(storages: readonly TensorStorage[]): void {
    const { executable } = this;
    const { params } = executable.placed;
    // What is already in its slot stays; everything else is read before any slot is overwritten. What is written once and
    // not computed yet is computed in its slot.
    const pending: { readonly param: number; readonly write: (into: Elements) => void }[] = [];
    storages.forEach((storage, i) => {
      const address = at(params, i);
      const persistent = this.#donated.has(i) || i >= this.#firstCapture;
      const here =
        persistent && (i >= this.#firstCapture ? this.#inSlot.get(i) === storage : isAt(storage, executable, address));
      if (here) return;
      if (persistent && storage.writeTo) {
        pending.push({ param: i, write: (into) => storage.writeTo?.(into) });
        return;
      }
      const data = ownedBy(storage, executable) ? storage.read().slice() : storage.read();
      pending.push({ param: i, write: (into) => into.set(data) });
    });
    this.#consume(storages);
    for (const { param, write } of pending) {
      const before = this.#inSlot.get(param);
      if (before instanceof ResidentStorage) before.moveOut();
      write(executable.view(at(this.#graph.params, param).type, at(params, param)));
      const storage = at(storages, param);
      if (param >= this.#firstCapture) this.#inSlot.set(param, storage);
    }
  }

  #consume(storages: readonly TensorStorage[]): void {
    const given = storages.filter((storage, i) => this.#donated.has(i) && storage instanceof ResidentStorage);
    if (given.length === 0) return;
    const where = laterLocation();
    for (const storage of given) (storage as ResidentStorage).consume(this.#name, where);
  }

  #results(): readonly Tensor[] {
    const { executable } = this;
    return this.#graph.results.map((value, i) => {
      const { type } = value;
      const param = this.#replaces.get(i);
      const address = at(executable.placed.results, i);
      if (param === undefined) return copyOut(executable, type, address);
      const storage = new ResidentStorage(type, executable, at(executable.placed.params, param));
      this.#inSlot.set(param, storage);
      return new Tensor(storage);
    });
  }
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

function isAt(storage: TensorStorage, executable: Executable, address: number): boolean {
  return storage instanceof ResidentStorage && storage.isAt(executable, address);
}

/** Whether reading gives a view into this program's arena, which writing may destroy. */
function ownedBy(storage: TensorStorage, executable: Executable): boolean {
  return (
    storage instanceof ResidentStorage && executable.placed.params.some((address) => storage.isAt(executable, address))
  );
}

function copyOut(executable: Executable, type: TensorType, address: number): Tensor {
  return new Tensor(new ArrayStorage(type.dtype, type.shape, executable.view(type, address).slice()));
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
