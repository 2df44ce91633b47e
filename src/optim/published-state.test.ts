/**
 * @file Optimizers with less state against their publications, written here as loops over numbers: moments of 8 bits, one average for a
 * block, and projected gradients.
 */
import { describe, expect, it } from "vitest";
import { linalg, type Tensor, tensor } from "../api/index.ts";
import * as optim from "./index.ts";

type Numbers = readonly number[];

const STEPS = 5;

const values = (n: number, seed: number): Numbers =>
  Array.from({ length: n }, (_, i) => {
    const v = Math.sin(12.9898 * (i + 1) + 78.233 * seed) * 43758.5453;
    return Math.fround((v - Math.floor(v) - 0.5) * 10 ** (-4 * ((i * 7919) % 11) * 0.1));
  });

/** Largest difference between numbers. */
const worst = (found: Tensor, expected: Numbers): number => {
  const data = found.data();
  expect(data.length).toBe(expected.length);
  return expected.reduce((most, v, i) => Math.max(most, Math.abs(v - data[i]!)), 0);
};

/** The numbers of dynamic tree quantisation as its authors list them: middles of equal parts of [0.1, 1] times powers of ten. */
function dynamicMap(signed: boolean): Numbers {
  const found = [0, 1];
  for (let i = 0; i < 7; i++) {
    const parts = 2 ** (signed ? i : i + 1);
    for (let j = 0; j < parts; j++) {
      const [lo, hi] = [j, j + 1].map((k) => 0.1 + (0.9 * k) / parts);
      const middle = (10 ** (i - 6) * (lo! + hi!)) / 2;
      found.push(middle, ...(signed ? [-middle] : []));
    }
  }
  expect(found.length).toBe(256);
  return found.sort((a, b) => a - b);
}

/** Numbers rounded in blocks of 2048. */
function rounded(x: Numbers, map: Numbers): Numbers {
  const out: number[] = [];
  for (let from = 0; from < x.length; from += 2048) {
    const block = x.slice(from, from + 2048);
    const scale = Math.max(...block.map(Math.abs));
    for (const v of block) {
      const part = scale === 0 ? 0 : v / scale;
      const nearest = map.reduce((best, w) => (Math.abs(w - part) < Math.abs(best - part) ? w : best));
      out.push(nearest * scale);
    }
  }
  return out;
}

describe.each([2048, 2500])("8-bit Adam is as published, %d elements", (n) => {
  it.each(["f64", "f32"] as const)("in %s", (dtype) => {
    const [lr, b1, b2, eps] = [0.01, 0.9, 0.99, 1e-8];
    const optimizer = optim.adam8bit({ lr, beta2: b2, leastElements: 1 });
    const [first, second] = [dynamicMap(true), dynamicMap(false)];
    let p = values(n, 1);
    let m: Numbers = p.map(() => 0);
    let v: Numbers = m;
    let state = optimizer.init({ w: tensor(p, { shape: [n / 4, 4], dtype }) });
    for (let t = 1; t <= STEPS; t++) {
      const g = values(n, 1 + t);
      const [nextM, nextV] = [
        m.map((x, i) => b1 * x + (1 - b1) * g[i]!),
        v.map((x, i) => b2 * x + (1 - b2) * g[i]! ** 2),
      ];
      const [c1, c2] = [1 - b1 ** t, 1 - b2 ** t];
      p = p.map((x, i) => x - (lr * (nextM[i]! / c1)) / (Math.sqrt(nextV[i]! / c2) + eps));
      [m, v] = [rounded(nextM, first), rounded(nextV, second)];
      state = optimizer.update(state, { w: tensor(g, { shape: [n / 4, 4], dtype }) });
      expect(worst(state.params.w, p), `update ${t}`).toBeLessThan(dtype === "f64" ? 2e-6 : 2e-5);
    }
  });
});

it("Adam-mini is as published: one average of squares for a neuron, for a head, for a vector", () => {
  const [lr, b1, b2, eps] = [0.01, 0.9, 0.95, 1e-8];
  const blocks = (path: string, shape: readonly number[]) => (path.endsWith("w") ? [1, 2] : shape.map(() => 1));
  const optimizer = optim.adamMini({ lr, beta2: b2, blocks });
  let [w, b] = [values(12, 1), values(4, 2)];
  let state = optimizer.init({ w: tensor(w, { shape: [3, 4], dtype: "f64" }), b: tensor(b, { dtype: "f64" }) });
  expect([state.slots.v!.w.shape, state.slots.v!.b.shape]).toEqual([[1, 2], [1]]);
  expect(optim.adamMini().init({ w: tensor([[1, 2, 3]]) }).slots.v!.w.shape).toEqual([1, 3]);
  const run = (group: (i: number) => number) => {
    const m = new Map<number, number>();
    const v = new Map<number, number>();
    return (p: Numbers, g: Numbers, t: number): Numbers => {
      const squares = new Map<number, number[]>();
      for (const [i, x] of g.entries()) squares.set(group(i), [...(squares.get(group(i)) ?? []), x * x]);
      for (const [k, list] of squares) {
        v.set(k, b2 * (v.get(k) ?? 0) + ((1 - b2) * list.reduce((a, x) => a + x, 0)) / list.length);
      }
      return p.map((x, i) => {
        m.set(i, b1 * (m.get(i) ?? 0) + (1 - b1) * g[i]!);
        return x - (lr * m.get(i)!) / (1 - b1 ** t) / (Math.sqrt(v.get(group(i))! / (1 - b2 ** t)) + eps);
      });
    };
  };
  const [ofW, ofB] = [run((i) => Math.floor((i % 4) / 2)), run(() => 0)];
  for (let t = 1; t <= STEPS; t++) {
    const [gw, gb] = [values(12, 10 + t), values(4, 20 + t)];
    [w, b] = [ofW(w, gw, t), ofB(b, gb, t)];
    state = optimizer.update(state, {
      w: tensor(gw, { shape: [3, 4], dtype: "f64" }),
      b: tensor(gb, { dtype: "f64" }),
    });
    expect(Math.max(worst(state.params.w, w), worst(state.params.b, b))).toBeLessThan(1e-12);
  }
});

describe("GaLore", () => {
  const shapes = [
    [6, 9],
    [9, 6],
  ] as const;

  it.each(shapes)("projects a matrix %d × %d to its largest singular vectors, and is Adam there", (rows, columns) => {
    const [rank, lr, b1, b2, eps, scale] = [2, 0.01, 0.9, 0.999, 1e-8, 0.5];
    const optimizer = optim.galore({ lr, rank, every: 3, scale });
    const matrix = (seed: number): Tensor => {
      // two large singular values, the others a thousandth of them
      const [a, b] = [values(rows * 2, seed), values(columns * 2, seed + 50)].map((x, k) =>
        tensor(x, { shape: k === 0 ? [rows, 2] : [2, columns], dtype: "f64" }),
      );
      return a!
        .matmul(b!)
        .add(tensor(values(rows * columns, seed + 99), { shape: [rows, columns], dtype: "f64" }).mul(1e-4));
    };
    const isWide = rows <= columns;
    let state = optimizer.init({ w: matrix(1) });
    expect([state.slots.p!.w.shape, state.slots.m!.w.shape]).toEqual([[6, rank], isWide ? [rank, 9] : [9, rank]]);
    let [m, v] = [state.slots.m!.w, state.slots.v!.w];
    for (let t = 1; t <= STEPS; t++) {
      const [g, before, old] = [matrix(10 + t), state.params.w, state.slots.p!.w];
      state = optimizer.update(state, { w: g });
      const p = state.slots.p!.w;
      if (t % 3 === 1) {
        const { u } = linalg.svd(isWide ? g : g.transpose());
        const best = u.slice([null, [0, rank]]);
        const projector = (x: Tensor): Tensor => x.matmul(x.transpose());
        expect(projector(p).sub(projector(best)).abs().max().item(), "the space").toBeLessThan(1e-6);
        expect(
          p
            .transpose()
            .matmul(p)
            .sub(
              tensor(
                [
                  [1, 0],
                  [0, 1],
                ],
                { dtype: "f64" },
              ),
            )
            .abs()
            .max()
            .item(),
        ).toBeLessThan(1e-12);
      } else {
        expect(p.sub(old).abs().max().item(), "kept in between").toBe(0);
      }
      const r = isWide ? p.transpose().matmul(g) : g.matmul(p);
      m = m.mul(b1).add(r.mul(1 - b1));
      v = v.mul(b2).add(r.square().mul(1 - b2));
      const n = m.div(1 - b1 ** t).div(
        v
          .div(1 - b2 ** t)
          .sqrt()
          .add(eps),
      );
      const step = (isWide ? p.matmul(n) : n.matmul(p.transpose())).mul(scale * lr);
      expect(state.params.w.sub(before.sub(step)).abs().max().item(), `update ${t}`).toBeLessThan(1e-12);
    }
  });
});
