/** @file Numbers of the collectives that are in flight at a time (script.ts), by which targets know them. */
import { invariant } from "../base/invariant.ts";

/** What is in flight where a statement stands, in loops and around them, by the lowest numbers that are free. */
export class Flights {
  readonly #slots: (object | null)[] = [];

  get count(): number {
    return this.#slots.filter((flight) => flight !== null).length;
  }

  begin(flight: object): number {
    invariant(!this.#slots.includes(flight), () => "starts a collective again");
    const free = this.#slots.indexOf(null);
    const slot = free < 0 ? this.#slots.length : free;
    this.#slots[slot] = flight;
    return slot;
  }

  end(flight: object): number {
    const slot = this.#slots.indexOf(flight);
    invariant(slot >= 0, () => "waits for a collective that was not started");
    this.#slots[slot] = null;
    return slot;
  }
}
