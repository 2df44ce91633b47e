/**
 * @file When a run stops to let others work. Steps are calls that block; between them the run now and then
 *
 *   breathes   gives the event loop a turn, so that writes go on, timers fire and progress is reported
 *   saves      makes what it has durable: every so many evaluations, or when that costs little against the time since
 */

/** A turn of the event loop at least this often; more often while files are being written. */
const BREATH_MS = 50;
const BUSY_BREATH_MS = 4;
/** Saves cost at most a twentieth of the time, and come at most once a second, unless `every` says otherwise. */
const SHARE = 20;
const SAVE_MS = 1000;

export class Pace {
  readonly #every: number | null;
  #breath = performance.now();
  #save = performance.now();
  #evaluations = 0;

  constructor(every: number | null) {
    this.#every = every;
  }

  /** A step was run or reversed; whether to save now, when the last save took `writeMs`. */
  stepped(writeMs: number): boolean {
    this.#evaluations++;
    if (this.#every !== null) return this.#evaluations >= this.#every;
    return performance.now() - this.#save >= Math.max(SAVE_MS, SHARE * writeMs);
  }

  saved(): void {
    this.#evaluations = 0;
    this.#save = performance.now();
  }

  wantsBreath(busy: boolean): boolean {
    return performance.now() - this.#breath >= (busy ? BUSY_BREATH_MS : BREATH_MS);
  }

  async breathe(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#breath = performance.now();
  }
}
