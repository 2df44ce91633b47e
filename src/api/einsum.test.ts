/** @file Dots in einsum: the same as letters for every axis, with axes of extent 1 repeated. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as tm from "./index.ts";

const data = (shape: readonly number[]): tm.Tensor =>
  tm
    .arange(shape.reduce((n, extent) => n * extent, 1))
    .cast("f32")
    .add(1)
    .reshape(shape);

describe("dots", () => {
  test.each([
    ["...ij->...ji", "abij->abji", [[2, 3, 4, 5]]],
    ["i...->...i", "iab->abi", [[2, 3, 4]]],
    ["i...j->j...i", "iabj->jabi", [[2, 3, 4, 5]]],
    [
      "...ij,...jk->...ik",
      "abij,abjk->abik",
      [
        [2, 3, 4, 5],
        [2, 3, 5, 2],
      ],
    ],
    [
      "...ij,...jk",
      "abij,abjk->abik",
      [
        [2, 3, 4, 5],
        [2, 3, 5, 2],
      ],
    ],
    ["...i,i->...", "abi,i->ab", [[2, 3, 4], [4]]],
    ["...ii->...", "aii->a", [[2, 3, 3]]],
    [
      "...,...->...",
      "ab,ab->ab",
      [
        [2, 3],
        [2, 3],
      ],
    ],
    [
      "...ij,...jk->...ik",
      "ij,bjk->bik",
      [
        [4, 5],
        [3, 5, 2],
      ],
    ],
    ["...ij", "ij->ij", [[2, 3]]],
  ] as const)("%s is %s", (dots, letters, shapes) => {
    const operands = shapes.map((shape) => data(shape));
    const expected = tm.einsum(letters, ...operands);
    expect(tm.einsum(dots, ...operands).toArray()).toEqual(expected.toArray());
    const program = tm.compile((...xs: tm.Tensor[]) => tm.einsum(dots, ...xs));
    expect(program(...operands).toArray()).toEqual(expected.toArray());
  });

  test("broadcast like a product does", () => {
    const extent = fc.constantFrom(1, 2, 3);
    fc.assert(
      fc.property(
        fc.array(extent, { maxLength: 3 }),
        fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }),
        (to, one) => {
          // two shapes that broadcast to `to`, some axes of extent 1, some in front missing
          const shapeFrom = (flags: readonly boolean[]): number[] => to.map((n, i) => (flags[i] ? 1 : n));
          const a = data(shapeFrom(one).slice(one[0] ? 1 : 0));
          const b = data(shapeFrom(one.slice(3)));
          expect(tm.einsum("...,...->...", a, b).toArray()).toEqual(a.mul(b).toArray());
        },
      ),
      { seed: 3, numRuns: 60 },
    );
  });

  test("have the gradients of the letters", () => {
    const [a, b] = [data([1, 2, 3]), data([4, 3, 2])];
    const slope = tm.grad((x: tm.Tensor) => tm.einsum("...ij,...jk->...ik", x, b).square().sum())(a);
    const wide = tm.grad((x: tm.Tensor) => x.matmul(b).square().sum())(a);
    expect(slope.toArray()).toEqual(wide.toArray());
  });
});
