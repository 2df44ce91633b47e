/** @file Greedy placement against brute force on tiny problems, and against an all-pairs check on larger ones. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundOf } from "./bound.ts";
import { greedyStrategies, place } from "./place.ts";
import { type Buffer, heightOf, overlapInTime, type Problem } from "./problem.ts";

function problemOf(rows: readonly { start: number; length: number; bytes: number }[], alignment: number): Problem {
  const buffers = rows.map(
    ({ start, length, bytes }, id): Buffer => ({
      id,
      lifespan: { start, end: start + length },
      bytes,
      align: alignment,
      values: [],
      kind: "activation",
    }),
  );
  return { buffers, capacity: Number.POSITIVE_INFINITY, alignment };
}

function problems(maxLength: number, maxStart: number, maxBytes: number): fc.Arbitrary<Problem> {
  const row = fc.record({
    start: fc.nat(maxStart),
    length: fc.integer({ min: 1, max: maxStart }),
    bytes: fc.nat(maxBytes),
  });
  return fc
    .tuple(fc.array(row, { maxLength, size: "max" }), fc.constantFrom(1, 8))
    .map(([rows, alignment]) => problemOf(rows, alignment));
}

/** Two buffers that share a step and a byte, or a misplaced one. */
function faults({ buffers }: Problem, offsets: readonly number[]): string[] {
  const found: string[] = [];
  for (const a of buffers) {
    if (offsets[a.id]! % a.align !== 0 || offsets[a.id]! < 0) found.push(`${a.id} at ${offsets[a.id]}`);
    for (const b of buffers) {
      const apart = offsets[a.id]! + a.bytes <= offsets[b.id]! || offsets[b.id]! + b.bytes <= offsets[a.id]!;
      if (a.id < b.id && a.bytes > 0 && b.bytes > 0 && overlapInTime(a.lifespan, b.lifespan) && !apart)
        found.push(`${a.id} and ${b.id}`);
    }
  }
  return found;
}

/**
 * The optimum by trying all orders with the lowest position for each: placing the buffers of an optimal solution in
 * order of their offsets never moves one up, so some order is optimal.
 */
function optimum(problem: Problem): number {
  const { buffers } = problem;
  let best = Number.POSITIVE_INFINITY;
  const offsets: number[] = buffers.map(() => 0);
  const visit = (placed: readonly Buffer[], rest: readonly Buffer[]): void => {
    if (rest.length === 0) best = Math.min(best, heightOf(problem, offsets));
    for (const buffer of rest) {
      let offset = 0;
      const inTheWay = () =>
        placed.find(
          (p) =>
            overlapInTime(p.lifespan, buffer.lifespan) &&
            p.bytes > 0 &&
            buffer.bytes > 0 &&
            offset < offsets[p.id]! + p.bytes &&
            offsets[p.id]! < offset + buffer.bytes,
        );
      for (let other = inTheWay(); other; other = inTheWay())
        offset = Math.ceil((offsets[other.id]! + other.bytes) / buffer.align) * buffer.align;
      offsets[buffer.id] = offset;
      visit(
        [...placed, buffer],
        rest.filter((b) => b !== buffer),
      );
    }
  };
  visit([], buffers);
  return best;
}

describe("greedy placement", () => {
  it("is never lower than the optimum, which is never lower than the bound, on tiny problems", () => {
    let met = 0;
    fc.assert(
      fc.property(problems(6, 6, 9), (problem) => {
        const bound = boundOf(problem).bytes;
        const best = optimum(problem);
        const { offsets, height } = place(problem, bound);
        expect(faults(problem, offsets)).toEqual([]);
        expect(height).toBe(heightOf(problem, offsets));
        expect(best).toBeGreaterThanOrEqual(bound);
        expect(height).toBeGreaterThanOrEqual(best);
        if (height === best) met += 1;
      }),
      { numRuns: 300, seed: 7 },
    );
    expect(met).toBeGreaterThan(280);
  });

  it("never lets two conflicting buffers overlap, by any strategy, with few and with many of them", () => {
    fc.assert(
      fc.property(fc.oneof(problems(40, 10, 30), problems(60, 200, 40)), (problem) => {
        for (const strategy of greedyStrategies(problem)) {
          const offsets = strategy.place();
          expect(faults(problem, offsets!), strategy.name).toEqual([]);
        }
      }),
      { numRuns: 60, seed: 11 },
    );
  });

  it("finds conflicting buffers by time among thousands that are not", () => {
    const rows = Array.from({ length: 1500 }, (_, i) => ({
      start: (i * 7919) % 6000,
      length: 1 + (i % 9),
      bytes: 1 + ((i * 31) % 100),
    }));
    const problem = problemOf(rows, 4);
    for (const strategy of greedyStrategies(problem))
      expect(faults(problem, strategy.place()!), strategy.name).toEqual([]);
  });

  it("gives up a placement that is not lower than the limit", () => {
    const problem = problemOf(
      [
        { start: 0, length: 2, bytes: 4 },
        { start: 1, length: 2, bytes: 4 },
      ],
      1,
    );
    const [strategy] = greedyStrategies(problem);
    expect(strategy!.place({ below: 8 })).toBeNull();
    expect(strategy!.place({ below: 9 })).toEqual([0, 4]);
  });

  it("puts fixed buffers where they are and the others around them", () => {
    const base = problemOf([{ start: 0, length: 9, bytes: 10 }], 8).buffers[0]!;
    const buffers: Buffer[] = [
      { ...base, fixedAt: 0 },
      { ...base, id: 1, fixedAt: 32, bytes: 8, lifespan: { start: 2, end: 4 } },
      { ...base, id: 2, bytes: 16 },
      { ...base, id: 3, bytes: 24, lifespan: { start: 2, end: 3 } },
    ];
    const problem = { buffers, capacity: Number.POSITIVE_INFINITY, alignment: 8 };
    for (const strategy of greedyStrategies(problem)) {
      const offsets = strategy.place()!;
      expect(faults(problem, offsets)).toEqual([]);
      expect(offsets.slice(0, 2)).toEqual([0, 32]);
      expect(offsets[2]).toBe(16);
      expect(offsets[3]).toBe(40);
    }
  });

  it("fills the first gap or the tightest one", () => {
    // a wall of three at one step leaves gaps of 6 and 3 for a buffer of 3
    const wall = [
      [0, 2],
      [8, 2],
      [13, 2],
    ].map(([fixedAt, bytes], id) => ({
      id,
      fixedAt: fixedAt!,
      bytes: bytes!,
      lifespan: { start: 0, end: 1 },
      align: 1,
      values: [],
      kind: "activation" as const,
    }));
    const { fixedAt: _, ...extra } = { ...wall[0]!, id: 3, bytes: 3 };
    const problem = { buffers: [...wall, extra], capacity: Number.POSITIVE_INFINITY, alignment: 1 };
    const offsets = new Map(greedyStrategies(problem).map((s) => [s.name, s.place()![3]]));
    expect(offsets.get("bytes/first-fit")).toBe(2);
    expect(offsets.get("bytes/best-fit")).toBe(10);
  });

  it("places nothing in no arena", () => {
    expect(place(problemOf([], 8), 0)).toEqual({ offsets: [], height: 0, strategy: "bytes/first-fit" });
  });

  it("refuses a bound that is no number of bytes, where a search for it would not end", () => {
    for (const bound of [Number.NaN, -1, undefined as unknown as number]) {
      expect(() => place(problemOf([], 8), bound)).toThrow(/InvalidArgument.*lower bound is (NaN|-1|undefined)/);
    }
  });

  it("is the same every time and does not depend on the order of equals", () => {
    const problem = problemOf(
      Array.from({ length: 50 }, (_, i) => ({ start: i % 7, length: 3, bytes: 8 })),
      1,
    );
    expect(place(problem, 0)).toEqual(place(problem, 0));
  });
});
