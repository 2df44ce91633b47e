/**
 * @file A worker as asynchronous functions. A call may have a time limit: a worker that is still busy then is
 * terminated, and the next call starts a new one.
 */
import type { Answer, Call, CallName, Calls, Said, Told } from "../protocol.ts";

/** Why a call has no answer: it timed out, or the page terminated the worker. */
const [TOO_LONG, ENDED] = ["too long", "ended"] as const;

interface Waiting {
  resolve(result: never): void;
  reject(why: string): void;
}

export interface Client {
  call<K extends CallName>(name: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>>;
  /** The same with a limit in milliseconds; rejects after it. */
  callWithin<K extends CallName>(ms: number, name: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>>;
  /** Starts the worker before the first call. */
  start(): void;
  /** Terminates the worker; pending calls are rejected. */
  end(): void;
}

export function createClient(heard: (told: Told) => void = () => {}): Client {
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
    worker = new Worker(new URL("worker.js", document.baseURI), { name: "tidemark" });
    worker.addEventListener("message", ({ data }: MessageEvent<Said>) => {
      if ("told" in data) heard(data);
      else answered(data);
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
  const call: Client["call"] = (name, ...args) =>
    new Promise((resolve, reject) => {
      const said: Call = { id: calls++, name, args };
      waiting.set(said.id, { resolve, reject });
      started().postMessage(said);
    });
  const callWithin: Client["callWithin"] = (ms, name, ...args) =>
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
