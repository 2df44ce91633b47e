/**
 * @file Node's worker threads: for programs on WebAssembly (runtime/workers.ts), which do not keep the process alive, and for
 * planning (runtime/task-worker.ts).
 *
 * The caller waits without a turn of its event loop, so the event `exit` comes too late to end that wait. But the idle time
 * of a worker's event loop can be asked for at any time, and is −1 once its thread has stopped; this may go when Node says
 * by itself, and at once, whether a thread runs. Deno and Bun have no such time: there the event is all there is, and a
 * wait for a thread that ended without an exception goes on.
 */
import { Worker } from "node:worker_threads";
import type { TaskStarter } from "../runtime/task-worker.ts";
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

/** Bun has the function, which prints that it is not implemented. */
const isAsked = process.versions.bun === undefined && process.versions.deno === undefined;

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
  const stopped = (): boolean => isAsked && worker.performance.eventLoopUtilization().idle < 0;
  return {
    post: (message) => worker.postMessage(message),
    ended: () => ended ?? (stopped() ? "its thread has stopped" : null),
    heapBytes: () => (ended === null ? (heap[0] ?? 0) : 0),
  };
}

const TASK = `const { parentPort } = require("node:worker_threads");
const listen = (handler) => parentPort.once("message", handler);
const tell = (message, transferred) => parentPort.postMessage(message, transferred);
`;

/** A thread for one task (runtime/task-worker.ts). It keeps the process alive where its result is awaited. */
export const nodeTask: TaskStarter = (text, { onMessage, onFailure, isOptional }) => {
  try {
    const worker = new Worker(TASK + text, { eval: true, execArgv: [], env: {} });
    worker.on("message", onMessage);
    worker.on("error", (error) => onFailure(String(error)));
    worker.on("exit", (code) => onFailure(`its thread ended with code ${code}`));
    if (isOptional) worker.unref();
    return { post: (message) => worker.postMessage(message), end: () => void worker.terminate() };
  } catch (error) {
    return String(error);
  }
};
