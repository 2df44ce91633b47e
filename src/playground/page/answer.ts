/**
 * @file A worker that receives calls and answers them. User code may run in it: first, the worker's access to networks, storage and
 * other contexts is removed, so a text can only compute; the page terminates the worker if that takes too long.
 */
import type { Gpu } from "../../runtime/webgpu/gpu.ts";
import type { Answer } from "../protocol.ts";

/** Networks, other workers, storage, messages, silent termination: nothing here needs them. */
const WAYS_OUT = [
  ...["fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "WebTransport", "EventSource", "RTCPeerConnection"],
  ...["importScripts", "Worker", "SharedWorker", "BroadcastChannel", "MessageChannel", "postMessage"],
  ...["indexedDB", "caches", "navigator", "Notification", "close"],
];

function closeWaysOut(): void {
  for (let scope: object | null = self; scope !== null; scope = Object.getPrototypeOf(scope) as object | null) {
    for (const name of WAYS_OUT) if (Object.hasOwn(scope, name)) Reflect.deleteProperty(scope, name);
  }
  // Globals that cannot be deleted are shadowed.
  for (const name of WAYS_OUT) if (name in self) Object.defineProperty(self, name, { value: undefined });
}

/** What the work of a worker can do besides answering. */
export interface WorkerSurroundings<T> {
  tell(said: T): void;
  /** Runs something after pending messages were received. */
  later(work: () => void): void;
  /** WebGPU, which only computes; where the worker has it. */
  readonly gpu: Gpu | undefined;
}

/** Message and stack: some engines begin the stack with the message, some do not. */
function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, stack = "" } = error;
  return stack.includes(message) ? stack : `${message}\n${stack}`;
}

interface Called {
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

/** Answers every call by the work's function of that name. */
export function answerCalls<T extends object>(create: (surroundings: WorkerSurroundings<T>) => object): void {
  const say = self.postMessage.bind(self) as (said: T | Answer) => void;
  const setLater = self.setTimeout.bind(self);
  const { gpu } = navigator as { readonly gpu?: Gpu };
  const work = create({ tell: say, later: (does) => void setLater(does, 0), gpu });
  const calls = new Map<string, (...args: readonly unknown[]) => unknown>(Object.entries(work));
  self.addEventListener("message", ({ data: { id, name, args } }: MessageEvent<Called>) => {
    const failed = (error: unknown): void => say({ id, failure: failureOf(error) });
    try {
      const result = calls.get(name)?.(...args);
      if (result instanceof Promise) result.then((later) => say({ id, result: later }), failed);
      else say({ id, result });
    } catch (error) {
      failed(error);
    }
  });
  closeWaysOut();
}
