/** @file Blocks of products on WebAssembly: tiles fit the rows, and so does the workspace. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { blockingOf, contractScratch } from "./blocking.ts";
import { tileOf } from "./micro-kernel.ts";

describe("blocks of products", () => {
  test("have tiles no higher than the rows need", () => {
    const heights = [1, 5, 6, 7, 8, 10, 12, 13, 64].map((m) => blockingOf("f32", true, [m, 72, 576]).mr);
    expect(heights).toEqual([1, 5, 6, 4, 4, 5, 6, 5, 6]);
    expect([1, 4, 5, 8, 9].map((m) => blockingOf("f32", false, [m, 72, 576]).mr)).toEqual([1, 4, 3, 4, 3]);
  });

  test("have no more tiles, and no more rows in them, than tiles of full height", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.boolean(), (m, fma) => {
        const [{ rows }, most] = [tileOf("f32", fma, m), tileOf("f32", fma).rows];
        expect(rows).toBeLessThanOrEqual(most);
        expect(Math.ceil(m / rows)).toBe(Math.ceil(m / most));
      }),
      { seed: 1 },
    );
  });

  test("need as much workspace with fused multiply-add as without where both cut the rows alike", () => {
    expect(contractScratch("f32", true, [8, 72, 576])).toBe(contractScratch("f32", false, [8, 72, 576]));
  });
});
