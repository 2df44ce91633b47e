/**
 * @file Memoized facts about orders. Moves often lead back to earlier orders: three quarters of the orders that the
 * improver measures were measured before. Equal orders are found by a hash of their steps and compared in full, so the
 * cache is exact. Work is charged as if it were done (improve.ts), so results do not depend on the cache.
 */
import type { Peak } from "./memory.ts";

export interface OrderRecord {
  readonly order: ArrayLike<number>;
  peak: Peak | null;
  /** The same with steps that free memory run early. */
  early: ArrayLike<number> | null;
}

export class OrderCache {
  readonly #byHash = new Map<number, OrderRecord[]>();

  /** The entry of an order, empty at first. */
  of(order: ArrayLike<number>): OrderRecord {
    const hash = hashOf(order);
    const alike = this.#byHash.get(hash) ?? [];
    const cached = alike.find((record) => sameOrder(record.order, order));
    if (cached) return cached;
    const fresh: OrderRecord = { order, peak: null, early: null };
    this.#byHash.set(hash, [...alike, fresh]);
    return fresh;
  }
}

function hashOf(order: ArrayLike<number>): number {
  let h = 0;
  for (let k = 0; k < order.length; k++) {
    h = Math.imul(h ^ (order[k] as number), 0x9e3779b1);
    h ^= h >>> 15;
  }
  return h;
}

export function sameOrder(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return false;
  return true;
}
