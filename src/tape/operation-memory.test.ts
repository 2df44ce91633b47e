/** @file Operations outside of traces and tapes run in one pool: nothing stays allocated, limits hold, and snapshots can be read. */
import { afterEach, expect, it } from "vitest";
import "../../tests/support/host.ts";
import { concat, matmul, random, sort, type Tensor, tensor, zeros } from "../api/index.ts";
import { readPickle } from "../view/pickle.ts";
import { operationMemory } from "./operation-memory.ts";

afterEach(() => {
  operationMemory.limit(null);
  operationMemory.record(0);
  operationMemory.release();
});

it("holds nothing between operations, and no more than the largest needed, whatever shapes come", () => {
  for (let n = 1000; n > 0; n -= 50) random.normal(random.key(n), [n]).mul(2).tanh();
  const first = operationMemory.stats();
  expect(first).toMatchObject({ allocated: 0, active: 0, blocks: 0 });
  expect(first.allocations).toBeGreaterThan(40);
  for (let n = 1; n <= 1000; n += 50) zeros([n]).add(1).exp();
  expect(operationMemory.stats().reserved).toBe(first.reserved);
  expect(first.reserved).toBeLessThan(64 * 1024);
});

it("gives the results of operations on operands that are the same, empty, many, or views of others", () => {
  const x = tensor([3, 1, 2]);
  expect(x.mul(x).toArray()).toEqual([9, 1, 4]);
  expect(zeros([0]).add(1).toArray()).toEqual([]);
  expect(x.reshape([3, 1]).reshape([3]).toArray()).toEqual([3, 1, 2]);
  expect(
    concat(Array.from({ length: 300 }, () => x))
      .sum()
      .item(),
  ).toBe(1800);
  expect(sort(x).toArray()).toEqual([1, 2, 3]);
  expect(matmul(zeros([0, 3]), zeros([3, 2])).shape).toEqual([0, 2]);
  expect(operationMemory.stats().blocks).toBe(0);
});

it("refuses an operation above the limit with the line that asked for it, and goes on", () => {
  const x = random.normal(random.key(1), [1000]);
  x.data();
  const y: Tensor = x.mul(2);
  operationMemory.limit("8KiB");
  expect(() => x.add(y)).toThrow(/PoolExhausted: operations.*operation-memory\.test\.ts:\d+/s);
  expect(operationMemory.stats()).toMatchObject({ allocated: 0, blocks: 0, limit: 8192 });
  expect(operationMemory.stats().peak.reserved).toBeLessThanOrEqual(8192);
  expect(tensor([1, 2]).add(1).toArray()).toEqual([2, 3]);
  operationMemory.limit(null);
  expect(x.add(y).data()[0]).toBe(Math.fround((x.data()[0] as number) * 3));
  expect(() => operationMemory.limit("many")).toThrow("many");
});

it("remembers allocations for a snapshot in PyTorch's form", () => {
  operationMemory.record(100);
  tensor([1, 2, 3]).mul(tensor([4, 5, 6]));
  type Fields = ReadonlyMap<string, unknown>;
  const snapshot = readPickle(operationMemory.snapshot()) as Fields;
  const [trace] = snapshot.get("device_traces") as readonly (readonly Fields[])[];
  expect(trace?.map((event) => event.get("action"))).toEqual([
    ...["alloc", "alloc", "alloc"],
    ...["free_requested", "free_completed", "free_requested", "free_completed", "free_requested", "free_completed"],
  ]);
  const [frame] = (trace?.[0]?.get("frames") ?? []) as readonly Fields[];
  expect(frame?.get("filename")).toContain("operation-memory.test.ts");
  expect(() => operationMemory.record(0.5)).toThrow("InvalidArgument: operations: a history of 0.5");
});
