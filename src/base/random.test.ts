/** @file The generator against the published answers of its authors' library, and what is built on it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { belowFromBits, hostRandom, threefry } from "./random.ts";

const hex = (words: readonly [number, number]): string =>
  words.map((w) => (w >>> 0).toString(16).padStart(8, "0")).join(" ");

describe("threefry", () => {
  // The vectors "threefry2x32 20" of Random123.
  it("gives the known answers", () => {
    expect(hex(threefry([0, 0], [0, 0]))).toBe("6b200159 99ba4efe");
    expect(hex(threefry([-1, -1], [-1, -1]))).toBe("1cb996fc bb002be7");
    expect(hex(threefry([0x13198a2e, 0x03707344], [0x243f6a88, 0x85a308d3 | 0]))).toBe("c4923a9c 483df7a0");
  });

  it("takes words as signed or unsigned alike", () => {
    expect(threefry([0xffffffff, 5], [0x80000000, 7])).toEqual(threefry([-1, 5], [-0x80000000, 7]));
  });
});

describe("belowFromBits", () => {
  it("is the exact floor of u · n / 2^32", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 0x7fffffff }), (bits, n) => {
        expect(belowFromBits(bits, n)).toBe(Number((BigInt(bits >>> 0) * BigInt(n)) >> 32n));
      }),
      { seed: 7, numRuns: 2000 },
    );
  });
});

describe("hostRandom", () => {
  it("repeats for a seed and differs between seeds", () => {
    const draw = (seed: number): number[] => {
      const random = hostRandom(seed);
      return Array.from({ length: 8 }, () => random.next());
    };
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    expect(draw(2 ** 40)).not.toEqual(draw(0));
  });

  it("has the moments of its distributions", () => {
    const random = hostRandom(3);
    const n = 20_000;
    const mean = (of: () => number): number => Array.from({ length: n }, of).reduce((a, b) => a + b, 0) / n;
    const uniforms = Array.from({ length: n }, () => random.next());
    expect(uniforms.every((u) => u >= 0 && u < 1)).toBe(true);
    expect(uniforms.reduce((a, b) => a + b, 0) / n).toBeCloseTo(0.5, 1);
    expect(Math.abs(mean(() => random.normal()))).toBeLessThan(0.03);
    expect(Math.abs(mean(() => random.normal() ** 2) - 1)).toBeLessThan(0.05);
  });
});
