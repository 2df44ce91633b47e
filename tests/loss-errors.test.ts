/** @file What users read when losses are given something wrong: tests/loss-errors/ has a golden file for each. */
import { join } from "node:path";
import { describe } from "vitest";
import type { Tensor } from "../src/api/index.ts";
import * as tm from "../src/api/index.ts";
import { checkErrors, wrong } from "./support/errors.ts";

const m = tm.tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const labels = tm.tensor([1, 0], { dtype: "i32" });

const cases: Readonly<Record<string, () => unknown>> = {
  "cross-entropy-targets": () => tm.crossEntropy(m, tm.tensor([1, 0, 1], { dtype: "i32" })),
  "cross-entropy-reduction": () => tm.crossEntropy(m, labels, { reduction: wrong<"mean">("avg") }),
  "cross-entropy-labels-array": () => tm.crossEntropy(m, wrong<Tensor>([1, 0])),
  "cross-entropy-smoothing": () => tm.crossEntropy(m, labels, { labelSmoothing: -0.1 }),
  "cross-entropy-weight": () => tm.crossEntropy(m, labels, { weight: tm.ones([2]) }),
  "cross-entropy-ignored": () => tm.crossEntropy(m, m, { ignoreIndex: 1 }),
  "cross-entropy-ignored-number": () => tm.crossEntropy(m, labels, { ignoreIndex: 1.5 }),
  "nll-probabilities": () => tm.nll(m, m),
  "binary-shapes": () => tm.binaryCrossEntropyWithLogits(m, tm.ones([2, 1])),
  "binary-weight": () => tm.binaryCrossEntropyWithLogits(m, m, { posWeight: tm.ones([4, 2, 3]) }),
  "kl-scalars": () => tm.klDivergence(tm.tensor(1), tm.tensor(1)),
  "l1-types": () => tm.l1(m.neg(), tm.ones([2, 3], "f64")),
  "l1-target": () => tm.l1(m, wrong<Tensor>([1, 2])),
  "huber-delta": () => tm.huber(m, m, { delta: 0 }),
  "smooth-l1-beta": () => tm.smoothL1(m, m, { beta: -1 }),
  "hinge-margin": () => tm.hinge(m, m, { margin: Number.NaN }),
  "cosine-eps": () => tm.cosineSimilarity(m, m, { eps: 0 }),
  "cosine-axis": () => tm.cosineSimilarity(m, m, { axis: 2 }),
  "cosine-embedding-targets": () => tm.cosineEmbedding(m, m, tm.ones([3])),
  "triplet-scalars": () => tm.tripletMargin(tm.tensor(1), tm.tensor(1), tm.tensor(1)),
  "triplet-p": () => tm.tripletMargin(m, m, m, { p: 0.5 }),
  "ctc-rank": () => tm.ctc(m, tm.ones([2, 3], "i32")),
  "ctc-targets": () => tm.ctc(tm.ones([4, 2, 3]), tm.ones([3, 3], "i32")),
  "ctc-target-types": () => tm.ctc(tm.ones([4, 2, 3]), tm.ones([2, 3])),
  "ctc-lengths": () => tm.ctc(tm.ones([4, 2, 3]), tm.ones([2, 3], "i32"), { inputLengths: tm.ones([3], "i32") }),
  "ctc-length-types": () => tm.ctc(tm.ones([4, 2, 3]), tm.ones([2, 3], "i32"), { targetLengths: tm.ones([2]) }),
  "ctc-blank": () => tm.ctc(tm.ones([4, 2, 3]), tm.ones([2, 3], "i32"), { blank: 3 }),
  "linear-loss-transposed": () => tm.linearCrossEntropy(m, tm.ones([5, 3]), labels),
  "linear-loss-width": () => tm.linearCrossEntropy(m, tm.ones([4, 5]), labels),
  "linear-loss-targets": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), tm.tensor([1, 0, 1], { dtype: "i32" })),
  "linear-loss-target-types": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), tm.ones([2])),
  "linear-loss-types": () => tm.linearCrossEntropy(m.neg(), tm.ones([3, 5], "f64"), labels),
  "linear-loss-bias": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), labels, { bias: tm.ones([3]) }),
  "linear-loss-smoothing": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), labels, { labelSmoothing: 1.5 }),
  "linear-loss-z": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), labels, { zLoss: -1 }),
  "linear-loss-strip": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), labels, { strip: 0.5 }),
  "linear-loss-ignored": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), labels, { ignoreIndex: 0.5 }),
  "linear-loss-reduction": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), labels, { reduction: wrong<"mean">("avg") }),
  "linear-loss-option": () => tm.linearCrossEntropy(m, tm.ones([3, 5]), labels, wrong<object>({ transpose: true })),
};

describe("errors of losses", () => {
  checkErrors(join(import.meta.dirname, "loss-errors"), cases);
});
