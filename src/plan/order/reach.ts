/** @file Tests whether one step depends on another, by forward search along dependencies with a limit on total work. */
import { at } from "../../base/invariant.ts";
import { type Lists, listOf } from "./lists.ts";

/** Steps visited by all searches together, for each step of the program. */
const CREDIT_PER_STEP = 64;

export class Reach {
  readonly #successors: Lists;
  readonly #seen: Int32Array;
  #search = 0;
  #credit: number;

  constructor(successors: Lists) {
    this.#successors = successors;
    const steps = successors.from.length - 1;
    this.#seen = new Int32Array(steps);
    this.#credit = CREDIT_PER_STEP * (steps + 1);
  }

  /** Whether any of the targets is `from` or depends on it. Steps are in program order: none depends on a later one. */
  meets(from: number, targets: readonly number[]): "yes" | "no" | "unknown" {
    const wanted = new Set(targets);
    const last = targets.reduce((a, b) => Math.max(a, b), 0);
    this.#search += 1;
    const stack = [from];
    for (let step = stack.pop(); step !== undefined; step = stack.pop()) {
      this.#credit -= 1;
      if (wanted.has(step)) return "yes";
      if (this.#credit < 0) return "unknown";
      for (const next of listOf(this.#successors, step)) {
        if (next > last || at(this.#seen, next) === this.#search) continue;
        this.#seen[next] = this.#search;
        stack.push(next);
      }
    }
    return "no";
  }
}
