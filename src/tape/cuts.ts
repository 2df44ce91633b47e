/**
 * @file Where a run of operations that never came before is cut into pieces that may come again. Programs repeat themselves: what follows the last few
 * operations is most often what followed them before. Where it is not always the same, the program has a choice there (the next
 * node of a tree is a leaf or an inner one), and the run is cut:
 *
 *   … tanh mul add │ matmul add sigmoid … tanh mul add │ take matmul …
 *                  ╰ after `tanh mul add` came `matmul` and `take`
 *
 * What followed is learnt from every run, before it is cut.
 */
import type { Log } from "./log.ts";

/** So many operations are looked at together. */
const CONTEXT = 6;
/** More than one operation followed. */
const SEVERAL = -1;
/** Of a piece. */
const MOST_OPERATIONS = 256;
const MOST_CONTEXTS = 262_144;

export class Cuts {
  #next = new Map<number, number>();

  /** Learns from entries in order and gives the ends of their pieces, the last one included. */
  of(log: Log, entries: readonly number[]): readonly number[] {
    const contexts = entries.map((entry) => log.context[entry] as number);
    if (this.#next.size > MOST_CONTEXTS) this.#next = new Map();
    for (let i = 0; i + 1 < entries.length; i++) {
      const context = contexts[i] as number;
      const following = log.signature[entries[i + 1] as number] as number;
      const known = this.#next.get(context);
      if (known === undefined) this.#next.set(context, following);
      else if (known !== following) this.#next.set(context, SEVERAL);
    }
    const ends: number[] = [];
    let start = 0;
    for (let i = 0; i < entries.length; i++) {
      const isLast = i === entries.length - 1;
      if (!isLast && i + 1 - start < MOST_OPERATIONS && this.#next.get(contexts[i] as number) !== SEVERAL) continue;
      ends.push(i + 1);
      start = i + 1;
    }
    return ends;
  }
}

/** Gives each entry a hash of its signature and those before it, from the first of these entries on. */
export function setContexts(log: Log, entries: readonly number[]): void {
  for (let i = 0; i < entries.length; i++) {
    let hash = 7;
    for (let k = Math.max(0, i - CONTEXT + 1); k <= i; k++) {
      hash = Math.imul(hash ^ ((log.signature[entries[k] as number] as number) + 1), 0x01000193);
      hash ^= hash >>> 13;
    }
    log.context[entries[i] as number] = hash;
  }
}
