/**
 * @file Distributions by moments and counts, with fixed seeds; the same bits on every target, compiled or not; bad parameters.
 */
import { describe, expect, test } from "vitest";
import { compile, grad, random, type Tensor, tensor } from "../../src/api/index.ts";
import "../support/host.ts";
import { plainTargets } from "../support/targets.ts";
import { expectSameBits } from "./compare.ts";
import { doubles } from "./sample.ts";

const N = 20_000;
const key = random.key(2024);

/** Mean and variance. */
function momentsOf(x: Float64Array): readonly [number, number] {
  const mean = x.reduce((s, v) => s + v, 0) / x.length;
  return [mean, x.reduce((s, v) => s + (v - mean) ** 2, 0) / x.length];
}

/** Mean and variance are within five deviations of what they should be; `fourth` is the fourth central moment over variance². */
function expectMoments(x: Tensor, mean: number, variance: number, fourth: number): void {
  const [m, v] = momentsOf(doubles(x));
  expect(Math.abs(m - mean)).toBeLessThan(5 * Math.sqrt(variance / x.elements));
  expect(Math.abs(v - variance)).toBeLessThan(5 * variance * Math.sqrt((fourth - 1) / x.elements));
}

/** χ² of counts against probabilities is within five deviations of its mean. */
function expectCounts(values: ArrayLike<number>, p: readonly number[]): void {
  const counts = new Array<number>(p.length).fill(0);
  for (let i = 0; i < values.length; i++) counts[Number(values[i])] = (counts[Number(values[i])] ?? 0) + 1;
  expect(counts.length).toBe(p.length);
  const chi = p.reduce((s, q, i) => s + ((counts[i] ?? 0) - q * values.length) ** 2 / (q * values.length), 0);
  const freedom = p.length - 1;
  expect(Math.abs(chi - freedom) / Math.sqrt(2 * freedom)).toBeLessThan(5);
}

const factorial = (k: number): number => (k < 2 ? 1 : k * factorial(k - 1));

/** Φ by summing the density. */
function normalBetween(a: number, b: number): number {
  const steps = 2000;
  const density = (x: number): number => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
  const h = (b - a) / steps;
  return Array.from({ length: steps }, (_, i) => density(a + (i + 0.5) * h) * h).reduce((s, v) => s + v, 0);
}

describe("integers and categories", () => {
  test("randint fills its range evenly, whole words included", () => {
    expectCounts(random.randint(key, [N], -3, 7).add(3).data(), new Array(10).fill(0.1));
    const words = random.randint(key, [N], -(2 ** 31), 2 ** 31);
    expectCounts(
      words.data().map((w) => (w >> 28) + 8),
      new Array(16).fill(1 / 16),
    );
    const wide = random.randint(key, [N], -1_500_000_000, 1_500_000_000).data();
    expect(wide.every((w) => w >= -1_500_000_000 && w < 1_500_000_000)).toBe(true);
    expect(random.randint(key, [3], 5, 6).toArray()).toEqual([5, 5, 5]);
  });

  test("categorical draws by softmax of its logits", () => {
    const p = [0.5, 0.3, 0.15, 0.05];
    const logits = tensor(p.map(Math.log));
    expectCounts(random.categorical(key, logits, [N]).data(), p);
    const rows = random.categorical(key, tensor([p.map(Math.log), p.toReversed().map(Math.log)]), [N]);
    expect(rows.shape).toEqual([N, 2]);
    expectCounts(rows.slice([null, 1]).data(), p.toReversed());
    const never = random.categorical(key, tensor([0, Number.NEGATIVE_INFINITY, 0]), [N]);
    expect(never.equal(1).sum().item()).toBe(0);
  });

  test("multinomial counts add up, and have their means and variances", () => {
    const p = [0.2, 0.5, 0.05, 0.25];
    const counts = random.multinomial(key, 40, tensor(new Array(2000).fill(p), { shape: [2000, 4] }).mul(3));
    expect(counts.sum(1).notEqual(40).sum().item()).toBe(0);
    p.forEach((q, j) => {
      expectMoments(counts.slice([null, j]).cast("f64"), 40 * q, 40 * q * (1 - q), 4);
    });
    expect(random.multinomial(key, 0, tensor([1, 1])).toArray()).toEqual([0, 0]);
  });

  test("choice draws with and without replacement, evenly or by weights", () => {
    expectCounts(random.choice(key, 5, [N]).data(), new Array(5).fill(0.2));
    expectCounts(random.choice(key, 3, [N], { p: tensor([1, 2, 5]) }).data(), [1 / 8, 2 / 8, 5 / 8]);
    const all = [...random.choice(key, 50, [50], { replace: false }).data()];
    expect(all.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
    // first of two without replacement: by the weights themselves; never a weight of zero
    const first = compile((k: Tensor) => random.choice(k, 4, [2], { replace: false, p: tensor([4, 3, 0, 1]) }));
    const pairs = Array.from({ length: 1500 }, (_, i) => first(random.key(i)).data());
    expect(pairs.every(([a, b]) => a !== b && a !== 2 && b !== 2)).toBe(true);
    expectCounts(
      pairs.map(([a]) => (a === 3 ? 2 : Number(a))),
      [4 / 8, 3 / 8, 1 / 8],
    );
    const rows = random.choice(
      key,
      tensor([
        [1, 2],
        [3, 4],
        [5, 6],
      ]),
      [2, 2],
      { axis: 0 },
    );
    expect(rows.shape).toEqual([2, 2, 2]);
  });

  test("shuffle has every row once; its derivative goes back to the rows", () => {
    const x = tensor(
      Array.from({ length: 12 }, (_, i) => i),
      { shape: [4, 3] },
    );
    const mixed = random.shuffle(key, x);
    expect([...mixed.slice([null, 0]).data()].toSorted((a, b) => a - b)).toEqual([0, 3, 6, 9]);
    expect(random.shuffle(key, x, 1).shape).toEqual([4, 3]);
    const slope = grad((v: Tensor) => random.shuffle(key, v).mul(mixed).sum())(x);
    expect(slope.toArray()).toEqual(x.toArray());
  });
});

describe.each(["f32", "f64"] as const)("%s", (dtype) => {
  test("exponential and Gumbel numbers have their moments and tails", () => {
    const e = random.exponential(key, [N], { dtype });
    expectMoments(e, 1, 1, 9);
    expect(e.min().item()).toBeGreaterThan(0);
    expectMoments(random.gumbel(key, [N], dtype), 0.5772156649, Math.PI ** 2 / 6, 5.4);
    expect(Number.isFinite(random.gumbel(key, [N], dtype).abs().max().item())).toBe(true);
  });

  test("truncated normal numbers stay in bounds and follow the density there, in every tail", () => {
    for (const [lo, hi] of [
      [-2, 2],
      [0.2, 0.9],
      [-0.3, 4],
      [3, 9],
      [-4.5, -4],
      [8, 12],
    ] as const) {
      const x = doubles(random.truncatedNormal(key, [N], { lo, hi, dtype }));
      expect(x.every((v) => v >= lo && v <= hi)).toBe(true);
      // eight cells of equal probability, by their ends
      const total = normalBetween(lo, hi);
      const ends: number[] = [lo];
      for (let i = 1; i < 8; i++) {
        let [a, b] = [lo as number, hi as number];
        for (let s = 0; s < 40; s++) {
          const middle = (a + b) / 2;
          if (normalBetween(lo, middle) < (i / 8) * total) a = middle;
          else b = middle;
        }
        ends.push(a);
      }
      expectCounts(
        x.map((v) => ends.findLastIndex((end) => end <= v)),
        new Array(8).fill(1 / 8),
      );
    }
    const scaled = random.truncatedNormal(key, [N], { mean: 5, std: 2, dtype });
    expect(scaled.min().item()).toBeGreaterThanOrEqual(1);
    expect(scaled.max().item()).toBeLessThanOrEqual(9);
  });

  test("gamma and beta numbers have their moments", () => {
    for (const alpha of [0.05, 0.5, 1, 3, 50]) {
      expectMoments(random.gamma(key, alpha, { shape: [N], dtype }), alpha, alpha, 3 + 6 / alpha);
    }
    for (const [a, b] of [
      [0.5, 0.5],
      [2, 5],
      [0.01, 0.02],
    ] as const) {
      const mean = a / (a + b);
      const x = random.beta(key, a, b, { shape: [N], dtype });
      expectMoments(x, mean, (mean * (1 - mean)) / (a + b + 1), 3);
      expect(x.isnan().sum().item()).toBe(0);
    }
    const rows = random.gamma(key, tensor([1, 9], { dtype }), { shape: [N, 2] });
    expectMoments(rows.slice([null, 1]), 9, 9, 3 + 6 / 9);
    const bad = random.gamma(key, tensor([0, -1, Number.NaN, 2], { dtype })).isnan();
    expect(bad.cast("i32").toArray()).toEqual([1, 1, 1, 0]);
  });

  test("poisson numbers have their moments and counts", () => {
    for (const rate of [0, 0.3, 4, 9.9, 10, 30, 5000]) {
      const x = random.poisson(key, rate, { shape: [N], dtype });
      expect(x.dtype).toBe("i32");
      if (rate === 0) expect(x.max().item()).toBe(0);
      else expectMoments(x.cast("f64"), rate, rate, 3 + 1 / rate);
    }
    for (const rate of [4, 12]) {
      const cells = 2 * rate;
      const p = Array.from({ length: cells }, (_, k) => (Math.exp(-rate) * rate ** k) / factorial(k));
      const rest = 1 - p.reduce((s, v) => s + v, 0);
      const x = random.poisson(key, rate, { shape: [N], dtype }).data();
      expectCounts(
        x.map((k) => Math.min(k, cells)),
        [...p, rest],
      );
    }
    const mixed = random.poisson(key, tensor([1, 100, -1, Number.NaN], { dtype }), { shape: [N, 4] });
    expectMoments(mixed.slice([null, 1]).cast("f64"), 100, 100, 3.01);
    expectMoments(mixed.slice([null, 0]).cast("f64"), 1, 1, 4);
    expect(mixed.slice([0, [2, 4]]).toArray()).toEqual([-1, -1]);
  });
});

const DRAWS: Readonly<Record<string, (k: Tensor) => Tensor>> = {
  randint: (k) => random.randint(k, [40], -5, 1_000_000_007),
  categorical: (k) => random.categorical(k, tensor([1, 2, 3, 0.5]), [30]),
  choice: (k) => random.choice(k, 30, [9], { replace: false, p: tensor(new Array(30).fill(1)) }),
  truncatedNormal: (k) => random.truncatedNormal(k, [40], { lo: 1, hi: 3 }),
  gamma: (k) => random.gamma(k, tensor([0.1, 1, 7]), { shape: [20, 3] }),
  poisson: (k) => random.poisson(k, tensor([0.5, 5, 50]), { shape: [20, 3] }),
};

test("draws have the same bits on every target, and other bits for other keys", () => {
  const all = (k: Tensor): readonly Tensor[] => Object.values(DRAWS).map((draw) => draw(k));
  const plain = all(key);
  for (const { missing, name, target } of plainTargets.slice(0, 2)) {
    if (missing !== null) continue;
    compile(all, { target: target() })(key).forEach((t, i) => {
      expectSameBits(t, plain[i] as Tensor, `${Object.keys(DRAWS)[i]} on ${name}`);
    });
  }
  all(random.key(2025)).forEach((t, i) => {
    expect(t.data().join(), Object.keys(DRAWS)[i]).not.toBe(plain[i]?.data().join());
  });
});

test("parameters count as constants to derivatives", () => {
  const slope = grad((a: Tensor) => random.gamma(key, a).mul(a).sum())(tensor([2, 3]));
  expect(slope.toArray()).toEqual(random.gamma(key, tensor([2, 3])).toArray());
});

test("bad parameters have clear errors", () => {
  expect(() => random.randint(key, [2], 3, 3)).toThrow("random.randint: nothing is in [3, 3)");
  expect(() => random.randint(key, [2], 0.5, 3)).toThrow("random.randint: nothing is in [0.5, 3)");
  expect(() => random.categorical(key, tensor([], { shape: [2, 0] }))).toThrow("have no categories");
  expect(() => random.categorical(key, tensor([1, 2], { dtype: "i32" }))).toThrow("logits are floats");
  expect(() => random.multinomial(key, -1, tensor([1]))).toThrow("random.multinomial");
  expect(() => random.choice(key, 3, [4], { replace: false })).toThrow("4 of 3 rows without replacement");
  expect(() => random.choice(key, 0, [1])).toThrow("1 of 0 rows");
  expect(() => random.choice(key, 3, [1], { p: tensor([1, 2]) })).toThrow("p f32[2] for 3 rows");
  expect(() => random.truncatedNormal(key, [2], { lo: 1, hi: 1 })).toThrow("nothing is in [1, 1]");
  expect(() => random.gamma(key, tensor([1], { dtype: "i32" }))).toThrow("random.gamma: a parameter is i32[1]");
  expect(() => random.poisson(3 as never, 1)).toThrow("make one: random.key(3)");
});
