/** @file Orders are told apart by their steps alone. */
import { expect, test } from "vitest";
import { numbers } from "../../../bench/order-programs.ts";
import { OrderCache, sameOrder } from "./order-cache.ts";

test("equal orders are one, different ones are not, whatever holds them", () => {
  const known = new OrderCache();
  const first = known.of(Int32Array.of(0, 2, 1));
  first.peak = { bytes: 7, position: 1, count: 1, area: 9 };
  expect(known.of([0, 2, 1])).toBe(first);
  expect(known.of([0, 1, 2]).peak).toBeNull();
  expect(known.of([0, 2]).peak).toBeNull();
});

test("what is remembered of thousands of random orders is theirs", () => {
  const random = numbers(1);
  const known = new OrderCache();
  const seen = new Map<string, object>();
  for (let i = 0; i < 5000; i++) {
    const order = Array.from({ length: 1 + random(6) }, () => random(4));
    const entry = known.of(order);
    expect(sameOrder(entry.order, order)).toBe(true);
    expect(seen.get(order.join()) ?? entry).toBe(entry);
    seen.set(order.join(), entry);
  }
  expect(new Set(seen.values()).size).toBe(seen.size);
});
