/** @file Residuals kept in few bits: which values, what they cost, that bits depend on the choice alone, and what is refused. */
import { describe, expect, it } from "vitest";
import type { Deviation } from "../src/api/deviation.ts";
import {
  compile,
  gelu,
  grad,
  lossyDeviation,
  plan,
  random,
  spec,
  type Tensor,
  topK,
  valueAndGrad,
  where,
} from "../src/api/index.ts";
import type { LossyOptions } from "../src/api/lossy-options.ts";
import type { PlanningOptions } from "../src/api/request.ts";
import { expectedError, ROUNDED_BITS } from "../src/ops/rounding.ts";
import { tidemark } from "./support/command.ts";
import { lastLine } from "./support/outcome.ts";

const WIDTH = 64;
const BATCH = 256;
const LAYERS = 8;

/** Products, with an activation whose backward reads its input. */
function lossOf(ws: readonly Tensor[], x: Tensor): Tensor {
  return ws
    .reduce((h, w) => gelu(h.matmul(w)), x)
    .square()
    .mean();
}

const weights = Array.from({ length: LAYERS }, (_, i) => random.normal(random.key(i), [WIDTH, WIDTH]).mul(0.2));
const x = random.normal(random.key(99), [BATCH, WIDTH]);
const specs = [Array.from({ length: LAYERS }, () => spec([WIDTH, WIDTH])), spec([BATCH, WIDTH])] as const;
const step = valueAndGrad(lossOf);
const both: LossyOptions = { residuals: { linear: 4, rest: 8 } };
const numbers = (result: readonly [Tensor, readonly Tensor[]]) => [result[0], ...result[1]].map((t) => [...t.data()]);

describe("residuals in few bits", () => {
  it("are those that the backward pass reads, the operands of products linear and those of activations not", () => {
    const { lossy } = plan(step, { lossy: both })(...specs);
    const whole = 4 * BATCH * WIDTH;
    expect(lossy.filter(({ linear }) => linear).length).toBe(LAYERS - 1);
    expect(lossy.filter(({ linear }) => !linear).length).toBeGreaterThanOrEqual(LAYERS);
    for (const { linear, form, bytes, wholeBytes, error } of lossy) {
      expect([form, wholeBytes, error]).toEqual(
        linear ? ["4 bits", whole, expectedError(4)] : ["8 bits", whole, expectedError(8)],
      );
      // two numbers of f32 for 256 elements
      expect(bytes).toBe((whole * (linear ? 4 : 8)) / 32 + (8 * BATCH * WIDTH) / 256);
    }
    expect(plan(step)(...specs).lossy).toEqual([]);
  });

  it("are rounded to bf16 where that is asked for, and gradients by less than in 8 bits", () => {
    const short: LossyOptions = { residuals: { linear: "bf16", rest: "bf16" } };
    const { lossy, arenaBytes } = plan(step, { lossy: short })(...specs);
    for (const { form, bytes, wholeBytes } of lossy) expect([form, bytes]).toEqual(["bf16", wholeBytes / 2]);
    expect(lossy.length).toBe(plan(step, { lossy: both })(...specs).lossy.length);
    expect(arenaBytes).toBeLessThan(plan(step)(...specs).arenaBytes);
    const deviation = (lossy: LossyOptions) => lossyDeviation(step, { lossy })(weights, x);
    const [brain, eight] = [deviation(short), deviation({ residuals: { linear: 8, rest: 8 } })];
    for (const { measured, error } of brain.values) {
      expect(measured).toBeGreaterThan(error / 1.5);
      expect(measured).toBeLessThan(error * 1.5);
    }
    for (const [i, { relative }] of brain.results.entries()) {
      expect(relative).toBeLessThan(i === 0 ? 1e-12 : eight.results[i]!.relative);
    }
  });

  it("are whole where they are as sparse as the form, at a thirteenth of the bytes", () => {
    const eight = (h: Tensor): Tensor =>
      where(
        h.greaterEqual(
          topK(h, 8).values.slice([
            [0, BATCH],
            [7, 8],
          ]),
        ),
        h,
        0,
      );
    const loss = (ws: readonly Tensor[], input: Tensor) =>
      ws.reduce((h, w) => eight(h.matmul(w).relu()).matmul(w), input).sum();
    const [ws, input] = [[random.normal(random.key(5), [256, 256])], random.normal(random.key(6), [BATCH, 256])];
    const { values, results } = lossyDeviation(valueAndGrad(loss), {
      lossy: { residuals: { linear: { sparse: 1 / 16 } } },
    })(ws, input);
    expect(values.map(({ form, measured, bytes, wholeBytes }) => [form, measured, wholeBytes / bytes])).toEqual([
      ["16 of 256", 0, 12.8],
    ]);
    for (const { relative } of results) expect(relative).toBe(0);
    // of others the largest are left
    const some = lossyDeviation(step, { lossy: { residuals: { linear: { sparse: 0.1 } } } })(weights, x);
    for (const { form, measured } of some.values) {
      expect(form).toBe("26 of 256");
      expect(measured).toBeGreaterThan(0.1);
      expect(measured).toBeLessThan(1);
    }
  });

  it("are projected to the rank that is asked for, and little is lost of smooth functions of two numbers", () => {
    const loss = (ws: readonly Tensor[], input: Tensor) => ws.reduce((h, w) => h.matmul(w).sin(), input).mean();
    const ws = [
      [2, 64],
      [64, 64],
      [64, 64],
    ].map((shape, i) => random.normal(random.key(i), shape).mul(shape[0]! ** -0.5));
    const places = random.uniform(random.key(7), [BATCH, 2], { lo: -1, hi: 1 });
    const low: LossyOptions = { residuals: { linear: { rank: 12 } } };
    const { values, results } = lossyDeviation(valueAndGrad(loss), { lossy: low })(ws, places);
    expect(values.length).toBe(2);
    for (const { form, bytes, measured, error } of values) {
      expect([form, bytes]).toEqual(["rank 12", 4 * 12 * (BATCH + 64)]);
      expect(measured).toBeGreaterThan(0);
      expect(measured).toBeLessThan(0.02 * error);
    }
    for (const { relative } of results) expect(relative).toBeLessThan(0.01);
    const twice = [1, 2].map((threads) => numbers(compile(valueAndGrad(loss), { lossy: low, threads })(ws, places)));
    expect(twice[0]).toEqual(twice[1]);
  });

  it("leave results as they are where nothing is asked for, and of auto without a budget", () => {
    const exact = numbers(compile(step)(weights, x));
    expect(numbers(compile(step, { lossy: { residuals: "auto" } })(weights, x))).toEqual(exact);
    expect(numbers(compile(step, { lossy: both })(weights, x))).not.toEqual(exact);
  });

  it("change no loss, and gradients by little", () => {
    const [loss, grads] = compile(step)(weights, x);
    const rounded = compile(step, { lossy: both, validate: true })(weights, x);
    expect(rounded[0].item()).toBe(loss.item());
    for (const [i, g] of rounded[1].entries()) {
      const off = g.sub(grads[i]!).norm().item() / grads[i]!.norm().item();
      expect(off).toBeGreaterThan(0);
      expect(off).toBeLessThan(0.1);
    }
  });

  it("have bits that depend on the choice and the seed, not on the budget, the run or threads", () => {
    const all = compile(step, { lossy: both });
    const expected = numbers(all(weights, x));
    expect(numbers(all(weights, x))).toEqual(expected);
    const { arenaBytes, lossy } = all.program(weights, x);
    expect(numbers(compile(step, { lossy: both, threads: 2 })(weights, x))).toEqual(expected);
    const less = compile(step, { lossy: both, strategy: "recompute-all" });
    expect(less.program(weights, x).lossy.length).toBe(lossy.length);
    expect(less.program(weights, x).arenaBytes).toBeLessThan(arenaBytes);
    expect(numbers(less(weights, x))).toEqual(expected);
    expect(numbers(compile(step, { lossy: { ...both, seed: 1 } })(weights, x))).not.toEqual(expected);
  });

  it("are chosen for a budget where recomputing takes longer, and not where it does not", () => {
    const wide = [Array.from({ length: 6 }, () => spec([512, 512])), spec([1024, 512])] as const;
    const figures = (options: PlanningOptions) => plan(step, options)(...wide);
    const [whole, all] = [figures({}), figures({ lossy: both })];
    expect(all.arenaBytes).toBeLessThan(0.7 * whole.arenaBytes);
    const memory = Math.floor(0.6 * whole.arenaBytes);
    const [lossless, rounded] = [figures({ memory }), figures({ memory, lossy: { residuals: "auto" } })];
    expect(rounded.arenaBytes).toBeLessThanOrEqual(memory);
    expect(rounded.predictedMs).toBeLessThan(lossless.predictedMs);
    expect(rounded.lossy.length).toBeGreaterThan(0);
    const ample = figures({ memory: whole.arenaBytes, lossy: { residuals: "auto" } });
    expect(ample.lossy).toEqual([]);
  });

  it("are measured: errors of values near those expected, gradients near the exact ones", () => {
    const { values, results } = lossyDeviation(step, { lossy: both })(weights, x);
    expect(values.length).toBe(plan(step, { lossy: both })(...specs).lossy.length);
    for (const { measured, error } of values) {
      expect(measured).toBeGreaterThan(error / 5);
      expect(measured).toBeLessThan(error * 2);
    }
    expect(results.map(({ path }) => path)).toEqual(["result[0]", ...weights.map((_, i) => `result[1][${i}]`)]);
    expect(results[0]).toMatchObject({ relative: 0 });
    for (const { cosine } of results) expect(cosine).toBeGreaterThan(0.995);
  });

  it("are unbiased where gradients are linear in them: the mean over seeds comes near", () => {
    const slope = grad((w: Tensor, v: Tensor, input: Tensor) => input.matmul(v).sin().matmul(w).mean());
    const [w, v] = [weights[0]!, weights[1]!];
    const exact = slope(w, v, x);
    const seeds = 10;
    const distances = ROUNDED_BITS.map((bits) => {
      const draws = Array.from({ length: seeds }, (_, seed) =>
        compile(slope, { lossy: { residuals: { linear: bits as 4 }, seed } })(w, v, x),
      );
      const mean = draws.reduce((a, b) => a.add(b)).div(seeds);
      const off = (g: Tensor): number => g.sub(exact).norm().item() / exact.norm().item();
      expect(off(mean)).toBeLessThan(0.5 * off(draws[0]!));
      return off(draws[0]!);
    });
    expect([...distances].sort((a, b) => b - a)).toEqual(distances);
  });
});

describe("what is refused", () => {
  const asked = (lossy: unknown) => () => compile(step, { lossy: lossy as LossyOptions });

  it("says what would be right", () => {
    expect(asked("auto")).toThrow('lossy is the string "auto"');
    expect(asked({ residuals: "half" })).toThrow('lossy.residuals is the string "half"');
    expect(asked({ residuals: {} })).toThrow("says no bits");
    expect(asked({ residuals: { linear: 3 } })).toThrow("lossy.residuals.linear is 3");
    expect(asked({ residuals: { linear: { sparse: 2 } } })).toThrow("lossy.residuals.linear: sparse is 2");
    expect(asked({ residuals: { linear: { rank: 0.5 } } })).toThrow("lossy.residuals.linear: rank is 0.5");
    expect(asked({ residuals: { linear: { delta: 4 } } })).toThrow("delta");
    expect(asked({ residuals: { linear: { rank: 4, sparse: 0.5 } } })).toThrow("is not one form");
    expect(asked({ residuals: { rest: { rank: 4 } } })).toThrow("gradients are not linear in these values");
    expect(asked({ residuals: { rest: 4 } })).toThrow(
      "gradients are not linear in these values: below 8 bits training fails",
    );
    expect(asked({ residuals: { lineal: 4 } })).toThrow("lineal");
    expect(asked({ residuals: "auto", seed: 0.5 })).toThrow("lossy.seed is 0.5");
    expect(() => lossyDeviation(step, {})).toThrow("lossy is not given");
  });
});

describe("the command line", () => {
  it("plans and measures rounded values", async () => {
    const figures = lastLine((await tidemark("plan", "mlp", "--lossy", "linear=4,rest=8", "--json")).out);
    expect(figures.lossy).toContainEqual(expect.objectContaining({ form: "8 bits", linear: false }));
    expect(figures.gradientBytes).toEqual(expect.any(Number));
    const bench = await tidemark("bench", "mlp", "--lossy", "linear=8,rest=8", "--deviation", "--steps", "1", "--json");
    const { values, results } = lastLine(bench.out).deviation as Deviation;
    expect(values.length).toBeGreaterThan(0);
    expect(Math.min(...results.map(({ cosine }) => cosine))).toBeGreaterThan(0.9);
  });

  it.each([
    ["rest=4", "below 8 bits training fails"],
    ["linear=f16", 'lossy.residuals.linear is the string "f16"'],
    ["linear=rank:x", "rank is NaN"],
    ["linear=3", "lossy.residuals.linear is 3"],
    ["half=4", "--lossy half=4"],
    ["linear", "--lossy linear"],
  ])("refuses --lossy %s", async (spec, message) => {
    const { code, err } = await tidemark("plan", "mlp", "--lossy", spec);
    expect(code).toBe(1);
    expect(err).toContain(message);
  });
});
