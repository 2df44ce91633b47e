/** @file The largest by search and the others around them: valid, and as low as the search where it had everything. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { boundOf } from "../bound.ts";
import { type Buffer, heightOf, overlapInTime, type Problem } from "../problem.ts";
import { MANY, placeCoarsely } from "./coarse.ts";
import { placeGreedily } from "./grid.ts";
import { searchPlacement } from "./search.ts";

function problemOf(rows: readonly (readonly [start: number, length: number, units: number])[], alignment = 1): Problem {
  const buffers = rows.map(
    ([start, length, units], id): Buffer => ({
      id,
      lifespan: { start, end: start + length },
      bytes: units * alignment,
      align: alignment,
      values: [],
      kind: "activation",
    }),
  );
  return { buffers, capacity: Number.POSITIVE_INFINITY, alignment };
}

const solve = (part: Problem): readonly number[] =>
  searchPlacement(part, { targetBytes: boundOf(part).bytes, workLimit: 1e5 }).offsets;

function collisions({ buffers }: Problem, offsets: readonly number[]): string[] {
  return buffers.flatMap((a) =>
    buffers
      .filter((b) => a.id < b.id && overlapInTime(a.lifespan, b.lifespan))
      .filter((b) => offsets[a.id]! < offsets[b.id]! + b.bytes && offsets[b.id]! < offsets[a.id]! + a.bytes)
      .map((b) => `${a.id}, ${b.id}`),
  );
}

const row = fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 50 }));

it("places everything without collisions, at multiples of the alignment, however many are large", () => {
  const rows = fc.array(row, { minLength: 1, maxLength: 60, size: "max" });
  fc.assert(
    fc.property(rows, fc.nat(70), fc.constantFrom(1, 8), (list, large, alignment) => {
      const problem = problemOf(list, alignment);
      const { offsets, height } = placeCoarsely(problem, large, solve);
      expect(collisions(problem, offsets)).toEqual([]);
      expect(offsets.filter((offset) => offset % alignment !== 0)).toEqual([]);
      expect(height).toBe(heightOf(problem, offsets));
    }),
    { seed: 11, numRuns: 60 },
  );
});

it("leaves fixed buffers where they are, also when there are more of them than may be large", () => {
  const free = problemOf(Array.from({ length: 40 }, (_, i) => [(i * 7) % 20, 1 + ((i * 5) % 9), 1 + ((i * 11) % 13)]));
  const at = solve(free);
  const buffers = free.buffers.map((b) => (b.id % 3 === 0 ? { ...b, fixedAt: at[b.id]! } : b));
  const problem: Problem = { ...free, buffers };
  const { offsets } = placeCoarsely(problem, 5, solve);
  expect(buffers.filter((b) => b.fixedAt !== undefined && b.fixedAt !== offsets[b.id])).toEqual([]);
  expect(collisions(problem, offsets)).toEqual([]);
});

it("hands those on that are large for long, by index, and puts the others into the gaps that are left", () => {
  // 0 and 2 are large; 1 is as large as 0 for one step only, 3 is small
  const problem = problemOf([
    [0, 9, 8],
    [4, 1, 8],
    [5, 4, 8],
    [0, 9, 1],
  ]);
  const parts: Problem[] = [];
  const { offsets } = placeCoarsely(problem, 2, (part) => {
    parts.push(part);
    return [0, 8];
  });
  expect(parts.map((part) => part.buffers.map(({ id, lifespan }) => [id, lifespan.start]))).toEqual([
    [
      [0, 0],
      [1, 5],
    ],
  ]);
  expect(offsets).toEqual([0, 8, 8, 16]);
});

it("ends soon when it is late, with the first greedy placement if there is no other", () => {
  const rows = Array.from(
    { length: MANY },
    (_, i) => [(i * 7) % 200, 1 + ((i * 5) % 90), 1 + ((i * 11) % 13)] as const,
  );
  const problem = problemOf(rows);
  const targetBytes = boundOf(problem).bytes;
  let looks = 0;
  const lateAfter = (count: number) => (): boolean => {
    looks += 1;
    return looks > count;
  };
  const first = placeGreedily(problem, 0, 1);
  expect(placeGreedily(problem, 0, Number.POSITIVE_INFINITY, () => true)).toEqual(first);
  expect(placeCoarsely(problem, 200, solve, () => true).height).toBe(Number.POSITIVE_INFINITY);
  for (const looksUntilLate of [0, 3, 40]) {
    looks = 0;
    const result = searchPlacement(problem, { targetBytes, enough: lateAfter(looksUntilLate) });
    expect(collisions(problem, result.offsets)).toEqual([]);
    expect(result.height).toBe(heightOf(problem, result.offsets));
    expect(result.height).toBeLessThanOrEqual(first.height);
  }
  expect(searchPlacement(problem, { targetBytes, timeoutMs: 0 })).toMatchObject({ ...first, nodes: 0 });
});

it("ends a try with the largest when it has enough, and keeps what it had", () => {
  const rows = Array.from(
    { length: MANY },
    (_, i) => [(i * 17) % 800, 1 + ((i * i * 5) % 120), 1 + ((i * i * 11 + i * 3) % 101)] as const,
  );
  const problem = problemOf(rows);
  const targetBytes = boundOf(problem).bytes;
  const start = placeGreedily(problem, targetBytes);
  expect(placeCoarsely(problem, MANY / 10, solve).height).toBeLessThan(start.height);
  let looks = 0;
  const enough = (): boolean => {
    looks += 1;
    return looks > 3;
  };
  expect(searchPlacement(problem, { targetBytes, start, enough })).toMatchObject(start);
});
