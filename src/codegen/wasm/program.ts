/**
 * @file A placed program as one WebAssembly module: a function for each distinct kernel, and `run`, which calls them in
 * order with the addresses of the plan. The module imports one memory, the arena, and allocates nothing.
 */
import type { PlainBytes } from "../../base/bytes.ts";
import { isTransfer, type PlacedCopy, type PlacedStep, statementsOf } from "../placed.ts";
import type { EmitOptions } from "./emit-options.ts";
import { Code, ModuleBuilder } from "./encoder.ts";
import { type Exchange, Exchanges } from "./exchange.ts";
import { KernelLibrary } from "./kernel.ts";
import { ScriptEmitter, type Sharing } from "./script.ts";
import { TeamEmitter, teamBytes } from "./team.ts";

/** A module as {@link emitProgram} writes it. */
export interface WasmModule {
  readonly bytes: PlainBytes;
  /** Distinct kernel functions. */
  readonly functions: number;
  /** Of the memory that it imports, at least. */
  readonly pages: number;
  /** Whether there are calls that threads share. */
  readonly isShared: boolean;
  /** What its calls of `env.exchange` mean, by number; none for programs of one device. */
  readonly exchanges: readonly Exchange[];
}

/** Scalar operations below which a call is the caller's alone: workers would take longer to wake. */
const WORTH_SHARING = 100_000;

/** Calls in one function, so that no engine meets a body too large to optimise. */
const CALLS_PER_FUNCTION = 512;

export const PAGE = 65536;

/**
 * Pages for an arena: registers may be loaded up to 16 bytes past the last element.
 *
 * @example
 * import { pagesOf } from "tidemark/wasm";
 *
 * console.log(pagesOf(100_000)); // → 2
 */
export function pagesOf(arenaBytes: number): number {
  return Math.ceil((arenaBytes + 64) / PAGE);
}

/** Options of {@link emitProgram}. */
export interface ProgramEmitOptions extends EmitOptions {
  /** Also export every call on its own, as `step0`, `step1`, …, to look at the arena in between. */
  readonly stepwise?: boolean;
  /** Scalar operations of a call from which on threads share it; default: some tens of microseconds of them. */
  readonly shareFrom?: number;
  /**
   * Steps between copies are exported as `part0`, …, numbered by `stepGroups`; the memory is `shared` with a thread that copies, or
   * the thread's `own`.
   */
  readonly inParts?: "shared" | "own";
  /** Where a step with collectives is, for messages. */
  readonly placeOf?: (step: PlacedStep) => string;
}

/** Steps in the order of their functions; copies to other memories are on their own, without a function. */
export function stepGroups(
  steps: readonly PlacedStep[],
  most = CALLS_PER_FUNCTION,
): readonly (readonly PlacedStep[])[] {
  const groups: PlacedStep[][] = [];
  let isFull = true;
  for (const step of steps) {
    const isAlone = isTransfer(step);
    if (isFull || isAlone) groups.push([]);
    const group = groups.at(-1);
    group?.push(step);
    isFull = isAlone || group?.length === most;
  }
  return groups;
}

function sharingOf(module: ModuleBuilder, options: ProgramEmitOptions): Sharing | null {
  const { threads = 1, shareFrom = WORTH_SHARING } = options;
  if (threads === 1) return null;
  return { team: new TeamEmitter(module, threads), threads, from: shareFrom, start: teamBytes(threads) };
}

/**
 * For several threads the memory is shared, and the arena comes after the words of the team.
 *
 * @throws TargetUnsupported for code that is larger than engines take, and, without `inParts`, for steps that copy to another
 * memory
 *
 * @example
 * import { emitProgram } from "tidemark/wasm";
 *
 * const { bytes } = emitProgram([], [{ from: 0, to: 64, bytes: 16 }], 128, { fma: false });
 * console.log(WebAssembly.validate(bytes)); // → true
 */
export function emitProgram(
  steps: readonly PlacedStep[],
  copies: readonly PlacedCopy[],
  arenaBytes: number,
  options: ProgramEmitOptions,
): WasmModule {
  const perFunction = options.stepwise ? 1 : CALLS_PER_FUNCTION;
  const module = new ModuleBuilder();
  const exchanges = Exchanges.of(module, steps);
  const sharing = sharingOf(module, options);
  const library = new KernelLibrary(module, options);
  const parts: number[] = [];
  for (const [i, group] of stepGroups(steps, perFunction).entries()) {
    if (options.inParts && group.some(isTransfer)) continue;
    const part = new Code([]);
    const emitter = new ScriptEmitter({ module, library, sharing, exchanges }, part);
    for (const step of group) {
      exchanges?.enter(options.placeOf?.(step) ?? "");
      emitter.emit(statementsOf(step, "wasm"));
    }
    const fn = module.add(part);
    if (options.stepwise) module.export(`step${i}`, fn);
    if (options.inParts) module.export(`part${i}`, fn);
    parts.push(fn);
  }
  const run = new Code([]);
  for (const part of parts) run.call(part);
  const start = sharing?.start ?? 0;
  for (const { from, to, bytes } of copies) {
    run
      .i32Const(start + to)
      .i32Const(start + from)
      .i32Const(bytes)
      .memoryCopy();
  }
  module.export("run", module.add(run));
  const pages = pagesOf(start + arenaBytes);
  return {
    bytes: module.finish(pages, sharing !== null || options.inParts === "shared"),
    functions: library.count,
    pages,
    isShared: sharing?.team.isUsed ?? false,
    exchanges: exchanges?.list ?? [],
  };
}
