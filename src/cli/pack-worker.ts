/** @file What the threads of pack-threads.ts run: one search, whose outcome is posted, and a word to the others when it is enough. */
import { parentPort, workerData } from "node:worker_threads";
import { isDecided, searchPlacement } from "../plan/place/search.ts";
import type { PackTask } from "./pack-threads.ts";

const { problem, options, endsAt, flag } = workerData as PackTask;
const met = new Int32Array(flag);
const result = searchPlacement(problem, {
  ...options,
  timeoutMs: Math.max(0, endsAt - Date.now()),
  enough: () => Atomics.load(met, 0) !== 0,
});
if (isDecided(result, options.capacityBytes)) Atomics.store(met, 0, 1);
parentPort?.postMessage(result);
