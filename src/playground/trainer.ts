/**
 * @file Two trainings of one model side by side on the same batches: one with everything stored, one with the current
 * plan, which may change between any two steps. Losses are compared at every step and states by their hash; whatever a
 * plan moves or recomputes, no bit may differ.
 */

import type { Elements } from "../runtime/executable.ts";
import { storageOf } from "../trace/tensor.ts";
import { flatten } from "../trace/tree.ts";
import type { PlaygroundModel } from "./model.ts";
import { RunningProgram, type SentProgram } from "./program.ts";
import { sha256 } from "./sha256.ts";

/** The report of one step, on either side. */
export interface StepReport {
  /** Counted from 1. */
  readonly step: number;
  readonly loss: number;
  readonly storedLoss: number;
  readonly ms: number;
  readonly storedMs: number;
}

/** SHA-256 over the bytes of all parameters, in the order of the state's tree. */
export interface StateHashes {
  readonly step: number;
  readonly hash: string;
  readonly storedHash: string;
}

export class Trainer {
  readonly model: PlaygroundModel;
  steps = 0;
  #current: RunningProgram;
  #stored: RunningProgram;
  /** Leaves of the state that are parameters. */
  readonly #isParameter: readonly boolean[];

  constructor(model: PlaygroundModel, stored: SentProgram) {
    this.model = model;
    const { leaves, paths } = flatten(model.init(), "state");
    const first = leaves.map((leaf) => storageOf(leaf).read());
    this.#isParameter = paths.map((path) => path.startsWith("state.params"));
    this.#stored = new RunningProgram(stored, first);
    this.#current = new RunningProgram(stored, first);
  }

  /** Continues in another program from the same state. */
  change(program: SentProgram): void {
    this.#current = new RunningProgram(program, this.#current.state());
  }

  step(): StepReport {
    const batch = this.model.batch(this.steps);
    this.steps += 1;
    const both = [this.#stored, this.#current] as const;
    // Alternate the order: the second run finds the batch, but not its own memory, in the caches.
    const order = this.steps % 2 === 0 ? both : both.toReversed();
    const done = new Map(order.map((run) => [run, timed(() => run.step(batch))]));
    const [[storedLoss, storedMs], [loss, ms]] = both.map((run) => done.get(run)) as [Timed, Timed];
    return { step: this.steps, loss, storedLoss, ms, storedMs };
  }

  hashes(): StateHashes {
    const hash = (state: readonly Elements[]): string =>
      sha256(state.filter((_, i) => this.#isParameter[i]).map(bytesOf));
    return { step: this.steps, hash: hash(this.#current.state()), storedHash: hash(this.#stored.state()) };
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Elements): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** A loss, and the milliseconds that it took. */
type Timed = readonly [number, number];

function timed(run: () => number): Timed {
  const started = performance.now();
  const result = run();
  return [result, performance.now() - started];
}
