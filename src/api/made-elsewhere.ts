/**
 * @file One program of `compileAsync` (compile-async.ts): asked of a worker, planned and generated there, and loaded here.
 *
 *   here   graph, request, a plan that was kept ──→ worker ── figures, places, code ──→ here   loaded, the plan kept
 */
import { TidemarkError } from "../base/errors.ts";
import { planTask, type SentTask, storeKey, withPlan } from "../compiler/sent-plan.ts";
import type { ChosenTarget } from "../runtime/choose-target.ts";
import { requireArena } from "../runtime/executable.ts";
import type { TaskWorker } from "../runtime/task-worker.ts";
import { build, type Entry, type Maker, planAgain, tracedParts, typesOf } from "./compile.ts";
import type { CompileWatch } from "./compile-progress.ts";
import type { SentProgram, WorkerMessage } from "./compile-worker.ts";
import { nextTask } from "./event-loop.ts";
import { currentHost } from "./host.ts";
import { pagePlans } from "./page-plans.ts";
import { programFigures } from "./plan-info.ts";
import { LoadedProgram, loadProgram } from "./program.ts";
import type { CompileRequest } from "./request.ts";
import type { TracedProgram } from "./traced-program.ts";

/** A program that is made, and what tells how far it is. @internal */
export interface Making {
  readonly maker: Maker;
  readonly source: TracedProgram;
  readonly watch: CompileWatch;
  /** Whether a better plan would be taken at once if it were kept. */
  readonly wantsBetter?: boolean;
  /** Whether it makes a better plan than the one that is in use, for which nothing waits. */
  readonly isRefinement?: boolean;
}

/** The same request, for a plan that takes the whole search. @internal */
export const searchingOn = (request: CompileRequest): CompileRequest => ({
  ...request,
  memory: { ...request.memory, quick: false },
});

/** The program: planned by a worker where there is one, else on this thread. @internal */
export async function entryFor(making: Making): Promise<Entry> {
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

/** A program as a worker planned it, and what for. @internal */
export interface Planned extends SentProgram {
  readonly request: CompileRequest;
}

/** What a worker makes of the program; one line that says why there is none. @internal */
export async function planElsewhere(making: Making, chosen: ChosenTarget): Promise<Planned | string> {
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

/** Loads a program that a worker planned. @internal */
export async function loadSent(making: Making, chosen: ChosenTarget, sent: Planned): Promise<Entry> {
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
