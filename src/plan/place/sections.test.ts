/** @file Sections of small problems, by hand and by definition. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { at } from "../../base/invariant.ts";
import { type Buffer, overlapInTime, type Problem } from "../problem.ts";
import { compactDown, sectionsOf } from "./sections.ts";

function problem(rows: readonly (readonly [number, number, number])[], fixed: Record<number, number> = {}): Problem {
  const buffers = rows.map(([start, end, bytes], id): Buffer => {
    const base: Buffer = { id, lifespan: { start, end }, bytes, align: 1, values: [], kind: "activation" };
    return fixed[id] === undefined ? base : { ...base, fixedAt: fixed[id] };
  });
  return { buffers, capacity: Number.POSITIVE_INFINITY, alignment: 1 };
}

it("cuts time where an end follows a start and counts in common units", () => {
  const sections = sectionsOf(
    problem([
      [1, 2, 12],
      [0, 3, 18],
      [3, 5, 6],
      [4, 6, 24],
      [2, 4, 0],
    ]),
  );
  expect(sections.count).toBe(2);
  expect(sections.unit).toBe(6);
  expect([...sections.ids]).toEqual([1, 0, 2, 3]);
  expect([...sections.lo]).toEqual([0, 0, 1, 1]);
  expect([...sections.hi]).toEqual([1, 1, 2, 2]);
  expect([...sections.load]).toEqual([5, 5]);
});

it("puts what is live all the time on the ground, unless something fixed is in the way", () => {
  const rows = [
    [0, 9, 5],
    [0, 3, 4],
    [3, 9, 4],
    [0, 9, 7],
  ] as const;
  expect(sectionsOf(problem(rows)).ground).toBe(12);
  // all that meets everything is ground, also what is not there from the first to the last step
  expect(sectionsOf(problem([...rows, [2, 8, 1]])).ground).toBe(13);
  const apart = [...rows, [5, 6, 2]] as const;
  expect([...sectionsOf(problem(apart)).grounded]).toEqual([
    [0, 0],
    [3, 5],
  ]);
  expect([...sectionsOf(problem(apart, { 0: 0 })).grounded]).toEqual([
    [0, 0],
    [3, 5],
  ]);
  expect([...sectionsOf(problem(apart, { 0: 0, 1: 30 })).grounded]).toEqual([[0, 0]]);
  expect(sectionsOf(problem(apart, { 0: 10 })).ground).toBe(0);
});

it("has two items share a section exactly if their buffers share a step", () => {
  const row = fc.tuple(fc.nat(12), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 5 }));
  fc.assert(
    fc.property(fc.array(row, { maxLength: 30, size: "max" }), (rows) => {
      const p = problem(rows.map(([start, length, bytes]) => [start, start + length, bytes]));
      const sections = sectionsOf(p);
      for (let i = 0; i < sections.n; i++) {
        for (let j = 0; j < sections.n; j++) {
          const [a, b] = [p.buffers[sections.ids[i]!]!, p.buffers[sections.ids[j]!]!];
          const shared = sections.lo[i]! < sections.hi[j]! && sections.lo[j]! < sections.hi[i]!;
          expect(shared).toBe(overlapInTime(a.lifespan, b.lifespan));
        }
      }
    }),
    { numRuns: 100, seed: 3 },
  );
});

it("lets everything sink onto what is below it, but nothing that is fixed", () => {
  const rows = [
    [0, 4, 2],
    [2, 6, 2],
    [4, 6, 2],
    [0, 1, 2],
  ] as const;
  const sections = sectionsOf(problem([...rows, [5, 6, 2]], { 4: 20 }));
  const offset = Float64Array.from(sections.ids, (id) => at([3, 8, 4, 7, 10], id));
  expect(compactDown(sections, offset)).toBe(11);
  // 1 above 0, 2 below it, 3 above 0 as well, and 4 stays
  expect(Array.from(sections.ids, (id, i) => [id, offset[i]])).toEqual([
    [0, 0],
    [3, 1],
    [1, 1],
    [2, 0],
    [4, 10],
  ]);
});
