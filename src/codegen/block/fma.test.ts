/** @file a · b + c rounded once, against exact arithmetic on bigints and at the edges. */
import { describe, expect, it } from "vitest";
import { hostRandom } from "../../base/random.ts";
import { fusedMultiplyAdd } from "./fma.ts";

const single = fusedMultiplyAdd("f32");
const double = fusedMultiplyAdd("f64");

/** A finite number times 2^1074, exactly. */
function scaled(x: number): bigint {
  const [word] = new BigUint64Array(Float64Array.of(x).buffer);
  const bits = word as bigint;
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const size = exponent === 0 ? fraction : (fraction | (1n << 52n)) << BigInt(exponent - 1);
  return x < 0 ? -size : size;
}

const size = (x: bigint): bigint => (x < 0n ? -x : x);

/** Whether no neighbour of `got` in its type is nearer to the exact a · b + c, and of two that are as near it is the even one. */
function isNearest(got: number, [a, b, c]: readonly [number, number, number], neighbours: readonly number[]): boolean {
  const unit = 1n << 1074n;
  const exact = scaled(a) * scaled(b) + scaled(c) * unit;
  const error = size(scaled(got) * unit - exact);
  return neighbours.every((x) => size(scaled(x) * unit - exact) >= error);
}

function neighboursOf(x: number, type: "f32" | "f64"): readonly number[] {
  if (type === "f32") {
    const [word] = new Int32Array(Float32Array.of(x).buffer);
    return [-1, 1].map((by) => new Float32Array(Int32Array.of((word as number) + by).buffer)[0] as number);
  }
  const [word] = new BigInt64Array(Float64Array.of(x).buffer);
  return [-1n, 1n].map((by) => new Float64Array(BigInt64Array.of((word as bigint) + by).buffer)[0] as number);
}

describe("a fused multiply-add", () => {
  it("is the number of its type nearest to the exact result", () => {
    const random = hostRandom(5);
    const draw = (): number => (random.next() - 0.5) * 2 ** Math.floor(random.next() * 30 - 15);
    for (let i = 0; i < 2000; i++) {
      const [a, b] = [draw(), draw()];
      // half of the sums nearly cancel
      const c = i % 2 === 0 ? draw() : -a * b * (1 + draw() * 2 ** -20);
      const three = [a, b, c] as const;
      const [x, y, z] = three.map(Math.fround) as [number, number, number];
      const [f, d] = [single(x, y, z), double(...three)];
      if (f !== 0) expect(isNearest(f, [x, y, z], neighboursOf(f, "f32")), `f32 ${[x, y, z]}`).toBe(true);
      if (d !== 0) expect(isNearest(d, three, neighboursOf(d, "f64")), `f64 ${three}`).toBe(true);
    }
  });

  it("does not round the product", () => {
    const a = 1 + 2 ** -12;
    expect(single(a, a, -(1 + 2 ** -11))).toBe(2 ** -24);
    const b = 1 + 2 ** -30;
    expect(double(b, b, -(1 + 2 ** -29))).toBe(2 ** -60);
  });

  it("rounds once where two roundings would meet a tie", () => {
    // 1 + 2^-24 is half way between two f32; the rest, too small for an f64, decides
    expect(single(2 ** -24, 1 + 2 ** -23, 1)).toBe(1 + 2 ** -23);
    expect(single(2 ** -24, 1 - 2 ** -24, 1)).toBe(1);
    expect(single(1 + 2 ** -23, 1 + 2 ** -23, 2 ** -80)).toBe(Math.fround(1 + 2 ** -22));
  });

  it("goes below the least normal number, and to infinity", () => {
    expect(double(2 ** -1000, 2 ** -74, 0)).toBe(2 ** -1074);
    expect(double(2 ** -1000, 2 ** -75, 0)).toBe(0);
    expect(double(3 * 2 ** -1000, 2 ** -75, 0)).toBe(2 * 2 ** -1074);
    expect(single(2 ** -100, 2 ** -49, 0)).toBe(2 ** -149);
    expect(double(2 ** 1000, 2 ** 100, -1)).toBe(Number.POSITIVE_INFINITY);
    expect(double(-(2 ** 1000), 2 ** 20, 2 ** 1023)).toBe(2 ** 1023 - 2 ** 1020);
  });

  it("keeps zeros, infinities and NaN", () => {
    for (const fma of [single, double]) {
      expect(fma(0, -1, 0)).toBe(0);
      expect(fma(0, -1, -0)).toBe(-0);
      expect(fma(2, 3, -6)).toBe(0);
      expect(fma(Number.POSITIVE_INFINITY, 1, 5)).toBe(Number.POSITIVE_INFINITY);
      expect(fma(Number.POSITIVE_INFINITY, 1, Number.NEGATIVE_INFINITY)).toBeNaN();
      expect(fma(Number.NaN, 1, 5)).toBeNaN();
    }
  });
});
