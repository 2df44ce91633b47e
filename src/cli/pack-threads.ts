/**
 * @file Search for a placement on more than one thread. Where chance decides how low a walk comes, the lower of several with
 * different seeds is lower than one: each thread searches by itself, and the first that has enough ends the others.
 */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { isDecided, type SearchOptions, type SearchResult, searchPlacement } from "../plan/place/search.ts";
import type { Problem } from "../plan/problem.ts";

/** What a thread is to do, in a form that can be sent. */
export interface PackTask {
  readonly problem: Problem;
  readonly options: Omit<SearchOptions, "enough" | "timeoutMs">;
  /** In milliseconds of the wall's clock. */
  readonly endsAt: number;
  /** Of one 32-bit number: not 0 when a thread has enough. */
  readonly flag: SharedArrayBuffer;
}

/** Fewer buffers are placed in less time than it takes to start a thread, or exactly. */
const LEAST = 1000;
const MOST_THREADS = 4;
/** Threads start later than the one that starts them. */
const GRACE_MS = 500;

/** As `searchPlacement` until the time limit, on up to four threads: the lowest of what they find. */
export async function searchOnThreads(
  problem: Problem,
  options: SearchOptions & { readonly timeoutMs: number },
  threads: number = Math.min(MOST_THREADS, availableParallelism()),
): Promise<SearchResult> {
  const file = new URL("./pack-worker.js", import.meta.url);
  // compiled code only: a thread cannot load TypeScript
  if (threads < 2 || problem.buffers.length < LEAST || import.meta.url.endsWith(".ts")) {
    return searchPlacement(problem, options);
  }
  const { timeoutMs, seed = 1, enough: _, ...rest } = options;
  const flag = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const met = new Int32Array(flag);
  const endsAt = Date.now() + timeoutMs;
  const others = Array.from({ length: threads - 1 }, (_one, k) => {
    const task: PackTask = { problem, options: { ...rest, seed: seed + k + 1 }, endsAt, flag };
    const worker = new Worker(file, { workerData: task, execArgv: [] });
    // a thread that fails has found nothing
    const outcome = new Promise<SearchResult | null>((resolve) => {
      worker
        .once("message", resolve)
        .once("error", () => resolve(null))
        .once("exit", () => resolve(null));
    });
    return { worker, outcome };
  });
  const own = searchPlacement(problem, { ...options, enough: () => Atomics.load(met, 0) !== 0 });
  const grace = isDecided(own, options.capacityBytes) ? 0 : Math.max(0, endsAt - Date.now()) + GRACE_MS;
  const late = sleep(grace, null, { ref: false });
  const found = await Promise.all(others.map(({ outcome }) => Promise.race([outcome, late])));
  await Promise.all(others.map(({ worker }) => worker.terminate()));
  return lowestOf([own, ...found.filter((result) => result !== null)]);
}

/** The lowest, the first of those that are as low; what one has ruled out holds for all. */
function lowestOf(results: readonly SearchResult[]): SearchResult {
  const best = results.reduce((low, next) => (next.height < low.height ? next : low));
  const boundBytes = results.reduce((most, next) => Math.max(most, next.boundBytes), 0);
  const nodes = results.reduce((sum, next) => sum + next.nodes, 0);
  return { ...best, boundBytes, nodes, proven: best.proven || best.height <= boundBytes };
}
