/**
 * @file Node's worker threads for programs on WebAssembly (runtime/workers.ts). They do not keep the process alive.
 *
 * The caller waits without a turn of its event loop, so the event `exit` comes too late to end that wait. But the idle time
 * of a worker's event loop can be asked for at any time, and is −1 once its thread has stopped; this may go when Node says
 * by itself, and at once, whether a thread runs.
 */
import { Worker } from "node:worker_threads";
import type { WorkerThread } from "../runtime/workers.ts";

/** A worker says after every message how large its heap is. */
const LISTEN = `const { parentPort, workerData } = require("node:worker_threads");
const { getHeapStatistics } = require("node:v8");
const measure = () => {
  const { total_physical_size, malloced_memory } = getHeapStatistics();
  workerData[0] = total_physical_size + malloced_memory;
};
const listen = (handler) => {
  measure();
  parentPort.on("message", (message) => {
    handler(message);
    measure();
  });
};
const close = () => process.exit(0);
`;

export function nodeWorkers(text: string): WorkerThread {
  // Loaders and other flags of the process are of no use to a text without imports.
  const heap = new Float64Array(new SharedArrayBuffer(8));
  const worker = new Worker(LISTEN + text, { eval: true, execArgv: [], workerData: heap });
  worker.unref();
  let ended: string | null = null;
  worker.on("error", (error) => {
    ended = String(error);
  });
  worker.on("exit", (code) => {
    ended ??= `its thread ended with code ${code}`;
  });
  const stopped = (): boolean => worker.performance.eventLoopUtilization().idle < 0;
  return {
    post: (message) => worker.postMessage(message),
    ended: () => ended ?? (stopped() ? "its thread has stopped" : null),
    heapBytes: () => (ended === null ? (heap[0] ?? 0) : 0),
  };
}
