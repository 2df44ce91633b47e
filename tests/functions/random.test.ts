/**
 * @file Random functions: distributions by moments and counts, keys as the only source, the same bits however a program is
 * run, and dropout whose mask is never stored. All seeded: a check that passes once passes always.
 */
import { describe, expect, test } from "vitest";
import { compile, dropout, grad, matmul, random, type Tensor, tensor } from "../../src/api/index.ts";
import { elementsOf } from "../../src/ir/type.ts";
import { expectSameBits } from "./compare.ts";
import { doubles } from "./sample.ts";

const N = 100_000;

/** Central moments: mean, variance, skewness, kurtosis. */
function momentsOf(x: Float64Array): readonly number[] {
  const mean = x.reduce((s, v) => s + v, 0) / x.length;
  const central = (p: number): number => x.reduce((s, v) => s + (v - mean) ** p, 0) / x.length;
  const variance = central(2);
  return [mean, variance, central(3) / variance ** 1.5, central(4) / variance ** 2];
}

/** χ² of counts that should all be equal; with k cells it has mean k - 1 and deviation √(2(k-1)). */
function chiSquare(cells: readonly number[]): number {
  const expected = cells.reduce((s, n) => s + n, 0) / cells.length;
  return cells.reduce((s, n) => s + (n - expected) ** 2 / expected, 0);
}

function expectUniformCounts(cells: readonly number[]): void {
  const freedom = cells.length - 1;
  const deviations = (chiSquare(cells) - freedom) / Math.sqrt(2 * freedom);
  expect(Math.abs(deviations)).toBeLessThan(4);
}

function countsOf(values: ArrayLike<number>, cells: number): number[] {
  const counts = new Array<number>(cells).fill(0);
  for (let i = 0; i < values.length; i++) counts[values[i]!]!++;
  return counts;
}

describe.each(["f32", "f64"] as const)("random %s", (dtype) => {
  test("uniform numbers fill [0, 1) evenly", () => {
    const u = doubles(random.uniform(random.key(1), [N], { dtype }));
    expect(u.every((v) => v >= 0 && v < 1)).toBe(true);
    const [mean, variance] = momentsOf(u);
    expect(mean).toBeCloseTo(1 / 2, 2);
    expect(variance).toBeCloseTo(1 / 12, 2);
    expectUniformCounts(
      countsOf(
        u.map((v) => Math.floor(64 * v)),
        64,
      ),
    );
    // neighbours are independent: pairs fill the square
    const pairs = Uint16Array.from(
      { length: N / 2 },
      (_, i) => 16 * Math.floor(16 * u[2 * i]!) + Math.floor(16 * u[2 * i + 1]!),
    );
    expectUniformCounts(countsOf(pairs, 256));
  });

  test("uniform numbers between bounds stay below the upper one", () => {
    // so few f32 between the bounds that plain rounding would reach the upper one often
    const [lo, hi] = [2 ** 20, 2 ** 20 + 1];
    const u = doubles(random.uniform(random.key(2), [N], { dtype, lo, hi }));
    expect(u.every((v) => v >= lo && v < hi)).toBe(true);
    expect(momentsOf(u)[0]! - lo).toBeCloseTo(0.5, 1);
    const negative = doubles(random.uniform(random.key(2), [N], { dtype, lo: -1, hi: 0 }));
    expect(negative.every((v) => v >= -1 && v < 0)).toBe(true);
    const below = doubles(random.uniform(random.key(2), [N], { dtype, lo: -3, hi: -1 }));
    expect(below.every((v) => v >= -3 && v < -1)).toBe(true);
    expect(momentsOf(below)[1]).toBeCloseTo(1 / 3, 2);
  });

  test("normal numbers have the moments of their distribution", () => {
    const [mean, variance, skewness, kurtosis] = momentsOf(doubles(random.normal(random.key(3), [N], { dtype })));
    expect(mean).toBeCloseTo(0, 1);
    expect(variance).toBeCloseTo(1, 1);
    expect(skewness).toBeCloseTo(0, 1);
    expect(kurtosis).toBeCloseTo(3, 0);
    const [mean2, variance2] = momentsOf(doubles(random.normal(random.key(3), [N], { dtype, mean: 5, std: 0.5 })));
    expect(mean2).toBeCloseTo(5, 1);
    expect(variance2).toBeCloseTo(0.25, 1);
  });

  test("normal numbers fill the quartiles evenly", () => {
    const quartile = 0.6744897501960817;
    const cells = doubles(random.normal(random.key(4), [N], { dtype })).map((v) => {
      const outer = Number(Math.abs(v) > quartile);
      return v < 0 ? outer : 2 + outer;
    });
    expectUniformCounts(countsOf(cells, 4));
  });
});

describe("keys", () => {
  const draws: Readonly<Record<string, (key: Tensor) => Tensor>> = {
    uniform: (key) => random.uniform(key, [5, 7]),
    normal: (key) => random.normal(key, [5, 7], { dtype: "f64" }),
    bernoulli: (key) => random.bernoulli(key, 0.4, [64]),
    permutation: (key) => random.permutation(key, 40),
    split: (key) => random.split(key, 3)[2],
    foldIn: (key) => random.foldIn(key, 12),
  };

  for (const [name, draw] of Object.entries(draws)) {
    test(`decide what ${name} gives, compiled or not, whatever is around it`, () => {
      const key = random.key(99);
      const first = draw(key);
      expectSameBits(draw(random.key(99)), first, "again");
      expectSameBits(compile(draw)(key), first, "compiled");
      const inside = compile((k: Tensor, x: Tensor) => [draw(k), matmul(x, x).add(draw(k).cast("f32").sum())] as const);
      expectSameBits(
        inside(
          key,
          tensor([
            [1, 2],
            [3, 4],
          ]),
        )[0],
        first,
        "in a larger program",
      );
      const others = [98, 100, 99 + 2 ** 32, -99].map((seed) => draw(random.key(seed)).data().join());
      expect(new Set([first.data().join(), ...others]).size).toBe(5);
    });
  }

  test("that are split or folded give numbers without correlation", () => {
    const key = random.key(5);
    const [a, b] = random.split(key);
    const streams = [key, a, b, random.foldIn(key, 0), random.foldIn(key, 1)].map((k) =>
      doubles(random.normal(k, [N])),
    );
    for (let i = 0; i < streams.length; i++) {
      for (let j = 0; j < i; j++) {
        const correlation = streams[i]!.reduce((s, v, e) => s + v * streams[j]![e]!, 0) / N;
        expect(Math.abs(correlation)).toBeLessThan(4 / Math.sqrt(N));
      }
    }
  });

  test("of neighbouring seeds give unrelated bits", () => {
    const bits = Array.from({ length: 64 }, (_, seed) => random.split(random.key(seed), 1)[0].data());
    let different = 0;
    for (let i = 1; i < bits.length; i++) {
      for (let w = 0; w < 2; w++) for (let x = bits[i]![w]! ^ bits[i - 1]![w]!; x !== 0; x &= x - 1) different++;
    }
    expect(different / (63 * 64)).toBeCloseTo(0.5, 1);
  });
});

describe("bernoulli and permutation", () => {
  test("bernoulli is true at its rate", () => {
    for (const p of [0, 0.01, 0.5, 0.9, 1]) {
      const hits = random.bernoulli(random.key(6), p, [N]).sum().item();
      expect(Math.abs(hits - p * N)).toBeLessThanOrEqual(4 * Math.sqrt(p * (1 - p) * N));
    }
  });

  test("permutation has every number once, for every length", () => {
    for (const n of [0, 1, 2, 3, 17, 1000]) {
      const order = [...random.permutation(random.key(n), n).data()];
      expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
    }
  });

  test("permutation prefers no order and no place", () => {
    const orders = new Map<string, number>();
    const shuffle = compile((key: Tensor) => random.permutation(key, 3));
    const runs = 6000;
    for (let seed = 0; seed < runs; seed++) {
      const order = shuffle(random.key(seed)).data().join("");
      orders.set(order, (orders.get(order) ?? 0) + 1);
    }
    expect(orders.size).toBe(6);
    expectUniformCounts([...orders.values()]);
    const long = random.permutation(random.key(8), 4096).data();
    expectUniformCounts(
      countsOf(
        Array.from(long.slice(0, 2048), (v) => v >> 8),
        16,
      ),
    );
  });
});

describe("dropout", () => {
  const x = random.normal(random.key(10), [50, 40]);
  const key = random.key(11);

  test("keeps at its rate, scales what it keeps, and its gradient is the very mask", () => {
    for (const [rate, scale] of [
      [0.5, 2],
      [0.75, 4],
      [0.1, Math.fround(1 / 0.9)],
    ] as const) {
      const y = dropout(x, rate, key).data();
      const slope = compile(grad((v: Tensor) => dropout(v, rate, key).sum()))(x).data();
      let kept = 0;
      y.forEach((v, i) => {
        expect(slope[i] === 0 || slope[i] === scale).toBe(true);
        expect(v).toBe(slope[i] === 0 ? 0 : Math.fround(x.data()[i]! * scale));
        kept += Number(slope[i] !== 0);
      });
      const deviation = Math.sqrt(rate * (1 - rate) * 2000);
      expect(Math.abs(kept - (1 - rate) * 2000)).toBeLessThan(4 * deviation);
    }
  });

  test("stores no mask between the forward and the backward pass", () => {
    const w = random.normal(random.key(12), [40, 40]);
    const loss = (v: Tensor, k: Tensor): Tensor => {
      const [k1, k2] = random.split(k);
      const hidden = dropout(v.matmul(w).tanh(), 0.5, k1);
      return dropout(hidden.matmul(w).tanh(), 0.5, k2).square().sum();
    };
    const { plan } = compile(grad(loss)).program(x, key);
    const values = plan.problem.buffers.flatMap((buffer) => buffer.values);
    const large = values.filter((value) => elementsOf(value.type.shape) === 2000);
    expect(large.length).toBeGreaterThan(2);
    expect(large.filter((value) => value.type.dtype === "bool")).toEqual([]);
    expect(plan.problem.buffers.filter((buffer) => buffer.bytes === 2000)).toEqual([]);
  });
});
