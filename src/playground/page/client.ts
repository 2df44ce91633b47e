/**
 * @file A worker as asynchronous functions. A call may have a time limit: a worker that is still busy then is
 * terminated, and the next call starts a new one.
 */
import type { Answer, Calls, Told } from "../protocol.ts";

/** Why a call has no answer: it timed out, or the page terminated the worker. */
const [TOO_LONG, ENDED] = ["too long", "ended"] as const;

interface Waiting {
  resolve(result: never): void;
  reject(why: string): void;
}

type Given<C, K extends keyof C> = C[K] extends (...args: infer A) => unknown ? A : never;
type Result<C, K extends keyof C> = C[K] extends (...args: never[]) => infer R ? Awaited<R> : never;

/** Of a worker with these calls. */
export interface Client<C = Calls> {
  call<K extends keyof C>(name: K, ...args: Given<C, K>): Promise<Result<C, K>>;
  /** The same with a limit in milliseconds; rejects after it. */
  callWithin<K extends keyof C>(ms: number, name: K, ...args: Given<C, K>): Promise<Result<C, K>>;
  /** Starts the worker before the first call. */
  start(): void;
  /** Terminates the worker; pending calls are rejected. */
  end(): void;
}

declare global {
  interface Window {
    /** What worker.js does, in a page that has read it as a script of its own. */
    TIDEMARK_WORK?: () => void;
  }
}

/** A worker of the text of a function: a page that was opened from a file can load none. */
export function workerOf(work: () => void): Worker {
  const url = URL.createObjectURL(new Blob([`(${work.toString()})()`], { type: "text/javascript" }));
  const worker = new Worker(url, { name: "tidemark" });
  URL.revokeObjectURL(url);
  return worker;
}

/** The worker whose script lies beside the page. */
export const ownWorker = (): Worker =>
  window.TIDEMARK_WORK
    ? workerOf(window.TIDEMARK_WORK)
    : new Worker(new URL("worker.js", document.baseURI), { name: "tidemark" });

/** Comes before the first worker: a page that was opened from a file reads the script of its workers. */
export async function readWorkerScript(): Promise<void> {
  if (location.protocol !== "file:") return;
  const script = document.createElement("script");
  await new Promise<void>((resolve, reject) => {
    script.onload = () => resolve();
    script.onerror = () => reject("worker.js is not beside the page");
    script.src = "worker.js";
    document.head.append(script);
  });
}

/** @param start makes a worker that answers these calls */
export function createClient<C = Calls, T extends object = Told>(
  heard: (told: T) => void = () => {},
  start: () => Worker = ownWorker,
): Client<C> {
  let worker: Worker | null = null;
  let calls = 0;
  const waiting = new Map<number, Waiting>();
  const drop = (why: string): void => {
    const all = [...waiting.values()];
    waiting.clear();
    for (const who of all) who.reject(why);
  };
  const answered = (answer: Answer): void => {
    const who = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ("failure" in answer) who?.reject(answer.failure);
    else who?.resolve(answer.result as never);
  };
  const started = (): Worker => {
    if (worker) return worker;
    worker = start();
    worker.addEventListener("message", ({ data }: MessageEvent<Answer | T>) => {
      if ("told" in data) heard(data as T);
      else answered(data as Answer);
    });
    worker.addEventListener("error", (event) => {
      drop(event.message || "the worker did not start");
    });
    return worker;
  };
  const end = (): void => {
    worker?.terminate();
    worker = null;
    drop(ENDED);
  };
  const call: Client<C>["call"] = (name, ...args) =>
    new Promise((resolve, reject) => {
      const said = { id: calls++, name, args };
      waiting.set(said.id, { resolve, reject });
      started().postMessage(said);
    });
  const callWithin: Client<C>["callWithin"] = (ms, name, ...args) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(TOO_LONG);
        end();
      }, ms);
      call(name, ...args)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  return { call, callWithin, start: () => void started(), end };
}
