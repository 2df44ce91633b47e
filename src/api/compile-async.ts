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
import { type AbortSignalLike, nextTask } from "./event-loop.ts";
import { currentHost } from "./host.ts";
import { pagePlans } from "./page-plans.ts";
import { programFigures } from "./plan.ts";
import { LoadedProgram, loadProgram } from "./program.ts";
import { type CompileOptions, parseCompile } from "./request.ts";
import type { TracedProgram } from "./traced-program.ts";

export interface CompileAsyncOptions extends CompileOptions {
  /** Is told how far it is: at every stage, and at every plan that is compared. */
  readonly onProgress?: (progress: CompileProgress) => void;
  /** Aborts it: the worker ends, and the promise is rejected with the code `Aborted`. */
  readonly signal?: AbortSignalLike;
}

const ASYNC_OPTIONS: OptionKinds<Omit<CompileAsyncOptions, keyof CompileOptions>> = {
  onProgress: "a function",
  signal: "anything",
};

/** A program that is made, and what tells how far it is. */
interface Making {
  readonly maker: Maker;
  readonly source: TracedProgram;
  readonly watch: CompileWatch;
}

/**
 * Compiles a function over tensors for arguments like these, without keeping the thread busy: the function is traced at once, and
 * a worker plans it and generates its code. Arguments are read for their types alone and may be specs. The result is that of
 * `compile`, whose program for these arguments is ready; other shapes are compiled when they are first called.
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
  const { onProgress, signal } = options;
  const request = parseCompile("compileAsync", options, ASYNC_OPTIONS);
  if (request.target === AWAITED_TARGET) await currentHost().webgpu.target();
  const name = request.name ?? (fn.name || "the function");
  const watch = new CompileWatch({ onProgress, signal, name, where: sourceLocation() });
  watch.check();
  watch.begin("trace");
  const maker = makerOf(fn as AnyFunction, request);
  const source = maker.reader.trace(args);
  for (const leaf of source.flat.tensors) requireActive(leaf);
  try {
    const entry = await entryFor({ maker, source, watch });
    maker.kept.add(source.flat.key, entry);
    watch.check();
  } catch (error) {
    maker.kept.dispose();
    throw withLocation(error, watch.where);
  }
  watch.done();
  return compiledBy(maker);
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
  const { maker, source, watch } = making;
  const task = planTask(source, chosen.target.description, maker.request);
  if (typeof task === "string") return task;
  await nextTask();
  const { WORKER_SOURCE: text } = await import("./worker-source.ts");
  watch.check();
  if (text === null) return "unbuilt sources have no worker";
  // on disk, or in the page
  const store = maker.request.cache ? (currentHost().planStore ?? (await pagePlans())) : null;
  const key = store && storeKey(store, source, task);
  const kept = store && key !== null ? await store.read(key) : null;
  watch.check();
  const sent = await inWorker(text, { ...task, kept }, making);
  if (typeof sent === "string") return sent;
  if (store && key !== null && sent.kept !== null && sent.figures.planMs >= store.leastMs) {
    await store.write(key, sent.kept);
  }
  return await loadSent(making, chosen, { ...sent, kept: sent.kept ?? kept });
}

/** Has a worker do a task; one line where it could not. Errors of the user's are thrown as they would be here. */
function inWorker(text: string, task: SentTask, { maker, watch }: Making): Promise<SentProgram | string> {
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
        maker.request.progress?.(message.plan);
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
    });
    if (typeof worker === "string") settle(resolve, worker);
    else worker.post(task);
  });
}

/** Loads a program that a worker planned. */
async function loadSent(making: Making, chosen: ChosenTarget, sent: SentProgram): Promise<Entry> {
  const { maker, source, watch } = making;
  const program = await loadedCode(making, chosen, sent);
  const { moduleBytes, kernelFunctions } = program;
  const figures = programFigures(sent.figures, source, chosen);
  const types = typesOf(source.flat);
  const host = withPlan(currentHost(), sent.kept);
  return {
    ...{ program, ...tracedParts(source) },
    figures: { ...figures, moduleBytes, kernelFunctions, compileMs: watch.elapsedMs },
    details: () => planAgain(maker, types, host),
  };
}

async function loadedCode({ maker, source, watch }: Making, { target }: ChosenTarget, sent: SentProgram) {
  const { kept: programs, request } = maker;
  const { code, places, kept } = sent;
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
