/** @file The offset with the least weight of conflicts, against trying every edge. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Buffer, Problem } from "../problem.ts";
import { PlacedItems } from "./conflicts.ts";
import { randomFrom } from "./random.ts";
import { type Sections, sectionsOf } from "./sections.ts";

function sectionsFor(rows: readonly (readonly number[])[]): Sections {
  const buffers = rows.map(
    ([start = 0, length = 1, bytes = 1], id): Buffer => ({
      id,
      lifespan: { start, end: start + length },
      bytes,
      align: 1,
      values: [],
      kind: "activation",
    }),
  );
  const problem: Problem = { buffers, capacity: Number.POSITIVE_INFINITY, alignment: 1 };
  return sectionsOf(problem);
}

const conflict = ({ lo, hi }: Sections, i: number, j: number): boolean => i !== j && lo[i]! < hi[j]! && lo[j]! < hi[i]!;

/** What conflicts with item i at an offset, by looking at all. */
function conflictsOf(sections: Sections, placed: PlacedItems, i: number, from: number): number[] {
  const to = from + sections.size[i]!;
  return [...sections.ids.keys()].filter(
    (j) => placed.isPlaced[j] === 1 && conflict(sections, i, j) && placed.offset[j]! < to && placed.top[j]! > from,
  );
}

/** Puts the items down one after the other, removes what conflicts, and compares with every edge each time. */
function check(sections: Sections, placed: PlacedItems, weight: Float64Array, limit: number): void {
  const cost = (i: number, from: number): number =>
    conflictsOf(sections, placed, i, from).reduce((sum, j) => sum + weight[j]!, 0);
  for (let i = 0; i < sections.n; i++) {
    const last = limit - sections.size[i]!;
    const from = placed.cheapestFor(i, limit, weight);
    if (last < 0) {
      expect(from).toBe(-1);
      continue;
    }
    const edges = [...sections.ids.keys()].flatMap((j) => [placed.top[j]!, placed.offset[j]! - sections.size[i]!]);
    const tried = [0, last, ...edges].filter((offset) => offset >= 0 && offset <= last).sort((a, b) => a - b);
    const gap = tried.find((offset) => cost(i, offset) === 0);
    if (gap !== undefined) expect(from).toBe(gap);
    expect(from).toBeLessThanOrEqual(last);
    expect(cost(i, from)).toBeCloseTo(Math.min(...tried.map((offset) => cost(i, offset))), 9);
    const conflicts = [...placed.conflicts.subarray(0, placed.conflictsAt(i, from))];
    expect(conflicts.sort((a, b) => a - b)).toEqual(conflictsOf(sections, placed, i, from));
    for (const j of conflicts) placed.remove(j);
    placed.place(i, from);
  }
}

it("finds the lowest gap, or else the least weight of conflicts", () => {
  const row = fc.tuple(fc.nat(12), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 6 }));
  const rows = fc.array(row, { minLength: 2, maxLength: 30, size: "max" });
  fc.assert(
    fc.property(rows, fc.integer({ min: 4, max: 24 }), fc.constantFrom(1, 700), (list, limit, scale) => {
      const sections = sectionsFor(
        list.map(([start, length, bytes], i) => [start, length, scale * bytes + (i % scale)]),
      );
      const random = randomFrom(list.length);
      const weight = Float64Array.from({ length: sections.n }, () => 0.5 + random());
      check(sections, new PlacedItems(sections, random), weight, (limit * scale) / sections.unit);
    }),
    { seed: 3, numRuns: 150 },
  );
});
