/**
 * @file Optimizers and learning rates against PyTorch (tests/fixtures/torch/optim.py): five updates with given gradients.
 * In f64 both sides must agree to rounding; in f32 to a few of its steps, which checks the bias corrections.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Tensor, tensor } from "../src/api/index.ts";
import * as optim from "../src/optim/index.ts";

interface Fixture {
  readonly shapes: Readonly<Record<"w" | "b", readonly number[]>>;
  readonly start: readonly [readonly number[], readonly number[]];
  readonly gradients: readonly (readonly [readonly number[], readonly number[]])[];
  readonly updates: Readonly<Record<string, readonly (readonly [readonly number[], readonly number[]])[]>>;
  readonly rates: Readonly<Record<string, readonly number[]>>;
}

const fixture = JSON.parse(readFileSync(new URL("./fixtures/torch/optim.json", import.meta.url), "utf8")) as Fixture;

const OPTIMIZERS: Readonly<Record<string, optim.Optimizer>> = {
  sgd: optim.sgd({ lr: 0.1 }),
  "sgd momentum": optim.sgd({ lr: 0.1, momentum: 0.9 }),
  "sgd nesterov": optim.sgd({ lr: 0.1, momentum: 0.8, nesterov: true }),
  "sgd weight decay": optim.sgd({ lr: 0.1, momentum: 0.9, weightDecay: 0.2 }),
  "sgd clipped by norm": optim.sgd({ lr: 0.1, clip: optim.clipByGlobalNorm(0.7) }),
  "sgd clipped by value": optim.sgd({ lr: 0.1, clip: optim.clipByValue(0.4) }),
  adam: optim.adam(),
  "adam weight decay": optim.adam({ lr: 0.05, weightDecay: 0.3 }),
  "adam betas": optim.adam({ lr: 0.05, beta1: 0.7, beta2: 0.95, eps: 1e-3 }),
  adamw: optim.adamw(),
  "adamw weight decay": optim.adamw({ lr: 0.05, weightDecay: 0.3 }),
  rmsprop: optim.rmsprop(),
  "rmsprop centered": optim.rmsprop({ lr: 0.02, alpha: 0.9, centered: true }),
  "rmsprop momentum": optim.rmsprop({ lr: 0.02, momentum: 0.9, weightDecay: 0.1 }),
  adagrad: optim.adagrad(),
  lbfgs: optim.lbfgs({ lr: 0.1, history: 2 }),
  "adagrad decay": optim.adagrad({ lr: 0.1, lrDecay: 0.2, weightDecay: 0.1, initial: 0.5 }),
};

const SCHEDULES: Readonly<Record<string, optim.Schedule>> = {
  cosine: optim.cosine(0.5, 12, 0.05),
  exponential: optim.exponential(0.5, 0.9),
  stepDecay: optim.stepDecay(0.5, 0.1, 4),
  linear: optim.linear(0.1, 0.5, 8),
  piecewise: optim.piecewise([3, 7], [0.5, 0.25, 0.125]),
};

/** Largest difference to what is expected. */
function distance(found: Tensor, expected: readonly number[]): number {
  const data = found.data();
  expect(data.length).toBe(expected.length);
  return expected.reduce((worst, x, i) => Math.max(worst, Math.abs(x - data[i]!)), 0);
}

describe("optimizers follow PyTorch", () => {
  it("in every case that the fixture has", () => {
    expect(Object.keys(OPTIMIZERS).sort()).toEqual(Object.keys(fixture.updates).sort());
    expect(Object.keys(SCHEDULES).sort()).toEqual(Object.keys(fixture.rates).sort());
  });

  for (const dtype of ["f64", "f32"] as const) {
    const made = ([w, b]: readonly [readonly number[], readonly number[]]) => ({
      w: tensor(w, { shape: fixture.shapes.w, dtype }),
      b: tensor(b, { shape: fixture.shapes.b, dtype }),
    });
    for (const [name, optimizer] of Object.entries(OPTIMIZERS)) {
      it(`${name}, in ${dtype}`, () => {
        let state = optimizer.init(made(fixture.start));
        fixture.gradients.forEach((gradients, step) => {
          state = optimizer.update(state, made(gradients));
          const [w, b] = fixture.updates[name]![step]!;
          const worst = Math.max(distance(state.params.w, w), distance(state.params.b, b));
          expect(worst).toBeLessThan(dtype === "f64" ? 1e-11 : 6e-7);
        });
        expect(state.step.item()).toBe(fixture.gradients.length);
        expect(state.params.w.dtype).toBe(dtype);
      });
    }
  }

  for (const [name, schedule] of Object.entries(SCHEDULES)) {
    it(`the learning rate ${name}`, () => {
      const found = fixture.rates[name]!.map((_, step) => schedule(tensor(step, { dtype: "i32" })).item());
      found.forEach((rate, step) => {
        expect(rate).toBeCloseTo(fixture.rates[name]![step]!, 6);
      });
    });
  }
});
