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
import { TidemarkError, withLocation } from "../base/errors.ts";
import { isQuick } from "../compiler/request.ts";
import { planTask, type SentTask, storeKey, withPlan } from "../compiler/sent-plan.ts";
import { AWAITED_TARGET, type ChosenTarget } from "../runtime/choose-target.ts";
import { requireArena } from "../runtime/executable.ts";
import type { TaskWorker } from "../runtime/task-worker.ts";
import { describe, fail, type OptionKinds, requireFunction } from "../trace/arguments.ts";
import type { AnyFunction } from "../trace/function.ts";
import { sourceLocation } from "../trace/source-location.ts";
import { requireActive } from "../trace/trace.ts";
import type { Tree } from "../trace/tree.ts";
import {
  build,
  type Compiled,
  compiledBy,
  type Entry,
  type Maker,
  makerOf,
  planAgain,
  tracedParts,
  typesOf,
} from "./compile.ts";
import { type CompileProgress, CompileWatch } from "./compile-progress.ts";
import type { SentProgram, WorkerMessage } from "./compile-worker.ts";
import { type AbortSignalLike, nextTask, requireSignal, StopSignal } from "./event-loop.ts";
import { currentHost } from "./host.ts";
import { pagePlans } from "./page-plans.ts";
import { programFigures } from "./plan-info.ts";
import { LoadedProgram, loadProgram } from "./program.ts";
import { type CompileOptions, type CompileRequest, type PaddedOptions, parseCompile } from "./request.ts";
import type { Lengths } from "./shape-axes.ts";
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
}

const ASYNC_OPTIONS: OptionKinds<Omit<CompileAsyncOptions, keyof CompileOptions>> = {
  onProgress: "a function",
  signal: "anything",
  refine: "a boolean",
};

/** A program that is made, and what tells how far it is. */
interface Making {
  readonly maker: Maker;
  readonly source: TracedProgram;
  readonly watch: CompileWatch;
  /** Whether a better plan would be taken at once if it were kept. */
  readonly wantsBetter?: boolean;
  /** Whether it makes a better plan than the one that is in use, for which nothing waits. */
  readonly isRefinement?: boolean;
}

/**
 * Compiles a function over tensors for arguments like these, without keeping the thread busy: the function is traced at once, and
 * a worker plans it and generates its code. Arguments are read for their types alone and may be specs. The result is that of
 * `compile`, whose program for these arguments is ready; other shapes are compiled when they are first called.
 *
 * @throws PlanInfeasible where no plan fits `memory`; InvalidArgument for options and arguments that are
 * none; Aborted by its `signal`
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
  if (request.target === AWAITED_TARGET) await currentHost().webgpu.target();
  const name = request.name ?? (fn.name || "the function");
  const where = sourceLocation();
  const maker = makerOf(fn as AnyFunction, request);
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

/** Compiles for one list of arguments. */
async function addProgram(
  maker: Maker,
  args: readonly unknown[],
  { watch, options }: { readonly watch: CompileWatch; readonly options: CompileAsyncOptions },
): Promise<void> {
  const { request } = maker;
  watch.check();
  watch.begin("trace");
  // a member of a family may be traced and planned already
  const source = maker.family?.source(maker.reader.read(args).key) ?? maker.reader.trace(args);
  for (const leaf of source.flat.tensors) requireActive(leaf);
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

const searchingOn = (request: CompileRequest): CompileRequest => ({
  ...request,
  memory: { ...request.memory, quick: false },
});

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

async function entryFor(making: Making): Promise<Entry> {
  const { maker, source, watch } = making;
  watch.begin("plan");
  // tracing and packing the graph are tasks of their own
  await nextTask();
  maker.kept.settle(source);
  const planned = await maker.kept.loadLater((chosen) => makeElsewhere(making, chosen));
  if (typeof planned !== "string") return planned;
  // after the note is shown
  watch.begin("plan", `planned on this thread: ${planned}`);
  await nextTask();
  watch.check();
  return makeHere(making);
}

/** Everything on this thread. */
function makeHere({ maker, source, watch }: Making): Entry {
  const { request } = maker;
  const progress: typeof request.progress = (plan) => {
    request.progress?.(plan);
    watch.planned(plan);
  };
  const entry = currentHost().heap.keptSmall(() => build({ ...maker, request: { ...request, progress } }, source));
  watch.begin("load");
  return entry;
}

/** The program, planned by a worker; one line that says why there is none. */
async function makeElsewhere(making: Making, chosen: ChosenTarget): Promise<Entry | string> {
  const sent = await planElsewhere(making, chosen);
  return typeof sent === "string" ? sent : await loadSent(making, chosen, sent);
}

/** What is asked of a worker, with the plan that is kept for it. */
async function taskFor({ maker, source, wantsBetter }: Making, chosen: ChosenTarget) {
  const { request } = maker;
  const task = planTask(source, chosen.target.description, request);
  if (typeof task === "string") return task;
  const better = searchingOn(request);
  const whole = wantsBetter ? await keptPlan(better, source, { ...task, memory: better.memory }) : null;
  if (whole && whole.text !== null) return { task: { ...task, memory: better.memory }, kept: whole, request: better };
  return { task, kept: await keptPlan(request, source, task), request };
}

/** The plan of a request in the host's store or the page's, and how to keep it there. */
async function keptPlan(request: CompileRequest, source: TracedProgram, task: Omit<SentTask, "kept">) {
  const store = request.cache ? (currentHost().planStore ?? (await pagePlans())) : null;
  const key = store && storeKey(store, source, task);
  const keep = async (text: string, planMs: number): Promise<void> => {
    if (store && key !== null && planMs >= store.leastMs) await store.write(key, text);
  };
  return { text: store && key !== null ? await store.read(key) : null, keep };
}

/** A program as a worker planned it, and what for. */
interface Planned extends SentProgram {
  readonly request: CompileRequest;
}

/** What a worker makes of the program; one line that says why there is none. */
async function planElsewhere(making: Making, chosen: ChosenTarget): Promise<Planned | string> {
  const { watch } = making;
  const asked = await taskFor(making, chosen);
  if (typeof asked === "string") return asked;
  const { task, kept, request } = asked;
  await nextTask();
  const { WORKER_SOURCE: text } = await import("./worker-source.ts");
  watch.check();
  if (text === null) return "unbuilt sources have no worker";
  const sent = await inWorker(text, { ...task, kept: kept.text }, making);
  if (typeof sent === "string") return sent;
  if (sent.kept !== null) await kept.keep(sent.kept, sent.figures.planMs);
  return { ...sent, kept: sent.kept ?? kept.text, request };
}

/** Has a worker do a task; one line where it could not. Errors of the user's are thrown as they would be here. */
function inWorker(text: string, task: SentTask, { maker, watch, isRefinement }: Making): Promise<SentProgram | string> {
  return new Promise((resolve, reject) => {
    let worker: TaskWorker | string = "not started";
    let isSettled = false;
    const settle = <T>(how: (value: T) => void, value: T): void => {
      if (isSettled) return;
      isSettled = true;
      watch.signal?.removeEventListener("abort", abort);
      if (typeof worker !== "string") worker.end();
      how(value);
    };
    const abort = (): void => settle(reject, watch.aborted());
    const receive = (message: WorkerMessage): void => {
      if (message.told === "plan") {
        if (!isRefinement) maker.request.progress?.(message.plan);
        watch.planned(message.plan);
      } else if (message.told === "generate") watch.begin("generate");
      else if (message.told === "done") settle(resolve, message.program);
      else if (message.told === "failure") settle(resolve, message.why);
      else settle(reject, new TidemarkError(message.error.code, message.error.summary, message.error));
    };
    watch.signal?.addEventListener("abort", abort);
    worker = currentHost().startTask(text, {
      onMessage(message) {
        try {
          if (!isSettled) receive(message as WorkerMessage);
        } catch (error) {
          settle(reject, error);
        }
      },
      onFailure: (why) => settle(resolve, why),
      ...(isRefinement ? { isOptional: true } : {}),
    });
    if (typeof worker === "string") settle(resolve, worker);
    else worker.post(task);
  });
}

/** Loads a program that a worker planned. */
async function loadSent(making: Making, chosen: ChosenTarget, sent: Planned): Promise<Entry> {
  const { maker, source, watch } = making;
  const program = await loadedCode(making, chosen, sent);
  maker.kept.counts.planned++;
  const { moduleBytes, kernelFunctions } = program;
  const figures = programFigures(sent.figures, source, chosen);
  const types = typesOf(source.flat);
  const host = withPlan(currentHost(), sent.kept);
  return {
    ...{ program, ...tracedParts(source) },
    figures: { ...figures, moduleBytes, kernelFunctions, compileMs: watch.elapsedMs, planVersion: 1 },
    details: () => planAgain({ ...maker, request: sent.request }, types, host),
    request: sent.request,
  };
}

async function loadedCode({ maker, source, watch }: Making, { target }: ChosenTarget, sent: Planned) {
  const { kept: programs } = maker;
  const { code, places, kept, request } = sent;
  if (!code || !target.loadCode) {
    watch.begin("load", `${target.code} is generated and loaded on this thread`);
    const on = { target, host: withPlan(currentHost(), kept), arena: () => programs.arena };
    return loadProgram(source, { ...request, progress: undefined }, on).program;
  }
  watch.begin("load");
  requireArena(places.arenaBytes, target.description);
  const { arena } = programs;
  const machine = await target.loadCode(code, places.arenaBytes, { stepwise: false, memory: arena.memory });
  return new LoadedProgram(source, places, { machine, arena });
}
