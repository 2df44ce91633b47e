/** @file Samples of inverse, hyperbolic and special functions, of remainders and of the bits of integers, against formulas. */

import type { Tensor, TensorLike } from "../../../src/api/index.ts";
import * as tm from "../../../src/api/index.ts";
import { tensorType } from "../../../src/ir/type.ts";
import { each, erfOf } from "../plain.ts";
import { bool, type Family, type FunctionSample, i32, type Range } from "../sample.ts";

type Unary = readonly [name: string, fn: (x: TensorLike) => Tensor, formula: (v: number) => number, range?: Range];

/** The number in [lo, hi] at which an increasing function has a value. */
function solved(f: (y: number) => number, value: number, [lo, hi]: Range): number {
  let [a, b] = [lo, hi];
  for (let i = 0; i < 80; i++) {
    const middle = (a + b) / 2;
    if (f(middle) < value) a = middle;
    else b = middle;
  }
  return (a + b) / 2;
}

/** log Γ by Lanczos' series (g = 7, nine terms). */
const LANCZOS = [
  676.5203681218851, -1259.1392167224028, 771.3234287776531, -176.6150291621406, 12.507343278686905,
  -0.13857109526572012, 9.984369578019572e-6, 1.5056327351493116e-7,
];
function logGamma(x: number): number {
  const sum = LANCZOS.reduce((total, c, i) => total + c / (x + i), 0.9999999999998099);
  return Math.log(Math.sqrt(2 * Math.PI) * sum) + (x - 0.5) * Math.log(x + 6.5) - (x + 6.5);
}

/** ψ₀ as a sum: Σ 1/(k+1) - 1/(k+x), its rest by an integral, less Euler's constant. */
function psi(x: number): number {
  const terms = 20000;
  let sum = -0.5772156649015329;
  for (let k = 0; k < terms; k++) sum += 1 / (k + 1) - 1 / (k + x);
  return sum + Math.log((terms + x - 0.5) / (terms + 0.5));
}

/** ψ₁ likewise: Σ 1/(k+x)². */
function trigamma(x: number): number {
  const terms = 20000;
  let sum = 0;
  for (let k = 0; k < terms; k++) sum += 1 / (k + x) ** 2;
  return sum + 1 / (terms + x - 0.5);
}

const UNARY: readonly Unary[] = [
  ["exp2", tm.exp2, (v) => 2 ** v],
  ["log2", tm.log2, Math.log2, [0.25, 4]],
  ["log10", tm.log10, Math.log10, [0.25, 4]],
  ["cbrt", tm.cbrt, Math.cbrt, [0.25, 4]],
  ["asin", tm.asin, Math.asin, [-0.9, 0.9]],
  ["acos", tm.acos, Math.acos, [-0.9, 0.9]],
  ["atan", tm.atan, Math.atan],
  ["sinh", tm.sinh, Math.sinh],
  ["cosh", tm.cosh, Math.cosh],
  ["asinh", tm.asinh, Math.asinh],
  ["acosh", tm.acosh, Math.acosh, [1.25, 4]],
  ["atanh", tm.atanh, Math.atanh, [-0.9, 0.9]],
  ["erfc", tm.erfc, (v) => 1 - erfOf(v)],
  ["erfinv", tm.erfinv, (v) => solved(erfOf, v, [-4, 4]), [-0.9, 0.9]],
  ["lgamma", tm.lgamma, logGamma, [0.5, 4]],
  ["digamma", tm.digamma, psi, [0.5, 4]],
  ["polygamma", (x) => tm.polygamma(x, 1), trigamma, [0.5, 4]],
  ["trunc", tm.trunc, Math.trunc],
];

type Binary = readonly [string, (a: TensorLike, b: TensorLike) => Tensor, (a: number, b: number) => number];

const floorMod = (a: number, b: number): number => a - b * Math.floor(a / b);

const QUOTIENTS: readonly Binary[] = [
  ["floorDiv", tm.floorDiv, (a, b) => Math.floor(a / b)],
  ["remainder", tm.remainder, floorMod],
  ["fmod", tm.fmod, (a, b) => a % b],
];

const BITS: readonly Binary[] = [
  ["bitwiseAnd", tm.bitwiseAnd, (a, b) => a & b],
  ["bitwiseOr", tm.bitwiseOr, (a, b) => a | b],
  ["bitwiseXor", tm.bitwiseXor, (a, b) => a ^ b],
];

const shifted = (a: number, count: number): number => (count >= 0 && count < 32 ? a << count : 0);
const lowered = (a: number, count: number): number => Math.floor(a / 2 ** (count >= 0 && count < 32 ? count : 40));

const SHIFTS: readonly Binary[] = [
  ["leftShift", tm.leftShift, shifted],
  ["rightShift", tm.rightShift, lowered],
];

const integers: readonly FunctionSample[] = [
  ...QUOTIENTS.flatMap(([name, fn, formula]): readonly FunctionSample[] => [
    { name, inputs: [i32(9)], range: [-9, 9], call: (a) => fn(a!, -4), reference: each((a) => formula(a, -4)) },
    {
      name,
      inputs: [i32(3, 5), i32(5)],
      range: [
        [-9, 9],
        [0, 3],
      ],
      call: (a, b) => fn(a!, b!),
      reference: each((a, b) => (b === 0 ? 0 : formula(a, b))),
    },
  ]),
  ...BITS.flatMap(([name, fn, formula]): readonly FunctionSample[] => [
    { name, inputs: [i32(3, 5), i32(5)], range: [-99, 99], call: (a, b) => fn(a!, b!), reference: each(formula) },
    { name, inputs: [i32(9)], range: [-99, 99], call: (a) => fn(a!, 12), reference: each((a) => formula(a, 12)) },
    { name, inputs: [bool(9), bool(9)], call: (a, b) => fn(a!, b!), reference: each(formula) },
  ]),
  ...SHIFTS.flatMap(([name, fn, formula]): readonly FunctionSample[] => [
    {
      name,
      inputs: [i32(4, 9), i32(9)],
      range: [
        [-99999, 99999],
        [-3, 40],
      ],
      call: (a, b) => fn(a!, b!),
      reference: each(formula),
    },
    { name, inputs: [i32(9)], range: [-99, 99], call: (a) => fn(a!, 5), reference: each((a) => formula(a, 5)) },
  ]),
  { name: "bitwiseNot", inputs: [i32(9)], range: [-9, 9], call: (x) => tm.bitwiseNot(x!), reference: each((v) => ~v) },
  { name: "bitwiseNot", inputs: [bool(9)], call: (x) => tm.bitwiseNot(x!), reference: each((v) => 1 - v) },
];

export const special: Family = (t) => [
  ...UNARY.map(([name, fn, formula, range]): FunctionSample => {
    const sample = { name, inputs: [tensorType(t, [3, 5])], reference: each(formula) };
    return { ...sample, call: (x) => fn(x!), ...(range && { range }) };
  }),
  {
    name: "atan2",
    inputs: [tensorType(t, [5, 1]), tensorType(t, [6])],
    call: (y, x) => tm.atan2(y!, x!),
    reference: each(Math.atan2),
  },
  ...QUOTIENTS.map(([name, fn, formula]): FunctionSample => {
    const range: readonly Range[] = [
      [-9, 9],
      [0.6, 3],
    ];
    const inputs = [tensorType(t, [5, 1]), tensorType(t, [3])];
    return { name, inputs, range, call: (a, b) => fn(a!, b!), reference: each(formula) };
  }),
  {
    name: "isfinite",
    inputs: [tensorType(t, [5])],
    call: (x) => tm.isfinite(tm.div(x!, tm.relu(x!))),
    reference: each((v) => Number(v > 0)),
  },
  {
    name: "isinf",
    inputs: [tensorType(t, [5])],
    call: (x) => tm.isinf(tm.div(x!, tm.relu(x!))),
    reference: each((v) => Number(v < 0)),
  },
  ...integers,
];
