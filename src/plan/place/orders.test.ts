/** @file The orders of placement on one small problem. */
import { expect, it } from "vitest";
import type { Buffer, Problem } from "../problem.ts";
import { PLACEMENT_ORDERS } from "./orders.ts";

const rows = [
  [0, 2, 8],
  [1, 5, 4],
  [4, 5, 8],
  [2, 4, 16],
  [2, 4, 16],
  [6, 9, 1],
] as const;
const buffers = rows.map(
  ([start, end, bytes], id): Buffer => ({
    id,
    lifespan: { start, end },
    bytes,
    align: 1,
    values: [],
    kind: "activation",
  }),
);
const problem: Problem = { buffers, capacity: Number.POSITIVE_INFINITY, alignment: 1 };

function order(name: string): readonly number[] {
  return PLACEMENT_ORDERS.find((o) => o.name === name)!.of(problem);
}

it("orders put first what is large, long or early, and break ties by id", () => {
  expect(order("bytes")).toEqual([3, 4, 0, 2, 1, 5]);
  expect(order("area")).toEqual([3, 4, 0, 1, 2, 5]);
  expect(order("length")).toEqual([1, 5, 3, 4, 0, 2]);
  expect(order("start")).toEqual([0, 1, 3, 4, 2, 5]);
  expect(order("end")).toEqual([5, 2, 1, 3, 4, 0]);
});

it("breadth goes by the tightest step of each buffer's life", () => {
  // live: step 0: 8, 1: 12, 2: 36, 4: 12, 6: 1
  expect(order("breadth")).toEqual([3, 4, 1, 0, 2, 5]);
});

it("every order has every buffer once", () => {
  for (const { name, of } of PLACEMENT_ORDERS) expect([...of(problem)].sort(), name).toEqual([0, 1, 2, 3, 4, 5]);
});
