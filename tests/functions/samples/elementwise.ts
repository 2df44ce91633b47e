/** @file Samples of functions one element at a time: each against its formula, on vectors of odd length, scalars and nothing. */

import type { Tensor, TensorLike } from "../../../src/api/index.ts";
import * as tm from "../../../src/api/index.ts";
import { type Shape, tensorType } from "../../../src/ir/type.ts";
import { each, erfOf } from "../plain.ts";
import { bool, type Family, type Float, type FunctionSample, i32, type Range } from "../sample.ts";

/** Even length, odd length and several axes, one element, none. */
const SHAPES: readonly Shape[] = [[37], [3, 8], [], [0, 3]];

type Unary = readonly [name: string, fn: (x: TensorLike) => Tensor, formula: (v: number) => number, range?: Range];

const sigmoid = (v: number): number => 1 / (1 + Math.exp(-v));

const geluOf = (v: number): number => (v / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3)));

const UNARY: readonly Unary[] = [
  ["neg", tm.neg, (v) => -v],
  ["abs", tm.abs, Math.abs],
  ["sign", tm.sign, Math.sign],
  ["square", tm.square, (v) => v * v],
  ["sqrt", tm.sqrt, Math.sqrt, [0.25, 4]],
  ["rsqrt", tm.rsqrt, (v) => 1 / Math.sqrt(v), [0.25, 4]],
  ["floor", tm.floor, Math.floor],
  ["ceil", tm.ceil, Math.ceil],
  ["round", tm.round, Math.round],
  ["exp", tm.exp, Math.exp],
  ["expm1", tm.expm1, Math.expm1],
  ["log", tm.log, Math.log, [0.25, 4]],
  ["log1p", tm.log1p, Math.log1p, [-0.5, 4]],
  ["sin", tm.sin, Math.sin],
  ["cos", tm.cos, Math.cos],
  ["tan", tm.tan, Math.tan, [-1, 1]],
  ["tanh", tm.tanh, Math.tanh],
  ["sigmoid", tm.sigmoid, sigmoid],
  ["erf", tm.erf, erfOf],
  ["relu", tm.relu, (v) => Math.max(v, 0)],
  ["gelu", tm.gelu, geluOf],
  ["silu", tm.silu, (v) => v * sigmoid(v)],
  ["softplus", tm.softplus, (v) => Math.log1p(Math.exp(v))],
];

type Binary = readonly [
  name: string,
  fn: (a: TensorLike, b: TensorLike) => Tensor,
  formula: (a: number, b: number) => number,
  range?: Range,
];

const ARITHMETIC: readonly Binary[] = [
  ["add", tm.add, (a, b) => a + b],
  ["sub", tm.sub, (a, b) => a - b],
  ["mul", tm.mul, (a, b) => a * b],
  ["minimum", tm.minimum, Math.min],
  ["maximum", tm.maximum, Math.max],
];

const COMPARISONS: readonly Binary[] = [
  ["equal", tm.equal, (a, b) => Number(a === b)],
  ["notEqual", tm.notEqual, (a, b) => Number(a !== b)],
  ["less", tm.less, (a, b) => Number(a < b)],
  ["lessEqual", tm.lessEqual, (a, b) => Number(a <= b)],
  ["greater", tm.greater, (a, b) => Number(a > b)],
  ["greaterEqual", tm.greaterEqual, (a, b) => Number(a >= b)],
];

const LOGIC: readonly Binary[] = [
  ["logicalAnd", tm.logicalAnd, (a, b) => a & b],
  ["logicalOr", tm.logicalOr, (a, b) => a | b],
  ["logicalXor", tm.logicalXor, (a, b) => a ^ b],
];

/** Pairs that broadcast against each other in every way. */
const PAIRS: readonly (readonly [Shape, Shape])[] = [
  [
    [5, 7],
    [5, 7],
  ],
  [[5, 7], [7]],
  [
    [5, 1],
    [1, 6],
  ],
  [[], [3]],
  [[2, 0], [1]],
];

const floats = (t: Float, shapes: readonly Shape[]) => shapes.map((shape) => tensorType(t, shape));

function binarySamples(table: readonly Binary[], t: Float): readonly FunctionSample[] {
  return table.flatMap(([name, fn, formula, range]) =>
    PAIRS.map((pair, i): FunctionSample => {
      const sample = { name, inputs: floats(t, pair), valuesOnly: i % 2 === 0, reference: each(formula) };
      return { ...sample, call: (a, b) => fn(a!, b!), ...(range && { range }) };
    }),
  );
}

/** With integers, and with a number on either side. */
function integerSamples([name, fn, formula]: Binary): readonly FunctionSample[] {
  return [
    { name, inputs: [i32(3, 5), i32(5)], range: [-9, 9], call: (a, b) => fn(a!, b!), reference: each(formula) },
    { name, inputs: [i32(9)], range: [-9, 9], call: (a) => fn(a!, 2), reference: each((a) => formula(a, 2)) },
    { name, inputs: [i32(9)], range: [-9, 9], call: (a) => fn(-3, a!), reference: each((a) => formula(-3, a)) },
  ];
}

const powers: Family = (t) =>
  [0, 1, 2, 3, 0.5, -0.5, -1, 1.7].map((p) => ({
    name: "pow",
    inputs: floats(t, [[11]]),
    range: [0.5, 2],
    call: (x: Tensor) => tm.pow(x, p),
    reference: each((v) => v ** p),
  }));

const chosen: Family = (t) => [
  {
    name: "where",
    inputs: [bool(4, 1), ...floats(t, [[7], []])],
    call: (c, a, b) => tm.where(c!, a!, b!),
    reference: each((c, a, b) => (c ? a : b)),
  },
  {
    name: "where",
    inputs: floats(t, [[9]]),
    call: (x) => tm.where(x!.greater(0.5), x!.square(), -1),
    reference: each((v) => (v > 0.5 ? v * v : -1)),
  },
  {
    name: "clamp",
    inputs: floats(t, [[4, 5]]),
    call: (x) => tm.clamp(x!, -0.5, 1),
    reference: each((v) => Math.min(Math.max(v, -0.5), 1)),
  },
  {
    name: "isnan",
    inputs: floats(t, [[5]]),
    call: (x) => tm.isnan(tm.sqrt(x!)),
    reference: each((v) => Number(v < 0)),
  },
  {
    name: "stopGradient",
    inputs: floats(t, [[5]]),
    smooth: false,
    call: (x) => tm.stopGradient(x!),
    reference: each((v) => v),
  },
  { name: "cast", inputs: floats(t, [[5, 3]]), call: (x) => tm.cast(x!, "i32"), reference: each(Math.trunc) },
  { name: "cast", inputs: [i32(6)], range: [-9, 9], call: (x) => tm.cast(x!, t), reference: each((v) => v) },
  { name: "cast", inputs: [i32(9)], call: (x) => tm.cast(x!, "bool"), reference: each((v) => Number(v !== 0)) },
  { name: "cast", inputs: [bool(9)], call: (x) => tm.cast(x!, t), reference: each((v) => v) },
  { name: "logicalNot", inputs: [bool(9)], call: (x) => tm.logicalNot(x!), reference: each((v) => 1 - v) },
];

export const elementwise: Family = (t) => [
  ...UNARY.flatMap(([name, fn, formula, range]) =>
    SHAPES.map((shape, i): FunctionSample => {
      const sample = { name, inputs: floats(t, [shape]), valuesOnly: i !== 1, reference: each(formula) };
      return { ...sample, call: (x) => fn(x!), ...(range && { range }) };
    }),
  ),
  ...binarySamples([...ARITHMETIC, ...COMPARISONS], t),
  ...binarySamples([["div", tm.div, (a, b) => a / b, [0.5, 2]]], t),
  ...binarySamples([["pow", tm.pow, (a, b) => a ** b, [0.5, 2]]], t),
  ...[...ARITHMETIC, ...COMPARISONS].flatMap(integerSamples),
  {
    name: "div",
    inputs: [i32(9)],
    range: [-9, 9],
    call: (x) => tm.div(x!, 2),
    reference: each((v) => Math.trunc(v / 2)),
  },
  ...LOGIC.map(([name, fn, formula]): FunctionSample => {
    return { name, inputs: [bool(3, 5), bool(5)], call: (a, b) => fn(a!, b!), reference: each(formula) };
  }),
  ...powers(t),
  ...chosen(t),
];
