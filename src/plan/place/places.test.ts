/** @file All ways to find a place agree with trying every edge. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Buffer, Problem } from "../problem.ts";
import { type Places, ShelfPlaces } from "./places.ts";
import { randomFrom } from "./random.ts";
import { countPairs, RowPlaces } from "./rows.ts";
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

const meets = ({ lo, hi }: Sections, i: number, j: number): boolean => i !== j && lo[i]! < hi[j]! && lo[j]! < hi[i]!;

/** What is in the way of item i at an offset, by looking at all. */
function inTheWay(sections: Sections, places: Places, i: number, from: number): number[] {
  const to = from + sections.size[i]!;
  return [...sections.ids.keys()].filter(
    (j) => places.inside[j] === 1 && meets(sections, i, j) && places.offset[j]! < to && places.top[j]! > from,
  );
}

/** Puts the items down one after the other, takes what is in the way out, and compares with every edge each time. */
function check(sections: Sections, places: Places, weight: Float64Array, limit: number): void {
  const cost = (i: number, from: number): number =>
    inTheWay(sections, places, i, from).reduce((sum, j) => sum + weight[j]!, 0);
  for (let i = 0; i < sections.n; i++) {
    const last = limit - sections.size[i]!;
    const from = places.cheapestFor(i, limit, weight);
    if (last < 0) {
      expect(from).toBe(-1);
      continue;
    }
    const edges = [...sections.ids.keys()].flatMap((j) => [places.top[j]!, places.offset[j]! - sections.size[i]!]);
    const tried = [0, last, ...edges].filter((offset) => offset >= 0 && offset <= last).sort((a, b) => a - b);
    const gap = tried.find((offset) => cost(i, offset) === 0);
    if (gap !== undefined) expect(from).toBe(gap);
    expect(from).toBeLessThanOrEqual(last);
    expect(cost(i, from)).toBeCloseTo(Math.min(...tried.map((offset) => cost(i, offset))), 9);
    const met = [...places.met.subarray(0, places.meet(i, from))];
    expect(met.sort((a, b) => a - b)).toEqual(inTheWay(sections, places, i, from));
    for (const j of met) places.take(j);
    places.put(i, from);
  }
}

it("finds the lowest gap, or else where least weight is in the way", () => {
  const row = fc.tuple(fc.nat(12), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 6 }));
  const rows = fc.array(row, { minLength: 2, maxLength: 30, size: "max" });
  fc.assert(
    fc.property(rows, fc.integer({ min: 4, max: 24 }), fc.constantFrom(1, 700), (list, limit, scale) => {
      const sections = sectionsFor(
        list.map(([start, length, bytes], i) => [start, length, scale * bytes + (i % scale)]),
      );
      const random = randomFrom(list.length);
      const weight = Float64Array.from({ length: sections.n }, () => 0.5 + random());
      for (const Kind of [ShelfPlaces, RowPlaces]) {
        check(sections, new Kind(sections, random), weight, (limit * scale) / sections.unit);
      }
    }),
    { seed: 3, numRuns: 150 },
  );
});

it("counts pairs that share a section", () => {
  const row = fc.tuple(fc.nat(9), fc.integer({ min: 1, max: 9 }), fc.constant(1));
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 20 }), (list) => {
      const sections = sectionsFor(list);
      const items = [...sections.ids.keys()];
      const pairs = items.flatMap((i) => items.filter((j) => i < j && meets(sections, i, j)));
      expect(countPairs(sections)).toBe(pairs.length);
    }),
    { seed: 4 },
  );
});
