/**
 * @file Improves an order at its peak. Two moves, repeated while the peak falls (or fewer steps reach it):
 *
 *   split    The minimum cut of the peak step (cut.ts) says what had better run before it and what after it. Steps on the
 *            wrong side cross over and stay next to it:
 *
 *                … a  b  x  c ▲ d  y  e …        b belongs after the peak step, y before it
 *                … a  x  c  y ▲ b  d  e …
 *
 *            This may raise the peak elsewhere; then the new peak is split in turn, a few times, before the move counts as failed.
 *   window   Steps around the peak are searched for an order that stays below it (search.ts), windows growing until
 *            one has it. Up to a thousand steps, the whole program is the last window: if that is searched to the end, the
 *            order is optimal.
 *
 * It is also optimal if the peak equals the cut of the peak step. Work is counted in steps executed, never in time, so
 * results do not depend on the machine.
 */
import { at } from "../../base/invariant.ts";
import { type Cut, minimumCut } from "./cut.ts";
import type { ListScheduler } from "./list.ts";
import { Memory, type Peak, peakOf } from "./memory.ts";
import type { Model } from "./model.ts";
import { OrderCache } from "./order-cache.ts";
import { Search } from "./search.ts";

export interface Ordering {
  readonly order: ArrayLike<number>;
  readonly peak: Peak;
  /** No order has a lower peak. */
  readonly optimal: boolean;
}

/** Steps around the peak, and steps that may be tried for one such window. The last one is for whole programs. */
const WINDOWS = [16, 64, 256, 2000];
const WINDOW_WORK = 100_000;
/** Consecutive splits that may fail to improve the order. */
const DETOUR = 6;
/** Work limit of all moves together, in steps executed: about a third of a second. */
export const WORK = 6e6;
/** The charge for other work, in steps executed per step of the program. */
const [CUT, LIST] = [3, 5];

export class Improver {
  readonly #model: Model;
  readonly #lists: ListScheduler;
  readonly #memory: Memory;
  /** Where searches begin. */
  readonly #start: Memory;
  readonly #search: Search;
  readonly #cache = new OrderCache();
  /** Step → its minimum cut, and the work to find it. */
  readonly #cuts = new Map<number, { readonly cut: Cut; readonly work: number }>();
  #work: number;

  /** `work`: of all moves together, in steps run. */
  constructor(model: Model, lists: ListScheduler, work: number = WORK) {
    this.#work = work;
    this.#model = model;
    this.#lists = lists;
    this.#memory = new Memory(model);
    this.#start = new Memory(model);
    this.#search = new Search(this.#start);
  }

  measure(order: ArrayLike<number>): Ordering {
    this.#work -= order.length;
    const record = this.#cache.of(order);
    record.peak ??= peakOf(this.#memory, order);
    return { order: record.order, peak: record.peak, optimal: false };
  }

  /** The order with steps that free memory run early. */
  early(order: ArrayLike<number>): ArrayLike<number> {
    const record = this.#cache.of(order);
    record.early ??= this.#lists.order(order, 0);
    return record.early;
  }

  /** Splits at the peak, then at the resulting peaks; returns the best order seen. */
  split(start: Ordering): Ordering {
    let [best, current] = [start, start];
    for (let detour = 0; detour < DETOUR && this.#work > 0; ) {
      const step = at(current.order, current.peak.position);
      const { cut, work } = this.#cutAt(step);
      this.#work -= work + CUT * this.#model.steps;
      if (!cut) return best;
      if (cut.bytes >= best.peak.bytes) return { ...best, optimal: true };
      current = this.#lowest([cut.smallest, cut.largest].map((before) => splitAt(current.order, before, step)));
      if (isBetter(current, best)) [best, detour] = [current, 0];
      else detour += 1;
    }
    return best;
  }

  #cutAt(step: number): { readonly cut: Cut | null; readonly work: number } {
    const record = this.#cuts.get(step);
    if (record && record.work <= this.#work) return record;
    const { cut, work } = minimumCut(this.#model, step, this.#work);
    if (cut) this.#cuts.set(step, { cut, work });
    return { cut, work };
  }

  /** Searches windows around the peak and splits the results, as long as that helps. */
  search(start: Ordering): Ordering {
    let best = start;
    while (this.#work > 0 && !best.optimal) {
      const next = this.#window(best);
      if (next === best) break;
      best = next.optimal ? next : this.split(next);
    }
    return best;
  }

  /** The best of some orders, as they are and with steps that free memory run early. */
  #lowest(orders: readonly ArrayLike<number>[]): Ordering {
    this.#work -= LIST * this.#model.steps * orders.length;
    const all = orders.flatMap((order) => [order, this.early(order)]);
    return all.map((order) => this.measure(order)).reduce((a, b) => (isBetter(b, a) ? b : a));
  }

  #window(start: Ordering): Ordering {
    const { order, peak } = start;
    const n = order.length;
    for (const most of WINDOWS) {
      const steps = Math.min(most, n);
      if (this.#work <= 0 || (most === WINDOWS.at(-1) && steps < n)) return start;
      const from = Math.max(0, Math.min(peak.position - (steps >> 1), n - steps));
      const better = this.#solve(start, from, from + steps, steps === n ? this.#work : WINDOW_WORK);
      if (better !== start || steps === n) return better;
    }
    return start;
  }

  /** A better order of the steps at [from, to), if the search finds one. */
  #solve(start: Ordering, from: number, to: number, credit: number): Ordering {
    this.#work -= from;
    this.#start.reset();
    for (let k = 0; k < from; k++) this.#start.run(at(start.order, k));
    this.#search.begin(Array.prototype.slice.call(start.order, from, to), credit);
    const { answer, order } = this.#search.find(start.peak.bytes - 1);
    this.#work -= credit - this.#search.credit;
    const whole = to - from === start.order.length;
    if (answer === "none" && whole) return { ...start, optimal: true };
    if (answer !== "found") return start;
    const all = Int32Array.from(start.order);
    all.set(order, from);
    const better = this.measure(all);
    return isBetter(better, start) ? better : start;
  }
}

/** Lower, or reached by fewer steps. */
export function isBetter(a: Ordering, b: Ordering): boolean {
  return a.peak.bytes < b.peak.bytes || (a.peak.bytes === b.peak.bytes && a.peak.count < b.peak.count);
}

/** Steps of the set, the step, all others; each in their previous order. */
function splitAt(order: ArrayLike<number>, before: Uint8Array, step: number): Int32Array {
  const split = new Int32Array(order.length);
  let first = 0;
  for (let i = 0; i < order.length; i++) first += before[i] as number;
  let [k, rest] = [0, first + 1];
  split[first] = step;
  for (let j = 0; j < order.length; j++) {
    const i = order[j] as number;
    if (before[i] === 1) split[k++] = i;
    else if (i !== step) split[rest++] = i;
  }
  return split;
}
