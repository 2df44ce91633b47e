/**
 * @file The accuracy of the mathematical functions. For f32 the truth is the double-precision function of JavaScript,
 * whose own error is invisible at 24 bits; for f64 it is computed to hundreds of bits by `tests/support/exact-math.ts`.
 */
import { describe, expect, it } from "vitest";
import * as exact from "../../tests/support/exact-math.ts";
import * as special from "../../tests/support/exact-special.ts";
import {
  applied,
  type Domain,
  type FloatType,
  floats,
  generator,
  mapped,
  points,
  ulpsOffF32,
  type Worst,
  worst,
} from "../../tests/support/float-sweeps.ts";
import { at } from "../base/invariant.ts";
import * as double from "../base/special.ts";
import { type Expr, load, walkExpr } from "./expr.ts";
import { varIndex } from "./index-math.ts";
import * as math from "./math.ts";
import { type MathName, ULP_BOUNDS } from "./math.ts";

const ALL = Number.MAX_VALUE;

/** Dense over [a, b], and all bit patterns within [c, d]. */
const over = (a: number, b: number, c: number, d: number): Domain => ({ dense: [a, b], all: [c, d] });

const sigmoid = (x: number): number => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)));
const silu = (x: number): number => x * sigmoid(x);
const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const mish = (x: number): number => x * Math.tanh(softplus(x));
const rsqrt = (x: number): number => 1 / Math.sqrt(x);
const geluExponent = (x: number): number => 2 * 0.7978845608028654 * (x + 0.044715 * x ** 3);

/** Name, function, truth for f32, truth for f64, domain for f32, domain for f64. */
type Sweep = readonly [MathName, (x: Expr) => Expr, (x: number) => number, (x: number) => exact.Real, Domain, Domain];

const TRIG = [over(-1e4, 1e4, -5e4, 5e4), over(-1.5e5, 1.5e5, -1.6e6, 1.6e6)] as const;

const TRIGS: readonly Sweep[] = [
  ["sin", math.sin, Math.sin, exact.sin, ...TRIG],
  ["cos", math.cos, Math.cos, exact.cos, ...TRIG],
  ["tan", math.tan, Math.tan, exact.tan, ...TRIG],
];

const SWEEPS: readonly Sweep[] = [
  ...TRIGS,
  ["exp", math.exp, Math.exp, exact.exp, over(-110, 95, -ALL, ALL), over(-750, 715, -800, 800)],
  ["expm1", math.expm1, Math.expm1, exact.expm1, over(-3, 3, -ALL, ALL), over(-2, 2, -800, 709)],
  ["log", math.log, Math.log, exact.log, over(0.3, 4, 0, ALL), over(0.3, 4, 2 ** -1074, ALL)],
  ["log1p", math.log1p, Math.log1p, exact.log1p, over(-0.99, 3, -1, ALL), over(-0.9, 3, -0.9999, 1e300)],
  ["tanh", math.tanh, Math.tanh, exact.tanh, over(-3, 3, -ALL, ALL), over(-3, 3, -300, 300)],
  ["sigmoid", math.sigmoid, sigmoid, exact.sigmoid, over(-6, 6, -ALL, ALL), over(-6, 6, -740, 740)],
  ["softplus", math.softplus, softplus, exact.softplus, over(-20, 20, -ALL, ALL), over(-20, 20, -740, 740)],
  ["erf", math.erf, double.erf, exact.erf, over(-4.5, 4.5, -ALL, ALL), over(-6.5, 6.5, -7, 7)],
  ["rsqrt", math.rsqrt, rsqrt, exact.rsqrt, over(0, 10, 0, ALL), over(1e-9, 10, 1e-300, ALL)],
  // Where sigmoid is subnormal, its coarse steps are multiplied by x.
  ["silu", math.silu, silu, exact.silu, over(-20, 20, -87, ALL), over(-20, 20, -700, 700)],
];

const digamma = (x: Expr): Expr => math.polygamma(x, 0);
const trigamma = (x: Expr): Expr => math.polygamma(x, 1);

const UNIT = over(-1, 1, -1, 1);
const POSITIVE = [over(0.3, 4, 0, ALL), over(0.3, 4, 2 ** -1074, ALL)] as const;

/** These on a quarter of the points. */
const MORE: readonly Sweep[] = [
  ["exp2", math.exp2, (x) => 2 ** x, special.exp2, over(-20, 20, -ALL, ALL), over(-20, 20, -1100, 1030)],
  ["log2", math.log2, Math.log2, special.log2, ...POSITIVE],
  ["log10", math.log10, Math.log10, special.log10, ...POSITIVE],
  ["mish", math.mish, mish, special.mish, over(-20, 20, -87, ALL), over(-20, 20, -700, 700)],
  ["atan", math.atan, Math.atan, special.atan, over(-3, 3, -ALL, ALL), over(-3, 3, -ALL, ALL)],
  ["asin", math.asin, Math.asin, special.asin, UNIT, UNIT],
  ["acos", math.acos, Math.acos, special.acos, UNIT, UNIT],
  ["sinh", math.sinh, Math.sinh, special.sinh, over(-3, 3, -ALL, ALL), over(-3, 3, -720, 720)],
  ["cosh", math.cosh, Math.cosh, special.cosh, over(-3, 3, -ALL, ALL), over(-3, 3, -720, 720)],
  ["asinh", math.asinh, Math.asinh, special.asinh, over(-3, 3, -ALL, ALL), over(-3, 3, -ALL, ALL)],
  ["acosh", math.acosh, Math.acosh, special.acosh, over(1, 4, 1, ALL), over(1, 4, 1.001, 1e150)],
  ["atanh", math.atanh, Math.atanh, special.atanh, UNIT, over(-0.99, 0.99, -0.999, 0.999)],
  ["cbrt", math.cbrt, Math.cbrt, special.cbrt, over(-9, 9, -ALL, ALL), over(-9, 9, -ALL, ALL)],
  ["erfc", math.erfc, double.erfc, special.erfc, over(-3, 9, -ALL, ALL), over(-3, 12, -7, 27)],
  ["erfinv", math.erfinv, double.erfinv, special.erfinv, UNIT, over(-0.999, 0.999, -0.9999, 0.9999)],
  ["lgamma", math.lgamma, double.lgamma, special.lgamma, over(0, 12, 0, ALL), over(0.01, 12, 1e-300, 1e300)],
  [
    "trigamma",
    trigamma,
    (x) => double.polygamma(x, 1),
    special.trigamma,
    over(0, 12, 1e-18, ALL),
    over(0.01, 12, 1e-100, 1e100),
  ],
];

const F32_POINTS = 120_000;
const F64_POINTS = 1_000;

/** What has been compared with the truth in this file. */
const swept = { f32: new Set<string>(), f64: new Set<string>() };

function expectWithin(name: MathName, dtype: FloatType, { off, x }: Worst): void {
  swept[dtype].add(name);
  const bound = ULP_BOUNDS[dtype][name];
  expect(off, `${name} of ${x} is ${off.toFixed(3)} ulps off`).toBeLessThanOrEqual(bound);
  // A bound far above what is seen says nothing.
  expect(off, `the bound ${bound} of ${name} is loose`).toBeGreaterThan(bound / 3);
}

describe.each([...SWEEPS, ...MORE])("%s", (name, of, truth, exactTruth, f32, f64) => {
  const share = SWEEPS.some(([known]) => known === name) ? 1 : 4;

  it("of f32 is within its bound", () => {
    const x = points("f32", F32_POINTS / share, f32);
    const y = mapped(of, "f32", x);
    expectWithin(
      name,
      "f32",
      worst(x, (i) => ulpsOffF32(at(y, i), truth(at(x, i)))),
    );
  });

  it("of f64 is within its bound", () => {
    const x = points("f64", F64_POINTS / share, f64);
    const y = mapped(of, "f64", x);
    expectWithin(
      name,
      "f64",
      worst(x, (i) => exact.ulpsOff(at(y, i), exactTruth(at(x, i)))),
    );
  });

  it("of f64 asks of i64 only what every target has", () => {
    const allowed = ["add", "sub", "and", "or", "xor", "shl", "shr_u", "shr_s", "bitcast", "wrap", "extend", "pick"];
    walkExpr(of(load("f64", 0, varIndex({ kind: "var", name: "i", extent: 2 }))), (e) => {
      if (e.kind !== "call" || ![e, ...e.args].some((a) => a.dtype === "i64")) return;
      expect(allowed).toContain(e.fn);
      if (e.fn.startsWith("sh")) expect(e.args[1]?.kind).toBe("const");
    });
  });
});

describe("pow", () => {
  /** Powers of two far out, numbers near 1, numbers below 10. */
  const bases = [
    (random: number, range: number) => 2 ** ((random - 0.5) * 1.9 * range),
    (random: number) => 1 + (random - 0.5) * 0.01,
    (random: number) => random * 10,
  ];

  it.each(["f32", "f64"] as const)("of %s is within its bound, near 1 with large exponents too", (dtype) => {
    const random = generator(17);
    const range = dtype === "f32" ? 150 : 1080;
    const n = dtype === "f32" ? F32_POINTS : F64_POINTS;
    const x = floats(
      dtype,
      Array.from({ length: n }, (_, i) => at(bases, i % 3)(random(), range)),
    );
    // Exponents for which the result is within, or just outside of, the range of the type.
    const y = floats(
      dtype,
      Array.from(x, (base) => ((random() - 0.5) * 2 * range) / (Math.log2(base) || 1)),
    );
    const z = applied((...args) => math.pow(at(args, 0), at(args, 1)), dtype, [x, y]);
    const off = (i: number): number => {
      if (dtype === "f32") return ulpsOffF32(at(z, i), at(x, i) ** at(y, i));
      return exact.ulpsOff(at(z, i), exact.pow(at(x, i), at(y, i)));
    };
    expectWithin("pow", dtype, worst(x, off));
  });
});

describe("atan2", () => {
  it.each(["f32", "f64"] as const)("of %s is within its bound, in all four quadrants", (dtype) => {
    const n = dtype === "f32" ? F32_POINTS / 4 : F64_POINTS / 4;
    const domain = over(-3, 3, -1e30, 1e30);
    const y = points(dtype, n, domain);
    const x = points(dtype, n + 1, domain).slice(0, n);
    const angle = applied((...args) => math.atan2(at(args, 0), at(args, 1)), dtype, [y, x]);
    const off = (i: number): number => {
      if (dtype === "f32") return ulpsOffF32(at(angle, i), Math.atan2(at(y, i), at(x, i)));
      return exact.ulpsOff(at(angle, i), special.atan2(at(y, i), at(x, i)));
    };
    expectWithin("atan2", dtype, worst(y, off));
  });
});

describe("functions with zeros that no number is near enough to", () => {
  /** Of f64 the double is no truth where it cancels, so the error is one of at least 1. */
  const scale = (y: number): number => Math.min(1, Math.abs(y));

  it("digamma is within its bound where it is 1 or more, and within that many units of 1 elsewhere", () => {
    const x = points("f32", F32_POINTS / 4, over(0, 12, 1e-30, ALL));
    const y = mapped(digamma, "f32", x);
    const truth = (i: number): number => double.polygamma(at(x, i), 0);
    const off = (i: number): number => ulpsOffF32(at(y, i), truth(i)) * scale(truth(i));
    expectWithin("digamma", "f32", worst(x, off));
    const wide = points("f64", F64_POINTS / 4, over(0.01, 12, 1e-300, 1e300));
    const z = mapped(digamma, "f64", wide);
    const offWide = (i: number): number => exact.ulpsOff(at(z, i), special.digamma(at(wide, i))) * scale(at(z, i));
    expectWithin("digamma", "f64", worst(wide, offWide));
  });

  it.each([
    ["lgamma", math.lgamma, (x: number) => double.lgamma(x)],
    ["digamma", digamma, (x: number) => double.polygamma(x, 0)],
  ] as const)(
    "%s of negative numbers is within three times its bound of what the reflection adds",
    (name, of, truth) => {
      const x = points("f32", F32_POINTS / 4, over(-6, 0, -100, -1e-6)).filter((v) => v !== Math.round(v));
      const y = mapped(of, "f32", x);
      const off = (i: number): number => {
        const v = at(x, i);
        const size = Math.max(1, Math.abs(truth(v)), Math.abs(truth(1 - v)));
        return Math.abs(at(y, i) - truth(v)) / size / 2 ** -23;
      };
      const found = worst(x, off);
      expect(found.off, `${name} ${found.x}`).toBeLessThan(3 * ULP_BOUNDS.f32[name]);
    },
  );
});

describe("sin, cos and tan", () => {
  const multiples = (limit: number): number[] =>
    Array.from({ length: (limit / Math.PI) * 2 }, (_, n) => ((n + 1) * Math.PI) / 2);

  it.each(TRIGS)("%s keeps its bound at the numbers nearest to multiples of π/2", (name, of, truth, exactTruth) => {
    const x = Float32Array.from(multiples(5e4));
    const y = mapped(of, "f32", x);
    const found = worst(x, (i) => ulpsOffF32(at(y, i), truth(at(x, i))));
    expect(found.off, `${name} ${found.x}`).toBeLessThanOrEqual(ULP_BOUNDS.f32[name]);
    const doubles = Float64Array.from(multiples(1.6e6).filter((_, n) => n % 1000 === 0));
    const z = mapped(of, "f64", doubles);
    const foundDouble = worst(doubles, (i) => exact.ulpsOff(at(z, i), exactTruth(at(doubles, i))));
    expect(foundDouble.off, `${name} ${foundDouble.x}`).toBeLessThanOrEqual(ULP_BOUNDS.f64[name]);
  });

  it.each(TRIGS.slice(0, 2))("%s of f32 has an absolute error below 2^-23 up to 1e5", (name, of, truth) => {
    const x = Float32Array.from(multiples(1e5), (m, n) => m + (n % 2) * 0.7);
    const y = mapped(of, "f32", x);
    const found = worst(x, (i) => Math.abs(at(y, i) - truth(at(x, i))));
    expect(found.off, `${name} ${found.x}`).toBeLessThan(2 ** -23);
  });
});

describe("gelu", () => {
  // The rounding of the exponent of its tail is multiplied by the exponent.
  const scale = (x: number): number => 1 + Math.max(0, -geluExponent(x));

  it("of f32 is within its bound times one more than the exponent of its tail", () => {
    const x = points("f32", F32_POINTS, over(-4, 4, -8, ALL));
    const y = mapped(math.gelu, "f32", x);
    const truth = (v: number): number => v * sigmoid(geluExponent(v));
    expectWithin(
      "gelu",
      "f32",
      worst(x, (i) => ulpsOffF32(at(y, i), truth(at(x, i))) / scale(at(x, i))),
    );
  });

  it("of f64 is within its bound times one more than the exponent of its tail", () => {
    const x = points("f64", F64_POINTS, over(-4, 4, -20, 1e30));
    const y = mapped(math.gelu, "f64", x);
    expectWithin(
      "gelu",
      "f64",
      worst(x, (i) => exact.ulpsOff(at(y, i), exact.gelu(at(x, i))) / scale(at(x, i))),
    );
  });

  it("is the tanh form", () => {
    const x = points("f64", 500, over(-6, 6, -6, 6));
    const y = mapped(math.gelu, "f64", x);
    const form = (v: number): number => 0.5 * v * (1 + Math.tanh(0.7978845608028654 * (v + 0.044715 * v ** 3)));
    expect(worst(x, (i) => Math.abs(at(y, i) - form(at(x, i)))).off).toBeLessThan(1e-14);
  });
});

it.each(["f32", "f64"] as const)("every function of %s has been compared with the truth", (dtype) => {
  expect([...swept[dtype]].sort()).toEqual(Object.keys(ULP_BOUNDS[dtype]).sort());
});
