/**
 * @file The mathematical functions and the scalar functions with edges (`min`, `max`, conversions, rounding) on the target
 * `native` against the interpreter, bit for bit, over arguments that fill their domains and over every kind of special
 * number. What the tests of the interpreter show about errors in ulp therefore holds for native.
 */

import { beforeAll, describe, expect, it } from "vitest";
import type { PlacedKernel } from "../src/codegen/placed.ts";
import type { DType } from "../src/kernel/dtype.ts";
import { bytesOf } from "../src/kernel/dtype.ts";
import { call, type Expr, type LoopVar, load } from "../src/kernel/expr.ts";
import { varIndex } from "../src/kernel/index-math.ts";
import { interpretKernel } from "../src/kernel/interpret.ts";
import type { Kernel } from "../src/kernel/loops.ts";
import * as math from "../src/kernel/math.ts";
import { floorDiv, fmod, remainder } from "../src/kernel/remainder.ts";
import * as scalar from "../src/kernel/scalar-ops.ts";
import { type FloatType, floats, points } from "./support/float-sweeps.ts";
import { hostMemory } from "./support/host-memory.ts";
import { type Buffer, bufferOf } from "./support/kernel-samples.ts";
import { loadSteps, plainTargets, type TestedTarget } from "./support/targets.ts";

const native = plainTargets[1] as TestedTarget;
const N = 3001;

const SPECIAL = [
  0,
  -0,
  1,
  -1,
  Number.NaN,
  Infinity,
  -Infinity,
  1e-45,
  -1e-45,
  1e-310,
  2 ** 31,
  -(2 ** 31),
  2147483647.5,
  0.5,
  1.5,
  2.5,
  -0.5,
  -2.5,
  3e38,
  -3e38,
];

const unary: Readonly<Record<string, (x: Expr) => Expr>> = {
  ...{
    exp: math.exp,
    expm1: math.expm1,
    log: math.log,
    log1p: math.log1p,
    sin: math.sin,
    cos: math.cos,
    tan: math.tan,
  },
  ...{ tanh: math.tanh, sigmoid: math.sigmoid, erf: math.erf, rsqrt: math.rsqrt, softplus: math.softplus },
  ...{ silu: math.silu, gelu: math.gelu, floor: scalar.floor, abs: scalar.abs, neg: scalar.neg, sqrt: scalar.sqrt },
  ...{ exp2: math.exp2, log2: math.log2, log10: math.log10, cbrt: math.cbrt, erfc: math.erfc, erfinv: math.erfinv },
  ...{ asin: math.asin, acos: math.acos, atan: math.atan, sinh: math.sinh, cosh: math.cosh, asinh: math.asinh },
  ...{ acosh: math.acosh, atanh: math.atanh, lgamma: math.lgamma, mish: math.mish },
  digamma: (x) => math.polygamma(x, 0),
  trigamma: (x) => math.polygamma(x, 1),
  ceil: (x) => call("ceil", [x]),
  nearest: (x) => call("nearest", [x]),
  trunc: (x) => call("trunc", [x]),
  "to an integer": (x) => scalar.convert(x, "i32"),
  "to a bool": (x) => scalar.convert(x, "bool"),
  "there and back": (x) => scalar.convert(scalar.convert(x, x.dtype === "f32" ? "f64" : "f32"), x.dtype),
  "at least 0": (x) => scalar.max(x, 0),
  "at most 0": (x) => scalar.min(x, 0),
  "at most -0": (x) => scalar.min(x, -0),
  "at least -0": (x) => scalar.max(x, -0),
  "at least 1": (x) => scalar.max(1, x),
};

const binary: Readonly<Record<string, (x: Expr, y: Expr) => Expr>> = {
  ...{ min: scalar.min, max: scalar.max, less: scalar.lt, equal: scalar.eq, unequal: scalar.ne, power: math.pow },
  ...{ atan2: math.atan2, fmod, remainder, floorDiv },
};

interface Case {
  readonly name: string;
  readonly kernel: Kernel;
  readonly inputs: readonly Buffer[];
}

function caseOf(name: string, dtype: FloatType, args: number, f: (...args: Expr[]) => Expr): Case {
  const i: LoopVar = { kind: "var", name: "i", extent: N };
  const index = varIndex(i);
  const value = f(...Array.from({ length: args }, (_, k) => load(dtype, k, index)));
  const inputs = Array.from({ length: args }, (_, k) => {
    const x = points(dtype, N - SPECIAL.length ** 2, { dense: [-20, 20], all: [-Infinity, Infinity] });
    // every special number with every other
    const special = SPECIAL.flatMap((a) => SPECIAL.map((b) => (k === 0 ? a : b)));
    return floats(dtype, [...x, ...special]) as Buffer;
  });
  const operands = [
    ...inputs.map(() => ({ dtype, elements: N, role: "in" as const })),
    { dtype: value.dtype, elements: N, role: "out" as const },
  ];
  return {
    name: `${name} on ${dtype}`,
    inputs,
    kernel: { operands, nests: [{ kind: "map", loops: [i], stores: [{ operand: args, index, value }] }] },
  };
}

const cases: readonly Case[] = (["f32", "f64"] as const).flatMap((dtype) => [
  ...Object.entries(unary).map(([name, f]) => caseOf(name, dtype, 1, (x) => f(x as Expr))),
  ...Object.entries(binary).map(([name, f]) => caseOf(name, dtype, 2, (x, y) => f(x as Expr, y as Expr))),
]);

describe.skipIf(native.missing)("scalar functions on native have the bits of the interpreter", () => {
  let results: readonly Buffer[] = [];

  beforeAll(() => {
    let top = 0;
    const place = (dtype: DType): number => {
      const address = top;
      top += Math.ceil((N * bytesOf(dtype)) / 64) * 64;
      return address;
    };
    const steps = cases.map(
      ({ kernel }): PlacedKernel => ({ kernel, addresses: kernel.operands.map((o) => place(o.dtype as DType)) }),
    );
    const machine = loadSteps(native.target(), steps, top);
    const { buffer, start } = hostMemory(machine.memory);
    const view = (step: PlacedKernel, i: number): Buffer => {
      const operand = step.kernel.operands[i] as Kernel["operands"][number];
      return bufferOf(operand.dtype, N, buffer, start + (step.addresses[i] as number));
    };
    steps.forEach((step, s) => {
      cases[s]?.inputs.forEach((input, i) => {
        view(step, i).set(input as Float32Array);
      });
    });
    machine.run();
    results = steps.map((step) => view(step, step.kernel.operands.length - 1));
  });

  cases.forEach(({ name, kernel, inputs }, i) => {
    it(name, () => {
      const out = kernel.operands.at(-1) as Kernel["operands"][number];
      const want = bufferOf(out.dtype, N);
      interpretKernel(kernel, [...inputs, want]);
      expect(results[i]).toEqual(want);
    });
  });
});
