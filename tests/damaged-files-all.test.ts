/** @file Thousands of damaged files of every kind (`npm run test:slow`); some of them are in damaged-files.test.ts. */
import { describe, expect, it } from "vitest";
import { problemsOf } from "./support/changed-programs.ts";
import { damaged, KINDS, problemWith } from "./support/damage.ts";

const MANY = 3000;

describe("thousands of damaged files", () => {
  it.each(KINDS.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => {
    for (let seed = 0; seed < MANY; seed++) {
      expect(problemWith(kind, damaged(kind, 1000 + seed)), `${kind.name}, seed ${1000 + seed}`).toBe(null);
    }
  });
});

describe("a thousand changed programs and configs", () => {
  it("are read, or refused with a clear error", () => {
    expect(problemsOf(Array.from({ length: 1000 }, (_, i) => 1000 + i))).toEqual([]);
  });
});
