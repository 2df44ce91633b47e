/**
 * @file Decides when a run yields and saves. Steps are blocking calls; between them the run regularly
 *
 *   yields     lets the event loop run, so that writes proceed, timers fire and progress is reported
 *   saves      makes its state durable: every `every` evaluations, or when that is cheap relative to the time since
 */
import { nextTask } from "../api/event-loop.ts";

/** Yield to the event loop at least this often; more often while files are being written. */
const YIELD_MS = 50;
const BUSY_YIELD_MS = 4;
/** Saves take at most a twentieth of the time and happen at most once a second, unless `every` is set. */
const SHARE = 20;
const SAVE_MS = 1000;

export class Pace {
  readonly #every: number | null;
  #yielded = performance.now();
  #save = performance.now();
  #evaluations = 0;

  constructor(every: number | null) {
    this.#every = every;
  }

  /** Records a step that was run or reversed; returns whether to save now, given that the last save took `writeMs`. */
  stepped(writeMs: number): boolean {
    this.#evaluations++;
    if (this.#every !== null) return this.#evaluations >= this.#every;
    return performance.now() - this.#save >= Math.max(SAVE_MS, SHARE * writeMs);
  }

  saved(): void {
    this.#evaluations = 0;
    this.#save = performance.now();
  }

  shouldYield(busy: boolean): boolean {
    return performance.now() - this.#yielded >= (busy ? BUSY_YIELD_MS : YIELD_MS);
  }

  async yieldToEvents(): Promise<void> {
    await nextTask();
    this.#yielded = performance.now();
  }
}
