/**
 * @file `compileAsync`: like `compile`, for arguments that are known before, without keeping the thread busy. The function is traced
 * here, where it is; a worker searches for the plan and generates the code; the engine compiles it on threads of its own.
 *
 *   this thread                            worker (compile-worker.ts)
 *     trace ── graph, request ──────────→    passes, fusion, order, placement, recomputation
 *     progress ←── each plan ────────────    …
 *     load  ←── figures, places, code ───    code
 *
 * Both do the same as `compile` on the same graph, so plan, code and results have the same bits. Where no worker can be had, this
 * thread does it all and says so.
 */
import { withLocation } from "../base/errors.ts";
import { isQuick } from "../compiler/request.ts";
import { AWAITED_TARGET } from "../runtime/choose-target.ts";
import { describe, fail, type OptionKinds, requireFunction } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { requireActive } from "../trace/trace.ts";
import type { Tree } from "../trace/tree.ts";
import { type Compiled, compiledBy, type Entry, type Maker, makerOf } from "./compile.ts";
import { type CompileProgress, CompileWatch } from "./compile-progress.ts";
import { type AbortSignalLike, requireSignal, StopSignal } from "./event-loop.ts";
import { currentHost } from "./host.ts";
import { entryFor, loadSent, type Making, planElsewhere, searchingOn } from "./made-elsewhere.ts";
import { type CompileOptions, type PaddedOptions, parseCompile } from "./request.ts";
import type { Lengths } from "./shape-axes.ts";
import { endingWith, requireWasmStart, startedOnWasm, type WasmStart } from "./start-on-wasm.ts";
import type { TracedProgram } from "./traced-program.ts";

/** Options of {@link compileAsync}: those of {@link compile}, and what it says while it compiles. */
export interface CompileAsyncOptions extends CompileOptions {
  /** Is told how far it is: at every stage, and at every plan that is compared. */
  readonly onProgress?: (progress: CompileProgress) => void;
  /** Aborts it: the worker ends, and the promise is rejected with the code `Aborted`. */
  readonly signal?: AbortSignalLike;
  /**
   * Whether, after the first good plan within `memory`, a worker searches on, and the better plan is used from the next call on; default:
   * true. Results keep their bits and the arena its budget. `onProgress` is told with the stage `refine`; `effort` rules it out.
   */
  readonly refine?: boolean;
  /**
   * With `target: "auto"`: the program is ready as soon as it runs on WebAssembly, and moves to native code between two calls once that is
   * compiled. `"same-bits"`: where it has no products of floats, whose last bits differ; `"any-bits"`: always, and then they depend on how
   * fast the compiler is. `program().targetNote` and the stage `move` of `onProgress` say which it is. Not with `memory` or `shapes`.
   */
  readonly startOnWasm?: WasmStart;
}

const ASYNC_OPTIONS: OptionKinds<Omit<CompileAsyncOptions, keyof CompileOptions>> = {
  onProgress: "a function",
  signal: "anything",
  refine: "a boolean",
  startOnWasm: "a text",
};

/**
 * Compiles a function over tensors for arguments like these, without keeping the thread busy: the function is traced at once, and
 * a worker plans it and generates its code. Arguments are read for their types alone and may be specs. The result is that of
 * `compile`, whose program for these arguments is ready; other shapes are compiled when they are first called.
 *
 * @throws PlanInfeasible where no plan fits `memory`; InvalidArgument for options and arguments that are
 * none; Aborted by its `signal`
 *
 * @memory That of `compile`. The worker that plans has memory of its own.
 *
 * @example
 * ```ts
 * import { compileAsync, spec, tensor } from "tidemark";
 *
 * const scale = await compileAsync((x) => x.mul(2).add(1), [spec([3])], {
 *   onProgress: ({ stage, share }) => console.log(stage, share),
 * });
 * console.log(scale(tensor([1, 2, 3])).toArray()); // [3, 5, 7]
 * ```
 */
export async function compileAsync<A extends readonly (Tree | undefined)[], R = unknown, N extends string = string>(
  fn: (...args: [...A, Lengths<N>]) => R,
  args: Readonly<A>,
  options: CompileAsyncOptions & PaddedOptions<N>,
): Promise<Compiled<A, R>>;
export async function compileAsync<A extends readonly (Tree | undefined)[], R = unknown>(
  fn: (...args: A) => R,
  args: Readonly<A>,
  options?: CompileAsyncOptions,
): Promise<Compiled<A, R>>;
export async function compileAsync<A extends readonly (Tree | undefined)[], R = unknown>(
  fn: (...args: A) => R,
  args: Readonly<A>,
  options: CompileAsyncOptions = {},
): Promise<Compiled<A, R>> {
  requireFunction("compileAsync", "its first argument", fn);
  if (!Array.isArray(args)) {
    const help = "give the arguments of one call in a list: compileAsync(fn, [state, x])";
    fail("InvalidArgument", `compileAsync: its second argument is ${describe(args)}`, help);
  }
  return compileEach(fn, [args], options);
}

/** The same for several lists of arguments: a program for each, in one arena. @internal */
export async function compileEach<A extends readonly (Tree | undefined)[], R = unknown>(
  fn: (...args: A) => R,
  lists: readonly Readonly<A>[],
  options: CompileAsyncOptions = {},
): Promise<Compiled<A, R>> {
  const { onProgress, signal } = options;
  requireSignal("compileAsync", signal);
  const request = parseCompile("compileAsync", options, ASYNC_OPTIONS);
  requireWasmStart("compileAsync", options.startOnWasm, options);
  if (request.target === AWAITED_TARGET) await currentHost().webgpu.target();
  const name = request.name ?? (fn.name || "the function");
  const where = sourceLocation();
  const maker = makerOf(fn as AnyFunction, request);
  const { startOnWasm: start } = options;
  if (start !== undefined && lists[0]) {
    const stop = endingWith(signal);
    const watch = new CompileWatch({ onProgress, signal: stop, name, where });
    return compiledBy(await startedOnWasm({ maker, source: tracedBy(maker, lists[0], watch), watch, start, stop }));
  }
  const { family } = maker;
  // the largest first: the arena is allocated once
  const all = family ? lists.flatMap((args) => [...family.lists(args)].reverse()) : lists;
  for (const [i, args] of all.entries()) {
    const told = onProgress && partly(onProgress, i, all.length);
    await addProgram(maker, args, { watch: new CompileWatch({ onProgress: told, signal, name, where }), options });
  }
  return compiledBy(maker);
}

/** Progress of one program as that of all. */
const partly =
  (onProgress: (progress: CompileProgress) => void, done: number, of: number) =>
  (progress: CompileProgress): void =>
    onProgress(of === 1 ? progress : { ...progress, share: (done + progress.share) / of });

function tracedBy({ family, reader }: Maker, args: readonly unknown[], watch: CompileWatch): TracedProgram {
  watch.check();
  watch.begin("trace");
  // a member of a family may be traced and planned already
  const source = family?.source(reader.read(args).key) ?? reader.trace(args);
  for (const leaf of source.flat.tensors) requireActive(leaf);
  return source;
}

/** Compiles for one list of arguments. */
async function addProgram(
  maker: Maker,
  args: readonly unknown[],
  { watch, options }: { readonly watch: CompileWatch; readonly options: CompileAsyncOptions },
): Promise<void> {
  const { request } = maker;
  const source = tracedBy(maker, args, watch);
  const wantsBetter = (options.refine ?? true) && options.effort === undefined && isQuick(request.memory);
  let entry: Entry;
  try {
    entry = await entryFor({ maker, source, watch, wantsBetter });
    maker.kept.add(source.flat.key, entry);
    watch.check();
  } catch (error) {
    maker.kept.dispose();
    throw withLocation(error, watch.where);
  }
  watch.done();
  if (wantsBetter && isQuick(entry.request.memory)) void refine({ maker, source, watch }, entry);
}

/**
 * Searches on in another worker, and uses the better plan from the next call on. Whatever goes wrong, the first one stays. The plan
 * that is told in the end is the one in use: the first where no search was possible, where it found nothing faster, or where the
 * program was dropped meanwhile.
 */
async function refine({ maker, source, watch }: Making, first: Entry): Promise<void> {
  const stop = new StopSignal();
  const end = (): void => stop.stop();
  watch.signal?.addEventListener("abort", end);
  maker.kept.onDispose(end);
  const silent = new CompileWatch({ onProgress: undefined, signal: stop, name: "", where: watch.where });
  const better = { ...maker, request: searchingOn(maker.request) };
  const making: Making = { maker: better, source, watch: silent, isRefinement: true };
  const { key } = source.flat;
  try {
    const sent = await planElsewhere(making, maker.kept.target);
    // code that is loaded on this thread would keep it busy
    const isBetter = typeof sent !== "string" && sent.code && sent.figures.predictedMs < first.figures.predictedMs;
    if (!isBetter) return watch.refined(first.figures);
    const entry = await loadSent(making, maker.kept.target, sent);
    const isUsed = maker.kept.replace(key, first, { ...entry, figures: { ...entry.figures, planVersion: 2 } });
    watch.refined(isUsed ? entry.figures : first.figures);
  } catch {
    // stopped, or the worker or the user's callback failed
  } finally {
    watch.signal?.removeEventListener("abort", end);
  }
}
