/**
 * @file Search for a placement on more than one thread. Where chance decides how low a walk comes, the lower of several with
 * different seeds is lower than one: each thread searches by itself, and the first that has enough ends the others.
 */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import {
  goalOf,
  isDecided,
  type SearchOptions,
  type SearchResult,
  searchPlacement,
  startOf,
} from "../plan/place/search.ts";
import type { Problem } from "../plan/problem.ts";

/** Limits of a search but for the time. */
type PackOptions = Omit<SearchOptions, "enough" | "timeoutMs">;

/** What a thread is to do, in a form that can be sent. */
export interface PackTask {
  readonly problem: Problem;
  readonly options: PackOptions;
  /** In milliseconds of the wall's clock. */
  readonly endsAt: number;
  /** Of one 32-bit number: not 0 when a thread has enough. */
  readonly flag: SharedArrayBuffer;
}

/** Fewer buffers are placed in less time than it takes to start a thread, or exactly. */
export const LEAST_BUFFERS = 1000;
export const MOST_THREADS = 4;
/** Threads start later than the one that starts them. */
const GRACE_MS = 500;
/** Why a thread may end that is no mistake: the others go on. */
const OUT_OF_RESOURCES = ["ERR_WORKER_OUT_OF_MEMORY", "ERR_WORKER_INIT_FAILED"];

/** As `searchPlacement` until the time limit, on up to four threads: the lowest of what they find. */
export async function searchOnThreads(
  problem: Problem,
  { timeoutMs, ...limits }: PackOptions & { readonly timeoutMs: number },
): Promise<SearchResult> {
  const endsAt = Date.now() + timeoutMs;
  const left = (): number => Math.max(0, endsAt - Date.now());
  // one start for all threads; often no lower placement is needed
  const start = startOf(problem, limits, () => left() === 0);
  const options: PackOptions = { ...limits, start };
  const few = problem.buffers.length < LEAST_BUFFERS || start.height <= goalOf(options);
  // compiled code only: a thread cannot load TypeScript
  const threads = few || import.meta.url.endsWith(".ts") ? 1 : Math.min(MOST_THREADS, availableParallelism());
  const { seed = 1, capacityBytes } = options;
  const flag = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const met = new Int32Array(flag);
  const others = Array.from({ length: threads - 1 }, (_, k) =>
    searcher({ problem, options: { ...options, seed: seed + k + 1 }, endsAt, flag }),
  );
  const enough = (): boolean => Atomics.load(met, 0) !== 0;
  const own = searchPlacement(problem, { ...options, timeoutMs: left(), enough });
  const late = sleep(isDecided(own, capacityBytes) ? 0 : left() + GRACE_MS, null, { ref: false });
  const found = await Promise.all(others.map(({ outcome }) => Promise.race([outcome, late])));
  await Promise.all(others.map(({ worker }) => worker.terminate()));
  return lowestOf([own, ...found.filter((result) => result !== null)]);
}

/** A thread that searches, and what it finds: nothing when there is not enough for it to run. */
function searcher(task: PackTask): { readonly worker: Worker; readonly outcome: Promise<SearchResult | null> } {
  const worker = new Worker(new URL("./pack-worker.js", import.meta.url), { workerData: task, execArgv: [] });
  const outcome = new Promise<SearchResult | null>((resolve, reject) => {
    worker
      .once("message", resolve)
      .once("error", (error: NodeJS.ErrnoException) =>
        OUT_OF_RESOURCES.includes(error.code ?? "") ? resolve(null) : reject(error),
      )
      .once("exit", () => resolve(null));
  });
  return { worker, outcome };
}

/** The lowest, the first of those that are as low; what one has ruled out holds for all. */
function lowestOf(results: readonly SearchResult[]): SearchResult {
  const best = results.reduce((low, next) => (next.height < low.height ? next : low));
  const boundBytes = results.reduce((most, next) => Math.max(most, next.boundBytes), 0);
  const nodes = results.reduce((sum, next) => sum + next.nodes, 0);
  return { ...best, boundBytes, nodes, proven: best.proven || best.height <= boundBytes };
}
