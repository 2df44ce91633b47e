/**
 * @file The script of every worker of the playground. It hears calls, does its work and answers. Code of the user's runs
 * here too: before anything else the ways out of a worker are closed, so all that a text can do is compute; the page ends
 * the worker if that takes too long.
 */
import type { Call, Calls, Said } from "../protocol.ts";
import { createWork } from "../work.ts";

const say = self.postMessage.bind(self) as (said: Said) => void;

/** Networks, other workers, storage, messages to others, an end that nobody hears of: nothing here needs them. */
const WAYS_OUT = [
  ...["fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "WebTransport", "EventSource", "RTCPeerConnection"],
  ...["importScripts", "Worker", "SharedWorker", "BroadcastChannel", "MessageChannel", "postMessage"],
  ...["indexedDB", "caches", "navigator", "Notification", "close"],
];

function closeWaysOut(): void {
  for (let scope: object | null = self; scope !== null; scope = Object.getPrototypeOf(scope) as object | null) {
    for (const name of WAYS_OUT) if (Object.hasOwn(scope, name)) Reflect.deleteProperty(scope, name);
  }
  // What could not be deleted is hidden.
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
