/** @file Yielding to the event loop, in whatever way the environment has: input and drawing first where it can be asked for. */
import { describe, fail } from "../trace/arguments.ts";

interface Scope {
  readonly scheduler?: { yield?(): Promise<void> };
  readonly setImmediate?: (run: () => void) => void;
  readonly MessageChannel?: new () => { readonly port1: Port; readonly port2: Port };
  readonly setTimeout: (run: () => void, ms: number) => void;
}

interface Port {
  onmessage: (() => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

/**
 * Goes on after what waits in the event loop. Timers are the last choice: browsers make nested ones wait for 4 ms. @internal
 */
export function nextTask(scope = globalThis as unknown as Scope): Promise<void> {
  const { scheduler, setImmediate, MessageChannel, setTimeout } = scope;
  if (scheduler?.yield) return scheduler.yield();
  return new Promise((resolve) => {
    if (setImmediate) return setImmediate(resolve);
    if (!MessageChannel) return setTimeout(resolve, 0);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** The part of an `AbortSignal` that is used, for a core without the types of pages. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(kind: "abort", listener: () => void): void;
  removeEventListener(kind: "abort", listener: () => void): void;
}

/** Throws unless a signal is one, or there is none. @internal */
export function requireSignal(name: string, signal: unknown): void {
  const { addEventListener } = (signal ?? {}) as Partial<AbortSignalLike>;
  if (signal === undefined || typeof addEventListener === "function") return;
  fail("InvalidArgument", `${name}: signal is ${describe(signal)}`, "give the signal of an AbortController");
}

/** A signal that the library gives itself. @internal */
export class StopSignal implements AbortSignalLike {
  aborted = false;
  reason: unknown;
  readonly #listeners = new Set<() => void>();

  addEventListener(_: "abort", listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }

  stop(reason?: unknown): void {
    this.aborted = true;
    this.reason = reason;
    for (const listener of [...this.#listeners]) listener();
  }
}
