/** @file The lower bound against small problems computed by hand. */
import { expect, it } from "vitest";
import { boundOf, liveBytes } from "./bound.ts";
import type { Buffer, Problem } from "./problem.ts";

function problem(rows: readonly (readonly [number, number, number])[], alignment = 1): Problem {
  const buffers = rows.map(
    ([start, end, bytes], id): Buffer => ({
      id,
      lifespan: { start, end },
      bytes,
      align: alignment,
      values: [],
      kind: "activation",
    }),
  );
  return { buffers, capacity: Number.POSITIVE_INFINITY, alignment };
}

it("is the most that is live at one step, with the first such step and what is live there", () => {
  const p = problem([
    [0, 5, 2],
    [1, 4, 2],
    [2, 3, 3],
    [4, 5, 0],
    [3, 4, 3],
  ]);
  expect(boundOf(p)).toEqual({ bytes: 7, step: 2, live: [0, 1, 2] });
  expect([...liveBytes(p, 5)]).toEqual([2, 4, 7, 7, 2]);
});

it("counts half-open: what ends at a step is not live there", () => {
  expect(
    boundOf(
      problem([
        [0, 2, 5],
        [2, 3, 5],
      ]),
    ).bytes,
  ).toBe(5);
});

it("counts sizes rounded up to the alignment", () => {
  expect(
    boundOf(
      problem(
        [
          [0, 2, 1],
          [1, 3, 65],
        ],
        64,
      ),
    ).bytes,
  ).toBe(192);
});

it("is zero for nothing", () => {
  expect(boundOf(problem([]))).toEqual({ bytes: 0, step: 0, live: [] });
});
