/** @file Node's worker threads that run modules of the user's (runtime/devices.ts). Their ends are events. */
import { parentPort, Worker } from "node:worker_threads";
import type { ModuleThread, ModuleThreads } from "../runtime/devices.ts";

function nodeThread(worker: Worker): ModuleThread {
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (handler) => void worker.on("message", handler),
    onEnd(handler) {
      worker.on("error", (error) => handler(error instanceof Error ? (error.stack ?? String(error)) : String(error)));
      worker.on("exit", (code) => handler(`its thread ended with code ${code}`));
    },
    end: () => void worker.terminate(),
  };
}

export const nodeThreads: ModuleThreads = {
  // an address or a path
  start: (module) => nodeThread(new Worker(URL.canParse(module) ? new URL(module) : module)),
  parent() {
    const port = parentPort;
    if (!port) return null;
    return {
      post: (message) => port.postMessage(message),
      onMessage: (handler) => void port.once("message", handler),
    };
  },
  notShared: () => null,
  life: null,
};
