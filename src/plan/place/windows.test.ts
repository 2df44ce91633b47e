/** @file The time-window index against a list of everything that is filtered and sorted for each query. */
import { expect, it } from "vitest";
import { randomFrom } from "./random.ts";
import { type Spans, TimeWindowIndex } from "./windows.ts";

/** Mostly short items, some long ones, so that all scales are in use. */
function spansFor(n: number, count: number, random: () => number): Spans {
  const lo = Int32Array.from({ length: n }, () => Math.floor(random() * count));
  const hi = lo.map((start) => Math.min(count, start + 1 + Math.floor(count * random() ** 6)));
  return { n, count, lo, hi };
}

it("lists what is placed and shares a section in order of the key, whatever was added and removed", () => {
  for (const [n, count] of [
    [12, 5],
    [150, 90],
    [1500, 1200],
  ] as const) {
    const random = randomFrom(n);
    const spans = spansFor(n, count, random);
    const { lo, hi } = spans;
    const key = Float64Array.from({ length: n }, () => Math.floor(random() * 40));
    const index = new TimeWindowIndex(spans, key);
    const placed = new Set(Array.from({ length: n }, (_, i) => i).filter((i) => i % 3 > 0));
    index.fill(Int32Array.from(placed));
    for (let k = 0; k < 600; k++) {
      const i = Math.floor(random() * n);
      if (placed.delete(i)) index.remove(i);
      else {
        key[i] = Math.floor(random() * 40);
        placed.add(i);
        index.add(i);
      }
      const j = Math.floor(random() * n);
      const expected = [...placed].filter((other) => lo[other]! < hi[j]! && lo[j]! < hi[other]!);
      expected.sort((a, b) => key[a]! - key[b]! || a - b);
      expect([...index.result.subarray(0, index.conflicting(j))]).toEqual(expected);
    }
    index.clear();
    expect(index.conflicting(0)).toBe(0);
  }
});
