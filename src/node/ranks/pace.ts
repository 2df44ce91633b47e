/**
 * @file When the ranks of a run meet, and when they save. The first rank decides both, since clocks differ:
 *
 *   meets    often enough that what is durable is soon known to be, and so rarely that it costs nothing: between, it only steps
 *   saves    every `every` steps, at a meeting that is there for it, or at the first meeting at which it is time (pace.ts)
 */
import { Pace } from "../pace.ts";
import type { Decision } from "./snapshots.ts";

const MEET_MS = 100;
/** From one step to many: an interval is at most so many times as long as the one before. */
const GROWTH = 4;

export class RankPace {
  readonly #pace: Pace;
  readonly #every: number | null;
  readonly #steps: number;
  #met = { step: 0, at: performance.now() };
  #interval = 1;
  #saved: number;
  #isDue = false;

  constructor(every: number | null, begun: number, steps: number) {
    this.#pace = new Pace(every);
    this.#every = every;
    this.#steps = steps;
    this.#saved = begun;
    this.#met = { step: begun, at: performance.now() };
  }

  /** The step after which ranks meet first. */
  get first(): number {
    return Math.min(this.#met.step + 1, this.#steps);
  }

  /** Records a step, given how long the last file took. */
  stepped(writeMs: number): void {
    this.#isDue = this.#pace.stepped(writeMs);
  }

  shouldYield(busy: boolean): boolean {
    return this.#pace.shouldYield(busy);
  }

  yieldToEvents(): Promise<void> {
    return this.#pace.yieldToEvents();
  }

  /** On the first rank, at the meeting after a step. */
  decide(step: number): Decision {
    const now = performance.now();
    const msPerStep = (now - this.#met.at) / Math.max(1, step - this.#met.step);
    const wanted = Math.floor(MEET_MS / Math.max(msPerStep, 1e-3));
    this.#interval = Math.max(1, Math.min(wanted, GROWTH * this.#interval));
    this.#met = { step, at: now };
    const save = this.#isDue || step === this.#steps;
    if (save) {
      this.#pace.saved();
      this.#saved = step;
      this.#isDue = false;
    }
    const nextSave = this.#every === null ? this.#steps : this.#saved + this.#every;
    return { save, next: Math.min(step + this.#interval, nextSave, this.#steps) };
  }
}
