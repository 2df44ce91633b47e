/** @file Operations of neural networks: shapes and values against plain loops, and their gradients. */
import { describe, expect, test } from "vitest";
import { close as closeTo, data } from "../../tests/support/api-values.ts";
import * as tm from "./index.ts";
import { type Tensor, tensor } from "./index.ts";

/** To the digits that these values are known to. */
const close = (actual: Tensor, expected: ArrayLike<number>, digits = 9): void => closeTo(actual, expected, digits);

/** Gradient of Σ c·f(x) against a difference along one direction. */
function checkGradient(f: (x: Tensor) => Tensor, x: Tensor): void {
  const weights = data(f(x).shape, 9);
  const loss = (v: Tensor): Tensor => f(v).mul(weights).sum();
  const along = data(x.shape, 5);
  const h = 1e-5;
  const numeric =
    loss(x.add(along.mul(h)))
      .sub(loss(x.sub(along.mul(h))))
      .item() /
    (2 * h);
  expect(tm.grad(loss)(x).mul(along).sum().item()).toBeCloseTo(numeric, 6);
}

/** 1-D convolution by loops: y[n,o,p] = Σ x[n,c,p·stride + r·dilation - lo] w[o,c,r]. */
function conv1dLoops(x: Tensor, w: Tensor, length: number, stride: number, dilation: number, lo: number): number[] {
  const [n, c, size] = x.shape as [number, number, number];
  const [o, , k] = w.shape as [number, number, number];
  const [xs, ws] = [x.data(), w.data()];
  const out: number[] = [];
  for (let b = 0; b < n; b++)
    for (let q = 0; q < o; q++)
      for (let p = 0; p < length; p++) {
        let sum = 0;
        for (let i = 0; i < c; i++)
          for (let r = 0; r < k; r++) {
            const at = p * stride + r * dilation - lo;
            if (at >= 0 && at < size) sum += xs[(b * c + i) * size + at]! * ws[(q * c + i) * k + r]!;
          }
        out.push(sum);
      }
  return out;
}

describe("convolution", () => {
  const x = data([2, 3, 9], 1);
  const w = data([4, 3, 3], 2);

  test("equals loops for every kind of padding", () => {
    close(tm.conv1d(x, w), conv1dLoops(x, w, 7, 1, 1, 0));
    close(tm.conv1d(x, w, { stride: 2, padding: 1 }), conv1dLoops(x, w, 5, 2, 1, 1));
    close(tm.conv1d(x, w, { dilation: 2, padding: "same" }), conv1dLoops(x, w, 9, 1, 2, 2));
    close(tm.conv1d(x, w, { padding: [[2, 0]] }), conv1dLoops(x, w, 9, 1, 1, 2));
    expect(tm.conv2d(data([1, 4, 8, 8]), data([6, 2, 3, 3]), { groups: 2, padding: "same", stride: 2 }).shape).toEqual([
      1, 6, 4, 4,
    ]);
  });

  test("transposed is the transpose of the plain one", () => {
    const y = data([2, 4, 5], 3);
    const options = { stride: 2, padding: 1 };
    // ⟨conv(x, w), y⟩ = ⟨x, convᵀ(y, w)⟩
    const left = tm.conv1d(x, w, options).mul(y).sum().item();
    const right = tm.convTranspose1d(y, w, options).mul(x).sum().item();
    expect(right).toBeCloseTo(left, 9);
    expect(tm.convTranspose2d(data([1, 4, 5, 5]), data([4, 2, 3, 3]), { stride: 2, padding: "same" }).shape).toEqual([
      1, 2, 10, 10,
    ]);
    expect(tm.convTranspose1d(y, w, { stride: 2, padding: 1, outputPadding: 1 }).shape).toEqual([2, 3, 10]);
  });

  test("has gradients", () => {
    checkGradient((v) => tm.conv1d(v, w, { stride: 2, padding: 1 }), x);
    checkGradient((v) => tm.conv1d(x, v, { stride: 2, padding: "same" }), w);
    checkGradient((v) => tm.convTranspose1d(v, w, { stride: 2 }), data([2, 4, 5], 3));
  });
});

describe("pooling", () => {
  test("reduces windows and does not count padding", () => {
    const x = tensor([[[1, 5, 2, 4, 3]]]);
    expect(tm.maxPool1d(x, 2).toArray()).toEqual([[[5, 4]]]);
    expect(tm.maxPool1d(x, 3, { stride: 1, padding: "same" }).toArray()).toEqual([[[5, 5, 5, 4, 4]]]);
    expect(tm.maxPool1d(x.neg(), 2, { padding: 1 }).toArray()).toEqual([[[-1, -2, -3]]]);
    expect(tm.avgPool1d(x, 2).toArray()).toEqual([[[3, 3]]]);
    expect(tm.avgPool1d(x, 3, { stride: 2, padding: 1 }).toArray()).toEqual([[[3, 11 / 3, 3.5].map(Math.fround)]]);
    expect(tm.avgPool2d(tm.ones([1, 2, 4, 4]), 2).shape).toEqual([1, 2, 2, 2]);
    checkGradient((v) => tm.maxPool2d(v, 2), data([1, 2, 4, 4]));
    checkGradient((v) => tm.avgPool2d(v, 3, { stride: 1, padding: 1 }), data([1, 2, 4, 4]));
  });
});

describe("normalisation", () => {
  const x = data([3, 4, 5], 1);

  test("softmax sums to one and its logarithm is logSoftmax", () => {
    close(x.softmax().sum(-1), new Float64Array(12).fill(1));
    close(x.softmax(0).log(), x.logSoftmax(0).data());
    expect(tensor([1000, 1000]).softmax().toArray()).toEqual([0.5, 0.5]);
    checkGradient((v) => v.softmax(1), x);
    checkGradient((v) => v.logSoftmax(), x);
  });

  test("makes zero mean and unit variance over its axes", () => {
    const scale = data([5], 2);
    const y = tm.layerNorm(x, { eps: 0 });
    close(y.mean(-1), new Float64Array(12));
    close(y.var(-1), new Float64Array(12).fill(1));
    close(tm.rmsNorm(x, { eps: 0 }).square().mean(-1), new Float64Array(12).fill(1));
    const batch = tm.batchNorm(x, { eps: 0 });
    close(batch.y.var([0, 2]), new Float64Array(4).fill(1));
    close(tm.batchNorm(x, { eps: 0, mean: batch.mean, variance: batch.variance }).y, batch.y.data());
    close(tm.groupNorm(x, 2, { eps: 0 }).reshape([3, 2, 10]).var(-1), new Float64Array(6).fill(1));
    checkGradient((v) => tm.layerNorm(v, { scale, offset: scale }), x);
    checkGradient((v) => tm.rmsNorm(v, { scale }), x);
    checkGradient((v) => tm.batchNorm(v, { scale: data([4]), offset: data([4]) }).y, x);
    checkGradient((v) => tm.groupNorm(v, 2, { scale: data([4]) }), x);
  });
});

describe("losses and attention", () => {
  test("crossEntropy takes class numbers and probabilities alike", () => {
    const logits = data([4, 3]);
    const classes = tensor([0, 2, 1, 1], { dtype: "i32" });
    const byClass = tm.crossEntropy(logits, classes);
    expect(tm.crossEntropy(logits, tm.oneHot(classes, 3, "f64")).item()).toBeCloseTo(byClass.item(), 12);
    const rows = logits.toArray() as number[][];
    const losses = rows.map((r, i) => Math.log(r.reduce((s, v) => s + Math.exp(v), 0)) - r[[0, 2, 1, 1][i]!]!);
    close(tm.crossEntropy(logits, classes, { reduction: "none" }), losses);
    checkGradient((v) => tm.crossEntropy(v, classes, { reduction: "sum" }), logits);
    expect(tm.mse(tensor([1, 2]), tensor([3, 2])).item()).toBe(2);
  });

  test("attention sees what it may see", () => {
    const [q, k, v] = [data([2, 3, 4], 1), data([2, 3, 4], 2), data([2, 3, 5], 3)];
    const weights = q.matmul(k, { tb: true }).mul(0.5).softmax();
    close(tm.attention(q, k, v), weights.matmul(v).data());
    const few = tm.attention(tm.ones([3, 1]), tm.ones([2, 1]), tm.tensor([[1], [2]]), { causal: true });
    close(few, [1, 1.5, 1.5]);
    const causal = tm.attention(q, k, v, { causal: true });
    close(causal.slice([null, 0]), v.slice([null, 0]).data());
    close(tm.attention(q, k, v, { mask: tm.ones([3, 3]).tril().cast("bool") }), causal.data());
    checkGradient((u) => tm.attention(u, k, v, { causal: true }), q);
    checkGradient((u) => tm.attention(q, u, u, { causal: true, scale: 0.3 }), k);
  });
});

describe("random tensors", () => {
  test("are functions of their key", () => {
    const key = tm.random.key(7);
    expect(tm.random.normal(key, [4]).toArray()).toEqual(tm.random.normal(tm.random.key(7), [4]).toArray());
    const [a, b] = tm.random.split(key);
    expect(tm.random.uniform(a, [4]).toArray()).not.toEqual(tm.random.uniform(b, [4]).toArray());
    expect(tm.random.foldIn(key, 3).toArray()).toEqual(tm.random.foldIn(key, tensor(3, { dtype: "i32" })).toArray());
    expect(tm.random.foldIn(key, 3).toArray()).not.toEqual(tm.random.foldIn(key, 4).toArray());
    const order = tm.random.permutation(key, 20).toArray() as number[];
    expect(order.toSorted((x, y) => x - y)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    const u = tm.random.uniform(key, [1000], { lo: 2, hi: 4 });
    expect(u.min().item()).toBeGreaterThanOrEqual(2);
    expect(u.mean().item()).toBeCloseTo(3, 1);
  });

  test("dropout drops the same elements in the gradient", () => {
    const key = tm.random.key(3);
    const x = tm.ones([200]);
    const y = tm.dropout(x, 0.25, key);
    const kept = y.greater(0).sum().item();
    expect(kept).toBeGreaterThan(120);
    expect(kept).toBeLessThan(180);
    expect(
      tm
        .grad((v) => tm.dropout(v, 0.25, key).sum())(x)
        .toArray(),
    ).toEqual(y.toArray());
    expect(tm.dropout(x, 0, key)).toBe(x);
  });
});
