/** @file Random numbers: the published answers of Threefry, and the distributions made of its bits. */
import { describe, expect, it } from "vitest";
import { constant, type Expr, type LoopVar } from "./expr.ts";
import { varIndex } from "./index-math.ts";
import { evaluate, interpretKernel } from "./interpret.ts";
import { normalFromBits, threefry, uniformFromBits } from "./random.ts";

const int = (value: number): Expr => constant("i32", value | 0);

describe("threefry", () => {
  it("gives the known answers of Random123 for 2x32 with 20 rounds", () => {
    // counter, key → bits
    const known = [
      [
        [0, 0],
        [0, 0],
        [0x6b200159, 0x99ba4efe],
      ],
      [
        [0xffffffff, 0xffffffff],
        [0xffffffff, 0xffffffff],
        [0x1cb996fc, 0xbb002be7],
      ],
      [
        [0x243f6a88, 0x85a308d3],
        [0x13198a2e, 0x03707344],
        [0xc4923a9c, 0x483df7a0],
      ],
    ] as const;
    for (const [counter, key, bits] of known) {
      const got = threefry(int(key[0]), int(key[1]), int(counter[0]), int(counter[1]));
      expect(got.map((e) => Number(evaluate(e)) >>> 0)).toEqual([...bits]);
    }
  });
});

/** n draws: element i from the bits of counter i. */
function draws(
  from: (bits0: Expr, bits1: Expr, dtype: "f32" | "f64") => Expr,
  dtype: "f32" | "f64",
  n: number,
): Float64Array {
  const i: LoopVar = { kind: "var", name: "i", extent: n };
  const index = varIndex(i);
  const [bits0, bits1] = threefry(int(7), int(42), { kind: "index", dtype: "i32", index }, int(0));
  const out = dtype === "f32" ? new Float32Array(n) : new Float64Array(n);
  const nests = [
    { kind: "map", loops: [i], stores: [{ operand: 0, index, value: from(bits0, bits1, dtype) }] } as const,
  ];
  interpretKernel({ operands: [{ dtype, elements: n, role: "out" }], nests }, [out]);
  return Float64Array.from(out);
}

/** Largest distance between the empirical distribution and the given one (Kolmogorov and Smirnov). */
function distance(sample: Float64Array, cumulative: (x: number) => number): number {
  const sorted = sample.slice().sort();
  return sorted.reduce((most, x, i) => {
    const p = cumulative(x);
    return Math.max(most, Math.abs(p - i / sorted.length), Math.abs(p - (i + 1) / sorted.length));
  }, 0);
}

/** Φ by the series of Marsaglia: ½ + φ(x)·(x + x³/3 + x⁵/15 + …). */
function normalCumulative(x: number): number {
  let term = x;
  let sum = x;
  for (let k = 3; Math.abs(term) > 1e-17; k += 2) {
    term *= (x * x) / k;
    sum += term;
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

const N = 20_000;
// Exceeded with probability 0.001 by a true sample; the sample is fixed, so the tests always agree with themselves.
const KS_LIMIT = 1.95 / Math.sqrt(N);

describe.each(["f32", "f64"] as const)("%s draws", (dtype) => {
  it("are uniform in [0, 1), on the grid of their bits", () => {
    const u = draws(uniformFromBits, dtype, N);
    const grid = dtype === "f32" ? 2 ** 24 : 2 ** 53;
    expect(u.every((x) => x >= 0 && x < 1 && Number.isInteger(x * grid))).toBe(true);
    expect(distance(u, (x) => x)).toBeLessThan(KS_LIMIT);
  });

  it("reach both ends of the grid and no further", () => {
    const end = 1 - (dtype === "f32" ? 2 ** -24 : 2 ** -53);
    expect(evaluate(uniformFromBits(int(0), int(0), dtype))).toBe(0);
    expect(evaluate(uniformFromBits(int(-1), int(-1), dtype))).toBe(end);
  });

  it("are normal", () => {
    expect(distance(draws(normalFromBits, dtype, N), normalCumulative)).toBeLessThan(KS_LIMIT);
  });

  it("are normal, finite at the extremes of the bits and symmetric in the angle", () => {
    const normal = (b0: number, b1: number): number => Number(evaluate(normalFromBits(int(b0), int(b1), dtype)));
    const tail = normal(0, 0);
    const bits = dtype === "f32" ? 24 : 32;
    expect(Math.abs(tail - Math.sqrt(2 * bits * Math.LN2))).toBeLessThan(1e-6);
    expect(Math.abs(normal(-1, 0))).toBe(0);
    // Half a turn changes the sign, a quarter gives zero.
    expect(normal(0, -0x80000000)).toBe(-tail);
    expect(Math.abs(normal(0, 0x40000000))).toBe(0);
    expect(normal(0, 0x20000000)).toBeCloseTo(tail * Math.SQRT1_2, 6);
  });
});
