/**
 * @file The last durable points of one kind: two, so that there is an earlier one if a file is damaged, and a third
 * while it is being written. A point is removed only when two later ones are durable.
 */
import type { Kind } from "./snapshot-file.ts";
import type { Store } from "./store.ts";

export const KEPT = 2;

export class DurablePoints {
  readonly #store: Store;
  readonly #kind: Kind;
  #steps: number[];

  /** `steps`: existing points, oldest first. */
  constructor(store: Store, kind: Kind, steps: readonly number[] = []) {
    this.#store = store;
    this.#kind = kind;
    this.#steps = [...steps];
  }

  /** `keep`: whether a file has another use and must stay. */
  async add(step: number, fill: (block: Uint8Array) => void, keep: (step: number) => boolean): Promise<void> {
    // the previous point is durable before this one begins, so there are always two
    const last = this.#steps.at(-1);
    if (last !== undefined) await this.#store.durable({ kind: this.#kind, step: last });
    this.#steps = this.#steps.filter((each) => each !== step);
    for (const old of this.#steps.splice(0, Math.max(0, this.#steps.length - KEPT))) await this.#drop(old, keep);
    this.#steps.push(step);
    await this.#store.put({ kind: this.#kind, step }, fill);
  }

  async #drop(step: number, keep: (step: number) => boolean): Promise<void> {
    if (!keep(step)) await this.#store.remove({ kind: this.#kind, step });
  }
}
