/**
 * @file Losses against PyTorch (tests/fixtures/torch/loss-functions.py): values with every reduction and gradients, in f64 and in
 * f32, whose figures are those of f64.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as tm from "../src/api/index.ts";
import { type Reduction, type Tensor, tensor } from "../src/api/index.ts";
import type { Float } from "./functions/sample.ts";

type Tensors = Readonly<Record<string, Tensor>>;
type Loss = (inputs: Tensors, reduction: Reduction) => Tensor;
/** Elements that are no numbers of JSON are texts. */
type Stored = { readonly shape: readonly number[]; readonly data: readonly (number | string)[] };
type StoredTensors = Readonly<Record<string, Stored>>;

interface Case {
  readonly inputs: StoredTensors;
  readonly values: Readonly<Record<Reduction, Stored>>;
  readonly grads: Readonly<Record<Reduction, StoredTensors>>;
}

const url = new URL("./fixtures/torch/loss-functions.json", import.meta.url);
const cases = JSON.parse(readFileSync(url, "utf8")) as Readonly<Record<string, Case>>;

const linear =
  (options: tm.LinearCrossEntropyOptions): Loss =>
  ({ h, w, targets, bias }, reduction) =>
    tm.linearCrossEntropy(h!, w!, targets!, {
      ...options,
      ...(bias ? { bias } : {}),
      reduction,
      transposed: true,
      strip: 2,
    });

type Options = Readonly<Record<string, unknown>>;

/** Losses of x and targets with a weight, as options. */
const classes =
  (loss: typeof tm.crossEntropy, options: tm.CrossEntropyOptions = {}): Loss =>
  ({ x, targets, probabilities, weight }, reduction) =>
    loss(x!, (targets ?? probabilities)!, { ...options, ...(weight ? { weight } : {}), reduction });

/** Losses of x and y. */
const pair =
  (loss: (x: Tensor, y: Tensor, options: never) => Tensor, options: Options = {}): Loss =>
  ({ x, y }, reduction) =>
    loss(x!, y!, { ...options, reduction } as never);

const cosine =
  (options: tm.CosineOptions): Loss =>
  ({ x, y }, reduction) => {
    const cosines = tm.cosineSimilarity(x!, y!, options);
    return reduction === "none" ? cosines : cosines[reduction]();
  };

const triplet =
  (options: tm.TripletMarginOptions = {}): Loss =>
  ({ x, y, z }, reduction) =>
    tm.tripletMargin(x!, y!, z!, { ...options, reduction });

const ctc =
  (options: tm.CtcOptions = {}): Loss =>
  ({ x, targets, inputLengths, targetLengths }, reduction) =>
    tm.ctc(tm.logSoftmax(x!), targets!, {
      ...options,
      inputLengths: inputLengths!,
      targetLengths: targetLengths!,
      reduction,
    });

const LOSSES: Readonly<Record<string, Loss>> = {
  linear: linear({}),
  "linear, bias": linear({}),
  "linear, ignored": linear({ ignoreIndex: -100 }),
  "linear, ignored class": linear({ ignoreIndex: 3 }),
  "linear, smoothed": linear({ labelSmoothing: 0.1 }),
  "linear, all": linear({ labelSmoothing: 0.25, ignoreIndex: -1, zLoss: 0.05 }),
  "linear, nothing counts": linear({ ignoreIndex: -1 }),
  "cross entropy": classes(tm.crossEntropy),
  "cross entropy, weighted": classes(tm.crossEntropy),
  "cross entropy, ignored": classes(tm.crossEntropy, { ignoreIndex: -100 }),
  "cross entropy, smoothed": classes(tm.crossEntropy, { labelSmoothing: 0.1 }),
  "cross entropy, all": classes(tm.crossEntropy, { ignoreIndex: 3, labelSmoothing: 0.2 }),
  "cross entropy, images": classes(tm.crossEntropy, { ignoreIndex: 0 }),
  "cross entropy, nothing counts": classes(tm.crossEntropy, { ignoreIndex: 7 }),
  "cross entropy, probabilities": classes(tm.crossEntropy),
  "cross entropy, probabilities, all": classes(tm.crossEntropy, { labelSmoothing: 0.2 }),
  nll: classes(tm.nll),
  "nll, all": classes(tm.nll, { ignoreIndex: 3 }),
  binary: pair(tm.binaryCrossEntropyWithLogits),
  "binary, far": pair(tm.binaryCrossEntropyWithLogits),
  "binary, weighted": ({ x, y, posWeight }, reduction) =>
    tm.binaryCrossEntropyWithLogits(x!, y!, { posWeight: posWeight!, reduction }),
  l1: pair(tm.l1),
  "l1, equal": pair(tm.l1),
  huber: pair(tm.huber, { delta: 0.75 }),
  "smooth l1": pair(tm.smoothL1, { beta: 0.5 }),
  "smooth l1, no corner": pair(tm.smoothL1, { beta: 0 }),
  mse: pair(tm.mse),
  kl: pair(tm.klDivergence),
  "kl, zeros": pair(tm.klDivergence),
  "kl, logarithms": pair(tm.klDivergence, { logTarget: true }),
  hinge: pair(tm.hinge, { margin: 0.75 }),
  cosine: cosine({}),
  "cosine, first axis": cosine({ axis: 0, eps: 0.1 }),
  "cosine embedding": ({ x, y, targets }, reduction) =>
    tm.cosineEmbedding(x!, y!, targets!, { margin: 0.1, reduction }),
  triplet: triplet(),
  "triplet, all": triplet({ margin: 0.5, p: 3, swap: true, eps: 1e-3 }),
  "triplet, absolute": triplet({ margin: 2, p: 1 }),
  ctc: ctc(),
  "ctc, last is blank": ctc({ blank: 3 }),
  "ctc, impossible": ctc({ zeroInfinity: true }),
};

/** Relative to the largest element, or absolute below one. */
const TOLERANCE: Readonly<Record<Float, number>> = { f64: 1e-10, f32: 2e-6 };

const INTEGERS = new Set(["targets", "inputLengths", "targetLengths"]);

const numbers = ({ data }: Stored): number[] => data.map((v) => (typeof v === "number" ? v : numberOf(v)));
const numberOf = (text: string): number => Number(text.replace("inf", "Infinity"));

function load(inputs: StoredTensors, dtype: Float): Tensors {
  const loaded = Object.entries(inputs).map(([name, stored]) => {
    const type = { shape: stored.shape, dtype: INTEGERS.has(name) ? "i32" : dtype } as const;
    return [name, tensor(numbers(stored), type)] as const;
  });
  return Object.fromEntries(loaded);
}

function compare(found: Tensor, stored: Stored, dtype: Float, label: string): void {
  expect(found.shape, label).toEqual(stored.shape);
  const expected = numbers(stored);
  const largest = expected.reduce((most, v) => Math.max(most, Number.isFinite(v) ? Math.abs(v) : 0), 1);
  Array.from(found.data()).forEach((v, i) => {
    const wanted = expected[i]!;
    const isNear = Number.isFinite(wanted) ? Math.abs(v - wanted) < TOLERANCE[dtype] * largest : Object.is(v, wanted);
    expect(isNear, `${label}[${i}]: ${v}, not ${wanted}`).toBe(true);
  });
}

const REDUCTIONS = ["mean", "sum", "none"] as const;

/** Losses and gradients of all reductions as one program. */
function check(name: string, loss: Loss, dtype: Float): void {
  const { inputs, values, grads } = cases[name]!;
  const all = load(inputs, dtype);
  const floats = Object.keys(grads.mean);
  const run = tm.compile((given: Tensors) =>
    REDUCTIONS.map((reduction) => {
      const total = (own: Tensors): Tensor => {
        const made = loss({ ...given, ...own }, reduction);
        const weights = tm.arange(made.elements, { dtype }).cos().reshape(made.shape);
        return made.mul(weights).sum();
      };
      const gradients = tm.grad(total)(Object.fromEntries(floats.map((key) => [key, given[key]!])));
      return [loss(given, reduction), gradients] as const;
    }),
  );
  run(all).forEach(([value, gradients], i) => {
    const reduction = REDUCTIONS[i]!;
    const label = `${name}, ${dtype}, ${reduction}`;
    compare(value, values[reduction], dtype, label);
    for (const key of floats) compare(gradients[key]!, grads[reduction][key]!, dtype, `${label}, d ${key}`);
  });
  if (dtype === "f64") compare(loss(all, "mean"), values.mean, dtype, `${name}, at once`);
}

describe("losses agree with PyTorch", () => {
  it("all of them", () => {
    expect(Object.keys(LOSSES)).toEqual(Object.keys(cases));
  });
  it.each(Object.entries(LOSSES))("%s", (name, loss) => {
    check(name, loss, "f64");
    // Programs with loops take long to compile: one of them is enough.
    if (!/^(linear|ctc), /.test(name)) check(name, loss, "f32");
  });
});
