/**
 * @file The library in a worker, as asynchronous functions. Pages may be opened from files, where scripts cannot be read and workers
 * cannot be loaded: so the script of the worker is a function that the page has as a value, and its text makes the worker.
 */
import { createClient, workerOf } from "../../../src/playground/page/client.ts";
import type { Calls, Told } from "../engine/calls.ts";

declare global {
  interface Window {
    /** Made by the build: its body is the worker's script. */
    readonly TIDEMARK_ENGINE: () => void;
  }
}

/** A worker of this script. */
export function engineWorker(): Worker {
  return workerOf(window.TIDEMARK_ENGINE);
}

export function createEngine(heard: (told: Told) => void = () => {}) {
  return createClient<Calls, Told>(heard, engineWorker);
}

export type Engine = ReturnType<typeof createEngine>;

/**
 * Calls one at a time, of which only the newest that waits is made: a slider asks more often than answers come. Answers that are out of
 * date are null.
 */
export function latest<A extends readonly unknown[], R>(call: (...args: A) => Promise<R>) {
  let wanted = 0;
  let running: Promise<unknown> = Promise.resolve();
  return async (...args: A): Promise<R | null> => {
    const mine = ++wanted;
    await running;
    if (mine !== wanted) return null;
    const answer = call(...args);
    running = answer.catch(() => null);
    const result = await answer;
    return mine === wanted ? result : null;
  };
}
