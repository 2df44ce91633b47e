/**
 * @file The mathematical functions against the truth. For f32 the truth is the double-precision function of JavaScript,
 * whose own error is invisible at 24 bits; for f64 it is computed to hundreds of bits by `tests/support/exact-math.ts`.
 * Arguments are dense over the interesting range, drawn from all bit patterns, and the hard ones by name.
 */
import { describe, expect, it } from "vitest";
import * as exact from "../../tests/support/exact-math.ts";
import { at } from "../base/invariant.ts";
import { erf as erfOfDouble } from "../base/special.ts";
import { type Expr, type LoopVar, load, walkExpr } from "./expr.ts";
import { varIndex } from "./index-math.ts";
import { interpretKernel } from "./interpret.ts";
import type { Operand } from "./loops.ts";
import * as math from "./math.ts";
import { type MathName, ULP_BOUNDS } from "./math.ts";

type FloatType = "f32" | "f64";
type Floats = Float32Array | Float64Array;

/** f over arrays, element by element, as a kernel. */
function applied(f: (...args: Expr[]) => Expr, dtype: FloatType, inputs: readonly Floats[]): Floats {
  const elements = at(inputs, 0).length;
  const i: LoopVar = { kind: "var", name: "i", extent: elements };
  const index = varIndex(i);
  const value = f(...inputs.map((_, k) => load(dtype, k, index)));
  const out = dtype === "f32" ? new Float32Array(elements) : new Float64Array(elements);
  const operand = (role: "in" | "out"): Operand => ({ dtype, elements, role });
  const nests = [{ kind: "map", loops: [i], stores: [{ operand: inputs.length, index, value }] } as const];
  interpretKernel({ operands: [...inputs.map(() => operand("in")), operand("out")], nests }, [...inputs, out]);
  return out;
}

function floats(dtype: FloatType, values: readonly number[]): Floats {
  return dtype === "f32" ? Float32Array.from(values) : Float64Array.from(values);
}

/** A small seeded generator: mulberry32. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Half of the points spread over [lo, hi], half from all bit patterns whose value is in [least, greatest]. */
function points(dtype: FloatType, n: number, dense: readonly [number, number], all: readonly [number, number]): Floats {
  const random = generator(n + dense[1]);
  const bits = new DataView(new ArrayBuffer(8));
  return floats(
    dtype,
    Array.from({ length: n }, (_, i) => {
      if (i % 2 === 0) return dense[0] + (dense[1] - dense[0]) * (random() + random() * 2 ** -32);
      for (;;) {
        bits.setUint32(0, random() * 2 ** 32);
        bits.setUint32(4, random() * 2 ** 32);
        const x = dtype === "f32" ? bits.getFloat32(0) : bits.getFloat64(0);
        if (x >= all[0] && x <= all[1]) return x;
      }
    }),
  );
}

/** Distance from the truth in units of the last place of the truth, for f32. */
function ulpsOffF32(got: number, truth: number): number {
  if (Number.isNaN(truth) || Number.isNaN(got)) return Number.isNaN(truth) === Number.isNaN(got) ? 0 : Infinity;
  if (!Number.isFinite(got) && Math.fround(truth) === got) return 0;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(truth) || 2 ** -149)), -126);
  const value = Number.isFinite(got) ? got : Math.sign(got) * 2 ** 128;
  return Math.abs(value - truth) / 2 ** (exponent - 23);
}

interface Worst {
  readonly ulps: number;
  readonly x: number;
}

function worst(x: Floats, off: (i: number) => number): Worst {
  let found: Worst = { ulps: 0, x: Number.NaN };
  for (let i = 0; i < x.length; i++) {
    const ulps = off(i);
    if (!(ulps <= found.ulps)) found = { ulps, x: at(x, i) };
  }
  return found;
}

const sigmoid = (x: number): number => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));
const geluExponent = (x: number): number => 2 * 0.7978845608028654 * (x + 0.044715 * x ** 3);

interface Sweep {
  readonly of: (x: Expr) => Expr;
  readonly truth: (x: number) => number;
  readonly exact: (x: number) => exact.Real;
  /** Densely swept, and the bounds of all bit patterns tried. */
  readonly f32: readonly (readonly [number, number])[];
  readonly f64: readonly (readonly [number, number])[];
}

const ALL = Number.MAX_VALUE;

const SWEEPS: Partial<Record<MathName, Sweep>> = {
  exp: {
    of: math.exp,
    truth: Math.exp,
    exact: exact.exp,
    f32: [
      [-110, 95],
      [-ALL, ALL],
    ],
    f64: [
      [-750, 715],
      [-800, 800],
    ],
  },
  expm1: {
    of: math.expm1,
    truth: Math.expm1,
    exact: exact.expm1,
    f32: [
      [-3, 3],
      [-ALL, ALL],
    ],
    f64: [
      [-2, 2],
      [-800, 709],
    ],
  },
  log: {
    of: math.log,
    truth: Math.log,
    exact: exact.log,
    f32: [
      [0.3, 4],
      [0, ALL],
    ],
    f64: [
      [0.3, 4],
      [2 ** -1074, ALL],
    ],
  },
  log1p: {
    of: math.log1p,
    truth: Math.log1p,
    exact: exact.log1p,
    f32: [
      [-0.99, 3],
      [-1, ALL],
    ],
    f64: [
      [-0.9, 3],
      [-0.9999, 1e300],
    ],
  },
  tanh: {
    of: math.tanh,
    truth: Math.tanh,
    exact: exact.tanh,
    f32: [
      [-3, 3],
      [-ALL, ALL],
    ],
    f64: [
      [-3, 3],
      [-300, 300],
    ],
  },
  sigmoid: {
    of: math.sigmoid,
    truth: sigmoid,
    exact: exact.sigmoid,
    f32: [
      [-6, 6],
      [-ALL, ALL],
    ],
    f64: [
      [-6, 6],
      [-740, 740],
    ],
  },
  softplus: {
    of: math.softplus,
    truth: (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
    exact: exact.softplus,
    f32: [
      [-20, 20],
      [-ALL, ALL],
    ],
    f64: [
      [-20, 20],
      [-740, 740],
    ],
  },
  erf: {
    of: math.erf,
    truth: erfOfDouble,
    exact: exact.erf,
    f32: [
      [-4.5, 4.5],
      [-ALL, ALL],
    ],
    f64: [
      [-6.5, 6.5],
      [-7, 7],
    ],
  },
  rsqrt: {
    of: math.rsqrt,
    truth: (x) => 1 / Math.sqrt(x),
    exact: exact.rsqrt,
    f32: [
      [0, 10],
      [0, ALL],
    ],
    f64: [
      [1e-9, 10],
      [1e-300, ALL],
    ],
  },
  // Where sigmoid is subnormal, its coarse steps are multiplied by x.
  silu: {
    of: math.silu,
    truth: (x) => x * sigmoid(x),
    exact: exact.silu,
    f32: [
      [-20, 20],
      [-87, ALL],
    ],
    f64: [
      [-20, 20],
      [-700, 700],
    ],
  },
  sin: {
    of: math.sin,
    truth: Math.sin,
    exact: exact.sin,
    f32: [
      [-1e4, 1e4],
      [-5e4, 5e4],
    ],
    f64: [
      [-1.5e5, 1.5e5],
      [-1.6e6, 1.6e6],
    ],
  },
  cos: {
    of: math.cos,
    truth: Math.cos,
    exact: exact.cos,
    f32: [
      [-1e4, 1e4],
      [-5e4, 5e4],
    ],
    f64: [
      [-1.5e5, 1.5e5],
      [-1.6e6, 1.6e6],
    ],
  },
  tan: {
    of: math.tan,
    truth: Math.tan,
    exact: exact.tan,
    f32: [
      [-1e4, 1e4],
      [-5e4, 5e4],
    ],
    f64: [
      [-1.5e5, 1.5e5],
      [-1.6e6, 1.6e6],
    ],
  },
};

const F32_POINTS = 120_000;
const F64_POINTS = 1_000;

function expectWithin(name: MathName, dtype: FloatType, found: Worst): void {
  const bound = ULP_BOUNDS[dtype][name];
  expect(found.ulps, `${name} of ${found.x} is ${found.ulps.toFixed(3)} ulps off`).toBeLessThanOrEqual(bound);
  // A bound far above what is seen says nothing.
  expect(found.ulps, `the bound ${bound} of ${name} is loose`).toBeGreaterThan(bound / 3);
}

describe("accuracy", () => {
  for (const [name, sweep] of Object.entries(SWEEPS) as [MathName, Sweep][]) {
    it(`of f32 ${name} is within its bound`, () => {
      const x = points("f32", F32_POINTS, at(sweep.f32, 0), at(sweep.f32, 1));
      const y = applied(sweep.of, "f32", [x]);
      expectWithin(
        name,
        "f32",
        worst(x, (i) => ulpsOffF32(at(y, i), sweep.truth(at(x, i)))),
      );
    });

    it(`of f64 ${name} is within its bound`, () => {
      const x = points("f64", F64_POINTS, at(sweep.f64, 0), at(sweep.f64, 1));
      const y = applied(sweep.of, "f64", [x]);
      expectWithin(
        name,
        "f64",
        worst(x, (i) => exact.ulpsOff(at(y, i), sweep.exact(at(x, i)))),
      );
    });
  }

  it("of pow is within its bound, near 1 with large exponents too", () => {
    for (const dtype of ["f32", "f64"] as const) {
      const random = generator(17);
      const range = dtype === "f32" ? 150 : 1080;
      const n = dtype === "f32" ? F32_POINTS : F64_POINTS;
      const x = floats(
        dtype,
        Array.from({ length: n }, (_, i) =>
          i % 3 === 0
            ? 2 ** ((random() - 0.5) * 1.9 * range)
            : i % 3 === 1
              ? 1 + (random() - 0.5) * 0.01
              : random() * 10,
        ),
      );
      const y = floats(
        dtype,
        Array.from(x, (base) => ((random() - 0.5) * 2 * range) / (Math.log2(base) || 1)),
      );
      const z = applied((a, b) => math.pow(a as Expr, b as Expr), dtype, [x, y]);
      expectWithin(
        "pow",
        dtype,
        worst(x, (i) =>
          dtype === "f32"
            ? ulpsOffF32(at(z, i), at(x, i) ** at(y, i))
            : exact.ulpsOff(at(z, i), exact.pow(at(x, i), at(y, i))),
        ),
      );
    }
  });

  it("of sin, cos and tan holds at the numbers nearest to multiples of π/2", () => {
    const near = (limit: number): number[] =>
      Array.from({ length: (limit / Math.PI) * 2 }, (_, n) => ((n + 1) * Math.PI) / 2);
    const singles = Float32Array.from(near(5e4));
    const doubles = Float64Array.from(near(1.6e6).filter((_, n) => n % 1000 === 0));
    for (const name of ["sin", "cos", "tan"] as const) {
      const { of, truth } = SWEEPS[name] as Sweep;
      const y = applied(of, "f32", [singles]);
      const found = worst(singles, (i) => ulpsOffF32(at(y, i), truth(at(singles, i))));
      expect(found.ulps, `${name} ${found.x}`).toBeLessThanOrEqual(ULP_BOUNDS.f32[name]);
      const z = applied(of, "f64", [doubles]);
      const foundDouble = worst(doubles, (i) => exact.ulpsOff(at(z, i), exact[name](at(doubles, i))));
      expect(foundDouble.ulps, `${name} ${foundDouble.x}`).toBeLessThanOrEqual(ULP_BOUNDS.f64[name]);
    }
  });

  it("of f32 sin and cos up to 1e5 is absolute: 2^-23", () => {
    const x = Float32Array.from({ length: 63_600 }, (_, n) => ((n + 1) * Math.PI) / 2 + (n % 2) * 0.7);
    for (const name of ["sin", "cos"] as const) {
      const y = applied(math[name], "f32", [x]);
      const found = worst(x, (i) => Math.abs(at(y, i) - Math[name](at(x, i))));
      expect(found.ulps, `${name} ${found.x}`).toBeLessThan(2 ** -23);
    }
  });

  it("of gelu is within its bound times one more than the exponent of its tail, which carries its rounding", () => {
    const scale = (x: number): number => 1 + Math.max(0, -geluExponent(x));
    const x = points("f32", F32_POINTS, [-4, 4], [-8, ALL]);
    const y = applied(math.gelu, "f32", [x]);
    const truth = (v: number): number => v * sigmoid(geluExponent(v));
    expectWithin(
      "gelu",
      "f32",
      worst(x, (i) => ulpsOffF32(at(y, i), truth(at(x, i))) / scale(at(x, i))),
    );
    const doubles = points("f64", F64_POINTS, [-4, 4], [-20, 1e30]);
    const z = applied(math.gelu, "f64", [doubles]);
    const off = (i: number): number => exact.ulpsOff(at(z, i), exact.gelu(at(doubles, i))) / scale(at(doubles, i));
    expectWithin("gelu", "f64", worst(doubles, off));
  });
});

const INF = Number.POSITIVE_INFINITY;
const NAN = Number.NaN;

describe("special values", () => {
  // argument → result, in both types
  const cases: Partial<Record<MathName, readonly (readonly [number, number])[]>> = {
    exp: [
      [0, 1],
      [-0, 1],
      [INF, INF],
      [-INF, 0],
      [NAN, NAN],
      [800, INF],
      [-800, 0],
    ],
    expm1: [
      [0, 0],
      [-0, -0],
      [INF, INF],
      [-INF, -1],
      [NAN, NAN],
      [-100, -1],
      [800, INF],
    ],
    log: [
      [1, 0],
      [0, -INF],
      [-0, -INF],
      [-1, NAN],
      [-INF, NAN],
      [INF, INF],
      [NAN, NAN],
    ],
    log1p: [
      [0, 0],
      [-0, -0],
      [-1, -INF],
      [-2, NAN],
      [-INF, NAN],
      [INF, INF],
      [NAN, NAN],
    ],
    tanh: [
      [0, 0],
      [-0, -0],
      [INF, 1],
      [-INF, -1],
      [NAN, NAN],
      [30, 1],
      [-30, -1],
    ],
    sigmoid: [
      [0, 0.5],
      [INF, 1],
      [-INF, 0],
      [NAN, NAN],
      [1000, 1],
      [-1000, 0],
    ],
    softplus: [
      [INF, INF],
      [-INF, 0],
      [NAN, NAN],
      [1000, 1000],
      [-1000, 0],
    ],
    erf: [
      [0, 0],
      [-0, -0],
      [INF, 1],
      [-INF, -1],
      [NAN, NAN],
      [7, 1],
      [-7, -1],
    ],
    rsqrt: [
      [0, INF],
      [-0, -INF],
      [INF, 0],
      [-1, NAN],
      [NAN, NAN],
      [4, 0.5],
    ],
    silu: [
      [0, 0],
      [-0, -0],
      [INF, INF],
      [-INF, -0],
      [NAN, NAN],
      [1000, 1000],
    ],
    gelu: [
      [0, 0],
      [-0, -0],
      [INF, INF],
      [-INF, -0],
      [NAN, NAN],
      [1e30, 1e30],
      [-1e30, -0],
    ],
    sin: [
      [0, 0],
      [-0, -0],
      [INF, NAN],
      [-INF, NAN],
      [NAN, NAN],
    ],
    cos: [
      [0, 1],
      [-0, 1],
      [INF, NAN],
      [-INF, NAN],
      [NAN, NAN],
    ],
    tan: [
      [0, 0],
      [-0, -0],
      [INF, NAN],
      [-INF, NAN],
      [NAN, NAN],
    ],
  };

  for (const [name, pairs] of Object.entries(cases) as [
    Exclude<MathName, "pow">,
    readonly (readonly [number, number])[],
  ][]) {
    it(`of ${name} are right`, () => {
      for (const dtype of ["f32", "f64"] as const) {
        const got = applied(math[name], dtype, [
          floats(
            dtype,
            pairs.map(([x]) => x),
          ),
        ]);
        expect([...got]).toEqual([
          ...floats(
            dtype,
            pairs.map(([, y]) => y),
          ),
        ]);
      }
    });
  }

  it("of pow are those of IEEE 754", () => {
    const values = [0, 0.5, 1, 2, 2.5, 3, 4, 1e-30, 1e30, 2 ** 53, INF].flatMap((v) => [v, -v]).concat(NAN);
    const pairs = values.flatMap((x) => values.map((y) => [x, y] as const));
    for (const dtype of ["f32", "f64"] as const) {
      const [xs, ys] = [
        floats(
          dtype,
          pairs.map(([x]) => x),
        ),
        floats(
          dtype,
          pairs.map(([, y]) => y),
        ),
      ];
      const got = applied((a, b) => math.pow(a as Expr, b as Expr), dtype, [xs, ys]);
      pairs.forEach((_, i) => {
        const [x, y] = [at(xs, i), at(ys, i)];
        // JavaScript has NaN where IEEE 754 has 1.
        const wanted = x === 1 || (x === -1 && Math.abs(y) === INF) ? 1 : x ** y;
        const rounded = dtype === "f32" ? Math.fround(wanted) : wanted;
        const ordinary = Number.isFinite(rounded) && rounded !== 0;
        if (ordinary)
          expect(Math.abs(at(got, i) / rounded - 1), `${x} ** ${y}`).toBeLessThan(2 ** (dtype === "f32" ? -22 : -51));
        else expect(at(got, i), `${x} ** ${y}`).toBe(rounded);
      });
    }
  });

  it("of sin and cos far out stay between -1 and 1", () => {
    for (const dtype of ["f32", "f64"] as const) {
      const x = points(dtype, 2000, [-1e7, 1e7], [-ALL, ALL]);
      for (const f of [math.sin, math.cos]) {
        const y = applied(f, dtype, [x]);
        expect(y.every((v) => v >= -1 && v <= 1)).toBe(true);
      }
    }
  });

  it("of odd functions are mirrored bit by bit", () => {
    for (const dtype of ["f32", "f64"] as const) {
      const x = points(dtype, 2000, [-8, 8], [-100, 100]);
      for (const f of [math.tanh, math.erf, math.sin, math.tan]) {
        const mirrored = applied(f, dtype, [x.map((v) => -v)]);
        expect([...mirrored.map((v) => -v)]).toEqual([...applied(f, dtype, [x])]);
      }
    }
  });
});

describe("functions of f64", () => {
  it("ask of i64 only what every target has", () => {
    const allowed = new Set([
      "add",
      "sub",
      "and",
      "or",
      "xor",
      "shl",
      "shr_u",
      "shr_s",
      "bitcast",
      "wrap",
      "extend",
      "pick",
    ]);
    const x = load("f64", 0, varIndex({ kind: "var", name: "i", extent: 2 }));
    const roots = [math.pow(x, x), ...Object.values(SWEEPS).map(({ of }) => of(x)), math.gelu(x)];
    for (const root of roots) {
      walkExpr(root, (e) => {
        if (e.kind !== "call" || ![e, ...e.args].some((a) => a.dtype === "i64")) return;
        expect(allowed).toContain(e.fn);
        if (e.fn.startsWith("sh")) expect(e.args[1]?.kind).toBe("const");
      });
    }
  });
});
