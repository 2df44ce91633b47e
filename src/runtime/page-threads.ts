/** @file Threads of a page, and of workers in Deno and Bun, that run modules (devices.ts). */
import type { LifeSigns, ModuleThread, ModuleThreads } from "./devices.ts";
import { NOT_ISOLATED } from "./workers.ts";

interface MessageEvent {
  readonly data?: unknown;
  readonly message?: string;
}

/** A web worker. */
export interface PageWorker {
  postMessage(message: unknown): void;
  addEventListener(kind: "message" | "error" | "messageerror", listener: (event: MessageEvent) => void): void;
  terminate(): void;
}

interface Locks {
  request(name: string, then: () => unknown): Promise<unknown>;
}

interface PageScope {
  readonly crossOriginIsolated?: boolean;
  readonly Worker?: new (url: string, options: { readonly type: "module" }) => PageWorker;
  readonly WorkerGlobalScope?: unknown;
  readonly navigator?: { readonly locks?: Locks };
  postMessage?(message: unknown): void;
  addEventListener?(kind: "message", listener: (event: MessageEvent) => void): void;
}

/** A worker that is there already. */
export function pageThread(worker: PageWorker): ModuleThread {
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (handler) => worker.addEventListener("message", ({ data }) => handler(data)),
    onEnd(handler) {
      worker.addEventListener("error", ({ message }) => handler(message ?? "its module could not be loaded"));
      worker.addEventListener("messageerror", () => handler("a message to it could not be read"));
    },
    end: () => worker.terminate(),
  };
}

const never = new Promise<never>(() => undefined);

/** A lock is let go of when its thread ends, however that happens. */
const lifeOf = (locks: Locks): LifeSigns => ({
  hold(name) {
    return new Promise((resolve, reject) => {
      const held = (): Promise<never> => {
        resolve();
        return never;
      };
      locks.request(name, held).catch(reject);
    });
  },
  async gone(name) {
    await locks.request(name, () => undefined);
  },
});

/** Those that the global scope has. */
export function pageThreads(scope = globalThis as unknown as PageScope): ModuleThreads {
  const { Worker, WorkerGlobalScope, navigator, crossOriginIsolated } = scope;
  const locks = navigator?.locks;
  return {
    start(module) {
      if (!Worker) return "there are no workers here; in Node they come with tidemark/node";
      return pageThread(new Worker(module, { type: "module" }));
    },
    parent() {
      if (WorkerGlobalScope === undefined) return null;
      return {
        post: (message) => scope.postMessage?.(message),
        onMessage: (handler) => scope.addEventListener?.("message", ({ data }) => handler(data)),
      };
    },
    notShared: () => (crossOriginIsolated === false ? NOT_ISOLATED : null),
    life: locks ? lifeOf(locks) : null,
  };
}
