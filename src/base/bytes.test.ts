/** @file Byte sizes: every unit, the refusals, and that what is written reads back. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatBytes, parseBytes } from "./bytes.ts";

describe("parseBytes", () => {
  test.each([
    [0, 0],
    [4096, 4096],
    [12.9, 12],
    ["0", 0],
    ["57408", 57408],
    ["57,408", 57408],
    ["1_000_000", 1_000_000],
    ["1B", 1],
    ["1KB", 1000],
    ["2MB", 2_000_000],
    ["3GB", 3_000_000_000],
    ["1KiB", 1024],
    ["64MiB", 67_108_864],
    ["1.5 GiB", 1_610_612_736],
    [" 16 kib ", 16_384],
    ["1.0001KiB", 1024],
  ])("reads %j as %d bytes", (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  test.each([
    ["", "is not a number followed by a unit"],
    ["abc", "is not a number followed by a unit"],
    ["12 34", "is not a number followed by a unit"],
    ["1.2.3MB", "is not a number followed by a unit"],
    ["1,2", "is not a number followed by a unit"],
    ["5TB", "has the unknown unit TB"],
    ["-1MB", "is negative"],
    [-1, "is negative"],
    [Number.NaN, "is not a finite number"],
    ["99999999GiB", "is more than 9,007,199,254,740,991 bytes"],
  ])("refuses %j because it %s", (text, problem) => {
    expect(() => parseBytes(text)).toThrow(problem);
    expect(() => parseBytes(text)).toThrow("B, KB, MB, GB, KiB, MiB, GiB");
  });
});

describe("formatBytes", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1 KiB"],
    [1536, "1.5 KiB"],
    [57_408, "56.1 KiB"],
    [67_108_864, "64 MiB"],
    [2 ** 30 - 1, "1 GiB"],
    [1_610_612_736, "1.5 GiB"],
    [5 * 2 ** 40, "5120 GiB"],
    [-2048, "-2 KiB"],
  ])("writes %d as %s", (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  test("what it writes reads back within half of the last digit shown", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 45 }), (bytes) => {
        expect(Math.abs(parseBytes(formatBytes(bytes)) - bytes)).toBeLessThanOrEqual(Math.max(0.01 * bytes, 1));
      }),
      { seed: 7, numRuns: 300 },
    );
  });
});
