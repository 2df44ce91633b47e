/** @file Samples of activations, each against its formula. */

import type { Tensor, TensorLike } from "../../../src/api/index.ts";
import * as tm from "../../../src/api/index.ts";
import { tensorType } from "../../../src/ir/type.ts";
import { each } from "../plain.ts";
import type { Family, FunctionSample, Range } from "../sample.ts";

type Unary = readonly [name: string, fn: (x: TensorLike) => Tensor, formula: (v: number) => number, range?: Range];

const softplus = (v: number): number => Math.log1p(Math.exp(v));
const cut = (v: number, lo: number, hi: number): number => Math.min(Math.max(v, lo), hi);

const UNARY: readonly Unary[] = [
  ["leakyRelu", (x) => tm.leakyRelu(x, 0.1), (v) => (v > 0 ? v : 0.1 * v)],
  ["elu", (x) => tm.elu(x, 1.5), (v) => (v > 0 ? v : 1.5 * (Math.exp(v) - 1))],
  ["selu", tm.selu, (v) => 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * (Math.exp(v) - 1))],
  ["celu", (x) => tm.celu(x, 0.5), (v) => (v > 0 ? v : 0.5 * (Math.exp(2 * v) - 1))],
  ["hardTanh", (x) => tm.hardTanh(x, -0.5, 1), (v) => cut(v, -0.5, 1)],
  ["relu6", tm.relu6, (v) => cut(v, 0, 6), [-3, 9]],
  ["hardSigmoid", tm.hardSigmoid, (v) => cut(v + 3, 0, 6) / 6, [-6, 6]],
  ["hardSwish", tm.hardSwish, (v) => (v * cut(v + 3, 0, 6)) / 6, [-6, 6]],
  ["mish", tm.mish, (v) => v * Math.tanh(softplus(v))],
  ["softsign", tm.softsign, (v) => v / (1 + Math.abs(v))],
  ["logSigmoid", tm.logSigmoid, (v) => -softplus(-v)],
  ["hardShrink", tm.hardShrink, (v) => (Math.abs(v) > 0.5 ? v : 0)],
  ["softShrink", tm.softShrink, (v) => Math.sign(v) * Math.max(Math.abs(v) - 0.5, 0)],
  ["tanhShrink", tm.tanhShrink, (v) => v - Math.tanh(v)],
  ["softplus", (x) => tm.softplus(x, { beta: 2, threshold: 1 }), (v) => (2 * v > 1 ? v : softplus(2 * v) / 2)],
];

export const activations: Family = (t) => [
  ...UNARY.map(([name, fn, formula, range]): FunctionSample => {
    const sample = { name, inputs: [tensorType(t, [3, 5])], reference: each(formula) };
    return { ...sample, call: (x) => fn(x!), ...(range && { range }) };
  }),
  {
    name: "prelu",
    inputs: [tensorType(t, [2, 3]), tensorType(t, [3])],
    call: (x, s) => tm.prelu(x!, s!),
    reference: each((v, s) => (v > 0 ? v : s * v)),
  },
  {
    name: "prelu",
    inputs: [tensorType(t, [2, 3, 2]), tensorType(t, [3])],
    call: (x, s) => tm.prelu(x!, s!),
    reference: (x, s) => ({
      shape: x!.shape,
      data: Array.from(x!.data, (v, i) => (v > 0 ? v : s!.data[Math.floor(i / 2) % 3]! * v)),
    }),
  },
  {
    name: "glu",
    inputs: [tensorType(t, [4, 3])],
    call: (x) => tm.glu(x!, 0),
    reference: (x) => ({
      shape: [2, 3],
      data: Array.from(x!.data)
        .slice(0, 6)
        .map((v, i) => v / (1 + Math.exp(-x!.data[i + 6]!))),
    }),
  },
];
