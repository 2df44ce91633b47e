/** @file The heap against sorting. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { StepHeap } from "./heap.ts";

it("gives back steps by key, then by position", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(50), fc.integer({ min: -3, max: 3 }))), (entries) => {
      const heap = new StepHeap();
      for (const [step, key] of entries) heap.push(step, key);
      const out: number[] = [];
      for (let step = heap.pop(); step !== undefined; step = heap.pop()) out.push(step);
      expect(out).toEqual([...entries].sort((a, b) => a[1] - b[1] || a[0] - b[0]).map(([step]) => step));
    }),
    { seed: 3 },
  );
});
