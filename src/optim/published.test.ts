/**
 * @file Optimizers that PyTorch does not have in the version of the fixtures, against their publications, written here as loops over
 * numbers: five updates of a matrix and a vector with given gradients.
 */
import { describe, expect, it } from "vitest";
import { type Tensor, tensor } from "../api/index.ts";
import { typeOf } from "../kernel/dtype.ts";
import * as optim from "./index.ts";

type Numbers = readonly number[];

const ROWS = 3;
const COLUMNS = 2;
const STEPS = 5;

/** Sines, rounded to f32 so that both element types start alike. */
const values = (n: number, seed: number): Numbers =>
  Array.from({ length: n }, (_, i) => Math.fround(Math.sin(12.9898 * (i + 1) + 78.233 * seed)));

const start = { w: values(ROWS * COLUMNS, 1), b: values(4, 2) };
const gradients = Array.from({ length: STEPS }, (_, s) => ({
  w: values(ROWS * COLUMNS, 10 + 7 * s),
  b: values(4, 11 + 7 * s),
}));

const rms = (x: Numbers): number => Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length);
const length = (x: Numbers): number => Math.sqrt(x.length) * rms(x);

/** What a publication does to one parameter with the gradients of all steps: the parameter after each of them. */
type Published = (param: Numbers, grads: readonly Numbers[], isMatrix: boolean) => readonly Numbers[];

/** Folds over gradients, with whatever is kept between them inside of `step`. */
function steps(param: Numbers, grads: readonly Numbers[], step: (p: Numbers, g: Numbers, t: number) => Numbers) {
  let p = param;
  return grads.map((g, i) => {
    p = step(p, g, i + 1);
    return p;
  });
}

const lion: Published = (param, grads) => {
  let m = param.map(() => 0);
  const [lr, b1, b2, decay] = [0.01, 0.8, 0.95, 0.1];
  return steps(param, grads, (p, g) => {
    const update = m.map((v, i) => Math.sign(b1 * v + (1 - b1) * g[i]!));
    m = m.map((v, i) => b2 * v + (1 - b2) * g[i]!);
    return p.map((v, i) => v - lr * (update[i]! + decay * v));
  });
};

const lamb: Published = (param, grads) => {
  let m = param.map(() => 0);
  let v = param.map(() => 0);
  const [lr, b1, b2, eps, decay] = [0.02, 0.9, 0.99, 1e-6, 0.1];
  return steps(param, grads, (p, g, t) => {
    m = m.map((x, i) => b1 * x + (1 - b1) * g[i]!);
    v = v.map((x, i) => b2 * x + (1 - b2) * g[i]! ** 2);
    const r = p.map((x, i) => m[i]! / (1 - b1 ** t) / (Math.sqrt(v[i]! / (1 - b2 ** t)) + eps) + decay * x);
    const ratio = length(p) / length(r);
    return p.map((x, i) => x - lr * ratio * r[i]!);
  });
};

const adafactor: Published = (param, grads, isMatrix) => {
  const row = new Array<number>(ROWS).fill(0);
  const column = new Array<number>(COLUMNS).fill(0);
  const single = param.map(() => 0);
  return steps(param, grads, (p, g, t) => {
    const beta = 1 - t ** -0.8;
    const squares = g.map((x) => x * x + 1e-30);
    const averaged = (list: number[], mean: (k: number) => number): void => {
      for (const k of list.keys()) list[k] = beta * list[k]! + (1 - beta) * mean(k);
    };
    averaged(single, (k) => squares[k]!);
    averaged(row, (k) => (squares[2 * k]! + squares[2 * k + 1]!) / COLUMNS);
    averaged(column, (k) => (squares[k]! + squares[k + 2]! + squares[k + 4]!) / ROWS);
    const total = row.reduce((a, b) => a + b, 0) / ROWS;
    const v = single.map((x, i) => (isMatrix ? (row[i >> 1]! * column[i % 2]!) / total : x));
    const u = g.map((x, i) => x / Math.sqrt(v[i]!));
    const scale = Math.min(0.01, 1 / Math.sqrt(t)) * Math.max(1e-3, rms(p));
    const clip = Math.max(1, rms(u));
    return p.map((x, i) => x - (scale * u[i]!) / clip);
  });
};

const sgdRounded: Published = (param, grads) => {
  const { round } = typeOf("bf16");
  let kept = param.map(() => 0);
  const [lr, momentum] = [0.1, 0.9];
  return steps(param, grads, (p, g) => {
    const velocity = kept.map((v, i) => momentum * v + g[i]!);
    kept = velocity.map(round);
    return p.map((v, i) => v - lr * velocity[i]!);
  });
};

const CASES: readonly (readonly [string, optim.Optimizer, Published])[] = [
  ["lion", optim.lion({ lr: 0.01, beta1: 0.8, beta2: 0.95, weightDecay: 0.1 }), lion],
  ["lamb", optim.lamb({ lr: 0.02, beta2: 0.99, weightDecay: 0.1 }), lamb],
  ["adafactor", optim.adafactor(), adafactor],
  ["sgd with its momentum in bf16", optim.sgd({ lr: 0.1, momentum: 0.9, momentumType: "bf16" }), sgdRounded],
];

const worst = (found: Tensor, expected: Numbers): number =>
  Math.max(...expected.map((v, i) => Math.abs(v - found.data()[i]!)));

describe.each(CASES)("%s is as published", (_, optimizer, published) => {
  it.each(["f64", "f32"] as const)("in %s", (dtype) => {
    const made = ({ w, b }: typeof start) => ({
      w: tensor(w, { shape: [ROWS, COLUMNS], dtype }),
      b: tensor(b, { dtype }),
    });
    const w = published(
      start.w,
      gradients.map((g) => g.w),
      true,
    );
    const b = published(
      start.b,
      gradients.map((g) => g.b),
      false,
    );
    let state = optimizer.init(made(start));
    gradients.forEach((g, s) => {
      state = optimizer.update(state, made(g));
      const off = Math.max(worst(state.params.w, w[s]!), worst(state.params.b, b[s]!));
      expect(off).toBeLessThan(dtype === "f64" ? 1e-12 : 1e-6);
    });
  });
});

it("adafactor keeps a row and a column of a matrix, and nothing else of it", () => {
  const { slots } = optim.adafactor().init({ w: tensor(new Float32Array(4 * 6 * 5), { shape: [4, 6, 5] }) });
  expect(Object.values(slots).map(({ w }) => w.shape)).toEqual([
    [4, 6],
    [4, 5],
  ]);
});

it("an average of weights follows its formula", () => {
  const optimizer = optim.ema(optim.sgd({ lr: 0.5 }), 0.8);
  let state = optimizer.init({ x: tensor([2, -1]) });
  let expected = [2, -1];
  for (let i = 0; i < 4; i++) {
    state = optimizer.update(state, { x: tensor([1, i]) });
    expected = expected.map((v, k) => 0.8 * v + 0.2 * state.params.x.data()[k]!);
  }
  const average = state.slots.average!.x.data();
  for (const [k, v] of expected.entries()) expect(average[k]).toBeCloseTo(v, 6);
});
