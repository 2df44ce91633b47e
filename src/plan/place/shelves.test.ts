/** @file Shelves against a list of everything that is filtered and sorted anew for each question. */
import { expect, it } from "vitest";
import { randomFrom } from "./random.ts";
import { Shelves, type Spans } from "./shelves.ts";

/** Mostly short items, some long ones, so that all scales are in use. */
function spansFor(n: number, count: number, random: () => number): Spans {
  const lo = Int32Array.from({ length: n }, () => Math.floor(random() * count));
  const hi = lo.map((start) => Math.min(count, start + 1 + Math.floor(count * random() ** 6)));
  return { n, count, lo, hi, size: Float64Array.from({ length: n }, () => 1 + Math.floor(random() * 9)) };
}

function expected({ n, lo, hi }: Spans, { inside }: Shelves, i: number, key: Float64Array): number[] {
  const near = Array.from({ length: n }, (_, j) => j).filter(
    (j) => inside[j] === 1 && lo[j]! < hi[i]! && lo[i]! < hi[j]!,
  );
  return near.sort((a, b) => key[a]! - key[b]! || a - b);
}

it("lists what is placed and shares a section, by offset and by top, whatever has come and gone", () => {
  for (const [n, count] of [
    [12, 5],
    [150, 90],
    [1500, 1200],
  ] as const) {
    const random = randomFrom(n);
    const spans = spansFor(n, count, random);
    const shelves = new Shelves(spans, true);
    for (let i = 0; i < n; i++) shelves.offset[i] = Math.floor(random() * 40);
    shelves.fill(Int32Array.from({ length: n }, (_, i) => i).filter((i) => i % 3 > 0));
    for (let k = 0; k < 600; k++) {
      const i = Math.floor(random() * n);
      if (shelves.inside[i] === 1) shelves.take(i);
      else shelves.put(i, Math.floor(random() * 40));
      const j = Math.floor(random() * n);
      const found = shelves.around(j);
      expect([...shelves.byOffset.subarray(0, found)]).toEqual(expected(spans, shelves, j, shelves.offset));
      shelves.aroundByTop(j);
      expect([...shelves.byTop.subarray(0, found)]).toEqual(expected(spans, shelves, j, shelves.top));
    }
    shelves.clear();
    expect(shelves.around(0)).toBe(0);
  }
});
