/** @file Losses at their edges, and the memory that they take with a gradient. */
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { grad, type Tensor, tensor } from "../src/api/index.ts";

const i32 = (list: number[] | number[][]): Tensor => tensor(list, { dtype: "i32" });
const inf = Number.POSITIVE_INFINITY;
const nan = Number.NaN;

/** At once and as a program. */
function both(loss: (x: Tensor) => Tensor, x: Tensor): unknown {
  const now = loss(x).toArray();
  expect(tm.compile(loss)(x).toArray()).toEqual(now);
  return now;
}

describe("of nothing", () => {
  const none = tm.zeros([0, 3]);
  const losses: Readonly<Record<string, (x: Tensor, options: tm.LossOptions) => Tensor>> = {
    crossEntropy: (x, options) => tm.crossEntropy(x, i32([]), { ...options, ignoreIndex: 0, weight: tm.ones([3]) }),
    nll: (x, options) => tm.nll(x, i32([]), options),
    klDivergence: (x, options) => tm.klDivergence(x, x, options),
    binaryCrossEntropyWithLogits: (x, options) => tm.binaryCrossEntropyWithLogits(x, x, options),
    l1: (x, options) => tm.l1(x, x, options),
    huber: (x, options) => tm.huber(x, x, options),
    hinge: (x, options) => tm.hinge(x, x, options),
    cosineEmbedding: (x, options) => tm.cosineEmbedding(x, x, tm.ones([0]), options),
    tripletMargin: (x, options) => tm.tripletMargin(x, x, x, options),
    ctc: (x, options) => tm.ctc(x.reshape([1, 0, 3]), tm.zeros([0, 2], "i32"), options),
  };

  test.each(Object.entries(losses))("%s: a sum of zero, a mean of NaN", (_, loss) => {
    expect(loss(none, { reduction: "sum" }).item()).toBe(0);
    expect(loss(none, {}).item()).toBe(nan);
    expect(loss(none, { reduction: "none" }).elements).toBe(0);
    expect(grad((x: Tensor) => loss(x, {}))(none).shape).toEqual([0, 3]);
  });
});

describe("far from zero", () => {
  test("binary cross entropy loses nothing", () => {
    const x = tensor([-100, 100, -100, 100], { dtype: "f64" });
    const z = tensor([0, 1, 1, 0], { dtype: "f64" });
    const losses = tm.binaryCrossEntropyWithLogits(x, z, { reduction: "none" }).toArray() as number[];
    expect(losses).toEqual([expect.closeTo(Math.exp(-100), 55), expect.closeTo(Math.exp(-100), 55), 100, 100]);
    const slopes = grad((a: Tensor) => tm.binaryCrossEntropyWithLogits(a, z, { reduction: "sum" }))(x);
    expect(slopes.toArray()).toEqual([expect.closeTo(Math.exp(-100), 55), expect.closeTo(-Math.exp(-100), 55), -1, 1]);
  });

  test("huber and smoothL1 are straight lines", () => {
    const x = tensor([1e30, -inf, nan]);
    expect(both((a) => tm.huber(a, tm.zeros([3]), { delta: 2, reduction: "none" }), x)).toEqual([
      Math.fround(Math.fround(1e30) * 2),
      inf,
      nan,
    ]);
    const slopes = grad((a: Tensor) => tm.smoothL1(a, tm.zeros([3]), { beta: 2, reduction: "sum" }))(x);
    expect(slopes.toArray()).toEqual([1, -1, nan]);
  });
});

describe("vectors of length zero", () => {
  test("have a cosine of zero, and finite gradients", () => {
    const zeros = tm.zeros([1, 2]);
    expect(tm.cosineSimilarity(zeros, tensor([[1, 2]])).toArray()).toEqual([0]);
    const slope = grad((a: Tensor) => tm.cosineSimilarity(a, tensor([[3, 4]]), { eps: 0.5 }).sum())(zeros);
    expect(slope.toArray()).toEqual([[expect.closeTo(1.2, 6), expect.closeTo(1.6, 6)]]);
  });

  test("are far enough apart for a triplet's gradient", () => {
    const x = tensor([[1, 2]]);
    const slope = grad((a: Tensor) => tm.tripletMargin(a, x, tensor([[3, 2]])))(x);
    expect(slope.abs().max().item()).toBeLessThan(2);
  });
});

describe("class numbers", () => {
  const x = tensor([0, 1, 2, 3, 4, 5], { shape: [3, 2], dtype: "f64" });

  test("out of range are NaN with every option, and have no gradient", () => {
    const loss = (reduction: tm.Reduction) => (a: Tensor) =>
      tm.crossEntropy(a, i32([2, -7, 1]), {
        reduction,
        ignoreIndex: -7,
        labelSmoothing: 0.5,
        weight: tensor([1, 2], { dtype: "f64" }),
      });
    expect(both((a) => tm.isnan(loss("none")(a)), x)).toEqual([true, false, false]);
    const slope = grad(loss("sum"))(x).toArray() as number[][];
    expect(slope.slice(0, 2)).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(slope[2]!.every((v) => v !== 0)).toBe(true);
  });

  test("that are ignored take no part, whatever their logits", () => {
    const a = tensor([nan, inf, 0, 1], { shape: [2, 2], dtype: "f64" });
    const loss = (v: Tensor): Tensor => tm.nll(v, i32([-1, 0]), { ignoreIndex: -1 });
    expect(both(loss, a)).toBe(0);
    expect(grad(loss)(a).toArray()).toEqual([
      [0, 0],
      [-1, 0],
    ]);
  });
});

describe("ctc", () => {
  const logs = tm.logSoftmax(
    tensor(
      Float64Array.from({ length: 24 }, (_, i) => Math.sin(i)),
      { shape: [4, 2, 3], dtype: "f64" },
    ),
  );

  test("a target that its frames cannot spell: ∞ without a gradient, or zero", () => {
    const loss = (zeroInfinity: boolean) => (x: Tensor) =>
      tm.ctc(
        x,
        i32([
          [1, 1, 1],
          [1, 2, 1],
        ]),
        { zeroInfinity, reduction: "none" },
      );
    const [never, some] = both(loss(false), logs) as number[];
    expect([never, Number.isFinite(some)]).toEqual([inf, true]);
    expect(both(loss(true), logs)).toEqual([0, some]);
    const slope = grad((x: Tensor) => loss(false)(x).sum())(logs);
    expect(slope.slice([null, 0]).abs().max().item()).toBe(0);
    expect(slope.slice([null, 1]).abs().max().item()).toBeGreaterThan(0);
  });

  test("lengths and class numbers out of range: NaN", () => {
    const loss = (target: number, inputs: number, letters: number) => (x: Tensor) =>
      tm.ctc(
        x,
        i32([
          [1, 2],
          [target, 1],
        ]),
        {
          inputLengths: i32([4, inputs]),
          targetLengths: i32([2, letters]),
          reduction: "none",
        },
      );
    for (const [target, inputs, letters] of [
      [3, 4, 2],
      [-1, 4, 1],
      [1, 5, 2],
      [1, -1, 2],
      [1, 4, 3],
      [1, 4, -1],
    ] as const)
      expect(tm.isnan(loss(target, inputs, letters)(logs)).toArray()).toEqual([false, true]);
  });

  test("no letters are blanks, no frames spell nothing", () => {
    const blanks = tm.ctc(logs, tm.zeros([2, 0], "i32"), { reduction: "sum" });
    expect(blanks.item()).toBeCloseTo(-logs.slice([null, null, 0]).sum().item(), 12);
    const none = tm.zeros([0, 2, 3]);
    const loss = tm.ctc(none, i32([[1], [1]]), { targetLengths: i32([0, 1]), reduction: "none" });
    expect(loss.toArray()).toEqual([expect.closeTo(0, 12), inf]);
  });
});

describe("memory of a loss with its gradient", () => {
  const shape = [256, 128];
  const [x, y, k, w] = [tm.spec(shape), tm.spec(shape), tm.spec([256], "i32"), tm.spec([128])];
  type AnyLoss = (...args: [Tensor, ...Tensor[]]) => Tensor;
  /** In copies of the predictions, operands included: one, and one for targets of the same size. */
  const cases: readonly (readonly [string, number, AnyLoss, readonly [Tensor, ...Tensor[]]])[] = [
    ["crossEntropy", 1, (a, b) => tm.crossEntropy(a, b!), [x, k]],
    [
      "crossEntropy with all options",
      1,
      (a, b, c) => tm.crossEntropy(a, b!, { weight: c!, ignoreIndex: 0, labelSmoothing: 0.1 }),
      [x, k, w],
    ],
    ["crossEntropy of probabilities", 2, (a, b) => tm.crossEntropy(a, b!), [x, y]],
    ["nll", 1, (a, b, c) => tm.nll(a, b!, { weight: c!, ignoreIndex: 0 }), [x, k, w]],
    ["binaryCrossEntropyWithLogits", 2, (a, b) => tm.binaryCrossEntropyWithLogits(a, b!), [x, y]],
    ["klDivergence", 2, (a, b) => tm.klDivergence(a, b!), [x, y]],
    ["l1", 2, (a, b) => tm.l1(a, b!), [x, y]],
    ["huber", 2, (a, b) => tm.huber(a, b!), [x, y]],
    ["smoothL1", 2, (a, b) => tm.smoothL1(a, b!), [x, y]],
    ["hinge", 2, (a, b) => tm.hinge(a, b!), [x, y]],
    ["cosineEmbedding", 2, (a, b, c) => tm.cosineEmbedding(a, b!, c!), [x, y, k]],
  ];

  test.each(cases)("%s: no second copy of the predictions", (_, copies, loss, args) => {
    const { arenaBytes } = tm.plan((...all: [Tensor, ...Tensor[]]) => tm.valueAndGrad(loss)(...all))(...args);
    expect(arenaBytes / (4 * 256 * 128)).toBeLessThan(copies + 0.1);
  });
});
