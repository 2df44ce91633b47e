/**
 * @file Values of a tape that make room for others, to be recomputed from the log when they are read: a budget for a program that is decided as it
 * runs (Kirisame et al., "Dynamic tensor rematerialization", 2021). The value with the lowest
 *
 *   cost of computing it again, with evicted values that it is made from / (bytes · evaluations of entries since its last use)
 *
 * goes first. Where recomputation takes many times the work of the program, that is an error and not a long wait.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import { byteLength } from "../ir/type.ts";
import type { Pool } from "../pool/pool.ts";
import type { Log } from "./log.ts";

/** Operations that may run again for each one that ran once, and some for small programs. */
const MOST_REPEATS = 20;
const FREE_REPEATS = 1000;
/** The part of the limit up to which values are moved together. */
const MOST_FULL = 15 / 16;
/** Evicted values that are followed from one to the next. */
const MOST_FOLLOWED = 16;
/** What an operation costs besides its work, in floating-point operations. */
const CALL_FLOPS = 2000;

export class Eviction {
  readonly #log: Log;
  readonly #pool: Pool;
  readonly #give: (value: number) => void;
  /** Values that must stay for now, by how many reasons there are. */
  readonly #pinned = new Map<number, number>();
  readonly #costs: number[] = [];
  #clock = 0;
  #lastUse = new Int32Array(256);
  #first = 0;
  #again = 0;

  constructor(log: Log, pool: Pool, give: (value: number) => void) {
    this.#log = log;
    this.#pool = pool;
    this.#give = give;
  }

  pin(values: Iterable<number>): void {
    for (const value of values) this.#pinned.set(value, (this.#pinned.get(value) ?? 0) + 1);
  }

  unpin(values: Iterable<number>): void {
    for (const value of values) {
      const reasons = (this.#pinned.get(value) ?? 1) - 1;
      if (reasons === 0) this.#pinned.delete(value);
      else this.#pinned.set(value, reasons);
    }
  }

  /** An entry runs on these values. */
  use(values: readonly number[]): void {
    this.#clock += 1;
    for (const value of values) {
      if (value >= this.#lastUse.length) {
        const longer = new Int32Array(2 * (value + 1));
        longer.set(this.#lastUse);
        this.#lastUse = longer;
      }
      this.#lastUse[value] = this.#clock;
    }
  }

  /** Counts operations that run for the first time, and those that run because something was evicted. */
  count(first: number, again: number): void {
    this.#first += first;
    this.#again += again;
    if (this.#again <= MOST_REPEATS * this.#first + FREE_REPEATS) return;
    const summary = `tape: within ${grouped(this.#pool.limitBytes)} bytes, ${grouped(this.#again)} operations were recomputed for ${grouped(this.#first)} of the program`;
    throw new TidemarkError("PoolExhausted", summary, {
      help: "raise `memory`: what the program needs at one time hardly fits, and most of the work is done again and again",
    });
  }

  /**
   * Evicts until there is room for so many bytes, or nothing is left that may go. Gaps that are too small are not enough where little is free in all: the
   * pool would move what is live for every allocation.
   */
  makeRoom(bytes: number): void {
    const pool = this.#pool;
    const most = pool.limitBytes * MOST_FULL - bytes;
    while (!pool.fits(bytes) && (pool.refuses(bytes) || pool.stats().active > most)) {
      const victim = this.#lowest();
      if (victim < 0) return;
      const block = this.#log.block[victim] as number;
      // views go with what they are of
      for (let value = 0; value < this.#log.values; value++) if (this.#log.block[value] === block) this.#give(value);
    }
  }

  #lowest(): number {
    const { block, values } = this.#log;
    const pinnedBlocks = new Set([...this.#pinned.keys()].map((value) => block[value] as number));
    let best = -1;
    let lowest = Number.POSITIVE_INFINITY;
    for (let value = 0; value < values; value++) {
      const own = block[value] as number;
      if (own < 0 || pinnedBlocks.has(own)) continue;
      const stale = 1 + this.#clock - (this.#lastUse[value] ?? 0);
      const score = this.#costOf(value) / (this.#pool.bytes(own) * stale);
      if (score >= lowest) continue;
      best = value;
      lowest = score;
    }
    return best;
  }

  /** With evicted values on the way. */
  #costOf(value: number): number {
    const { producer, block } = this.#log;
    const pending = [value];
    let sum = 0;
    for (let followed = 0; followed < MOST_FOLLOWED; followed++) {
      const next = pending.pop();
      if (next === undefined) break;
      const entry = producer[next] as number;
      sum += entry < 0 ? byteLength(this.#log.typeOf(next)) : this.#entryCost(entry);
      if (entry < 0) continue;
      const inputs = this.#log.signatureOf(entry).inputTypes.length;
      for (let i = 0; i < inputs; i++) {
        const input = this.#log.inputAt(entry, i);
        if ((block[input] as number) < 0) pending.push(input);
      }
    }
    return sum;
  }

  #entryCost(entry: number): number {
    const signature = this.#log.signatureOf(entry);
    const known = this.#costs[signature.number];
    if (known !== undefined) return known;
    const { op, attrs, regions, inputTypes, outputTypes } = signature;
    const bytes = [...inputTypes, ...outputTypes].reduce((sum, type) => sum + byteLength(type), 0);
    const cost = CALL_FLOPS + bytes + op.cost(inputTypes, outputTypes, attrs, regions).flops;
    this.#costs[signature.number] = cost;
    return cost;
  }
}
