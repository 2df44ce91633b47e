/**
 * @file The script of every worker of the playground. It receives calls and answers them. User code runs here too:
 * first, the worker's access to networks, storage and other contexts is removed, so a text can only compute; the page
 * terminates the worker if that takes too long.
 */
import type { Call, Calls, Said } from "../protocol.ts";
import { createWork } from "../work.ts";

const say = self.postMessage.bind(self) as (said: Said) => void;

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

const setLater = self.setTimeout.bind(self);
const work = createWork({ tell: say, later: (does) => void setLater(does, 0) });

self.addEventListener("message", ({ data }: MessageEvent<Call>) => {
  const { id, name, args } = data;
  try {
    const does = work[name] as (...given: unknown[]) => ReturnType<Calls[typeof name]>;
    say({ id, result: does(...args) });
  } catch (error) {
    say({ id, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
});

closeWaysOut();
