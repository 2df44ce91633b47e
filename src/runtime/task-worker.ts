/**
 * @file A worker that does one task and ends: planning and code generation beside the thread that asked for them
 * (api/compile-async.ts). It is started from text, so that nothing has to be loaded from an address, and shares no memory, so that
 * a page need not be isolated from other origins. `tidemark/node` has the same with Node's worker threads.
 */

/** A running task. */
export interface TaskWorker {
  post(message: unknown): void;
  /** Ends it at once, whatever it does. */
  end(): void;
}

export interface TaskListener {
  onMessage(message: unknown): void;
  /** It could not be started, or ended by itself. */
  onFailure(why: string): void;
  /** Whether the process may end before it is done. */
  readonly isOptional?: boolean;
}

/**
 * Starts a worker whose text has `listen(handler)`, for what is posted to it, and `tell(message, transferred)`. Where there is none
 * to be had, it says why instead.
 */
export type TaskStarter = (text: string, listener: TaskListener) => TaskWorker | string;

interface PageScope {
  readonly Worker?: new (url: string, options: { readonly type: "module" }) => PageWorker;
  readonly Blob?: new (parts: readonly string[], options: { readonly type: string }) => object;
  readonly URL?: { createObjectURL(blob: object): string; revokeObjectURL(url: string): void };
}

interface PageWorker {
  postMessage(message: unknown): void;
  terminate(): void;
  addEventListener(
    kind: "error" | "message",
    listener: (event: { readonly message?: string; readonly data?: unknown }) => void,
  ): void;
}

const PRELUDE = `const listen = (handler) => { onmessage = (event) => handler(event.data); };
const tell = (message, transferred) => postMessage(message, transferred);
`;

/** Web workers, where there are any: in pages, in their workers, in Deno and Bun. */
export const pageTask: TaskStarter = (text, { onMessage, onFailure }) => {
  const { Worker, Blob, URL } = globalThis as unknown as PageScope;
  if (!Worker || !Blob || !URL) return "there are no workers here; in Node they come with tidemark/node";
  const url = URL.createObjectURL(new Blob([PRELUDE, text], { type: "text/javascript" }));
  try {
    // Deno has no others
    const worker = new Worker(url, { type: "module" });
    worker.addEventListener("message", ({ data }) => onMessage(data));
    // a policy of the page that forbids workers from text is an event without a message
    worker.addEventListener("error", ({ message }) => onFailure(message ?? "its text was refused (worker-src blob:)"));
    const end = (): void => {
      worker.terminate();
      URL.revokeObjectURL(url);
    };
    return { post: (message) => worker.postMessage(message), end };
  } catch (error) {
    URL.revokeObjectURL(url);
    return String(error);
  }
};
