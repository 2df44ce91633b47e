/** @file Zeros, infinities, NaN, symmetry and arguments far out, for the mathematical functions in both types. */
import { describe, expect, it } from "vitest";
import { applied, floats, mapped, points } from "../../tests/support/float-sweeps.ts";
import { at } from "../base/invariant.ts";
import type { Expr } from "./expr.ts";
import * as math from "./math.ts";
import { floorDiv, fmod, remainder } from "./remainder.ts";

const INF = Number.POSITIVE_INFINITY;
const NAN = Number.NaN;

/** Name, function, arguments, results. */
const CASES: readonly (readonly [string, (x: Expr) => Expr, readonly number[], readonly number[]])[] = [
  ["exp", math.exp, [0, -0, INF, -INF, NAN, 800, -800], [1, 1, INF, 0, NAN, INF, 0]],
  ["expm1", math.expm1, [0, -0, INF, -INF, NAN, -100, 800], [0, -0, INF, -1, NAN, -1, INF]],
  ["log", math.log, [1, 0, -0, -1, -INF, INF, NAN], [0, -INF, -INF, NAN, NAN, INF, NAN]],
  ["log1p", math.log1p, [0, -0, -1, -2, -INF, INF, NAN], [0, -0, -INF, NAN, NAN, INF, NAN]],
  ["tanh", math.tanh, [0, -0, INF, -INF, NAN, 30, -30], [0, -0, 1, -1, NAN, 1, -1]],
  ["sigmoid", math.sigmoid, [0, INF, -INF, NAN, 1000, -1000], [0.5, 1, 0, NAN, 1, 0]],
  ["softplus", math.softplus, [INF, -INF, NAN, 1000, -1000], [INF, 0, NAN, 1000, 0]],
  ["erf", math.erf, [0, -0, INF, -INF, NAN, 7, -7], [0, -0, 1, -1, NAN, 1, -1]],
  ["rsqrt", math.rsqrt, [0, -0, INF, -1, NAN, 4], [INF, -INF, 0, NAN, NAN, 0.5]],
  ["silu", math.silu, [0, -0, INF, -INF, NAN, 1000], [0, -0, INF, -0, NAN, 1000]],
  ["gelu", math.gelu, [0, -0, INF, -INF, NAN, 1e30, -1e30], [0, -0, INF, -0, NAN, 1e30, -0]],
  ["sin", math.sin, [0, -0, INF, -INF, NAN], [0, -0, NAN, NAN, NAN]],
  ["cos", math.cos, [0, -0, INF, -INF, NAN], [1, 1, NAN, NAN, NAN]],
  ["tan", math.tan, [0, -0, INF, -INF, NAN], [0, -0, NAN, NAN, NAN]],
  ["mish", math.mish, [0, -0, INF, -INF, NAN, 1000], [0, -0, INF, -0, NAN, 1000]],
  ["exp2", math.exp2, [0, -0, 10, -3, INF, -INF, NAN, 2000, -2000], [1, 1, 1024, 0.125, INF, 0, NAN, INF, 0]],
  ["log2", math.log2, [1, 8, 2 ** -140, 0, -0, -1, INF, NAN], [0, 3, -140, -INF, -INF, NAN, INF, NAN]],
  ["log10", math.log10, [1, 10, 1e3, 1e10, 0, -1, INF, NAN], [0, 1, 3, 10, -INF, NAN, INF, NAN]],
  ["cbrt", math.cbrt, [0, -0, 8, -27, 2 ** -144, INF, -INF, NAN], [0, -0, 2, -3, 2 ** -48, INF, -INF, NAN]],
  ["asin", math.asin, [0, -0, 1, -1, 2, -2, INF, NAN], [0, -0, Math.PI / 2, -Math.PI / 2, NAN, NAN, NAN, NAN]],
  ["acos", math.acos, [0, -0, 1, -1, 2, -2, INF, NAN], [Math.PI / 2, Math.PI / 2, 0, Math.PI, NAN, NAN, NAN, NAN]],
  ["atan", math.atan, [0, -0, INF, -INF, NAN, 1], [0, -0, Math.PI / 2, -Math.PI / 2, NAN, Math.PI / 4]],
  ["sinh", math.sinh, [0, -0, INF, -INF, NAN, 800, -800], [0, -0, INF, -INF, NAN, INF, -INF]],
  ["cosh", math.cosh, [0, -0, INF, -INF, NAN, 800, -800], [1, 1, INF, INF, NAN, INF, INF]],
  ["asinh", math.asinh, [0, -0, INF, -INF, NAN], [0, -0, INF, -INF, NAN]],
  ["acosh", math.acosh, [1, 0.5, -1, -INF, INF, NAN, -1e10], [0, NAN, NAN, NAN, INF, NAN, NAN]],
  ["atanh", math.atanh, [0, -0, 1, -1, 2, -INF, NAN], [0, -0, INF, -INF, NAN, NAN, NAN]],
  ["erfc", math.erfc, [0, -0, INF, -INF, NAN, 30, -30], [1, 1, 0, 2, NAN, 0, 2]],
  ["erfinv", math.erfinv, [0, -0, 1, -1, 2, -INF, NAN], [0, -0, INF, -INF, NAN, NAN, NAN]],
  ["lgamma", math.lgamma, [1, 2, 0, -0, -1, -7, INF, -INF, NAN], [0, 0, INF, INF, INF, INF, INF, INF, NAN]],
  ["digamma", (x) => math.polygamma(x, 0), [0, -0, -1, -7, INF, -INF, NAN], [-INF, INF, NAN, NAN, INF, NAN, NAN]],
  ["trigamma", (x) => math.polygamma(x, 1), [0, -0, -1, INF, NAN], [INF, INF, INF, 0, NAN]],
];

describe.each(["f32", "f64"] as const)("special values of %s", (dtype) => {
  it.each(CASES)("%s are right", (_name, of, x, y) => {
    expect([...mapped(of, dtype, floats(dtype, x))]).toEqual([...floats(dtype, y)]);
  });

  it("subnormal arguments of odd functions with slope 1 give themselves", () => {
    const tiny = dtype === "f32" ? 2 ** -149 : 2 ** -1074;
    const x = floats(dtype, [tiny, -tiny, 3 * tiny, -1001 * tiny]);
    const functions = [math.expm1, math.log1p, math.tanh, math.sin, math.tan, math.asin, math.atan, math.sinh];
    for (const of of [...functions, math.asinh, math.atanh]) expect(mapped(of, dtype, x)).toEqual(x);
  });

  it("pow are those of IEEE 754", () => {
    const values = [0, 0.5, 1, 2, 2.5, 3, 4, 1e-30, 1e30, 2 ** 53, INF].flatMap((v) => [v, -v]).concat(NAN);
    const x = floats(
      dtype,
      values.flatMap((v) => values.map(() => v)),
    );
    const y = floats(
      dtype,
      values.flatMap(() => values),
    );
    const got = applied((...args) => math.pow(at(args, 0), at(args, 1)), dtype, [x, y]);
    const relative = 2 ** (dtype === "f32" ? -22 : -51);
    x.forEach((base, i) => {
      const power = at(y, i);
      // JavaScript has NaN where IEEE 754 has 1.
      const isOne = base === 1 || (base === -1 && Math.abs(power) === INF);
      const wanted = at(floats(dtype, [isOne ? 1 : base ** power]), 0);
      const what = `${base} ** ${power}`;
      if (Number.isFinite(wanted) && wanted !== 0)
        expect(Math.abs(at(got, i) / wanted - 1), what).toBeLessThan(relative);
      else expect(at(got, i), what).toBe(wanted);
    });
  });

  it("atan2 are those of C", () => {
    const values = [0, -0, 1, -1, 2.5, -2.5, 1e-30, 1e30, INF, -INF, NAN];
    const y = floats(
      dtype,
      values.flatMap((v) => values.map(() => v)),
    );
    const x = floats(
      dtype,
      values.flatMap(() => values),
    );
    const got = applied((...args) => math.atan2(at(args, 0), at(args, 1)), dtype, [y, x]);
    const wanted = y.map((v, i) => Math.atan2(v, at(x, i)));
    wanted.forEach((angle, i) => {
      const what = `atan2(${at(y, i)}, ${at(x, i)})`;
      if (angle === 0 || Number.isNaN(angle)) expect(at(got, i), what).toBe(angle);
      else expect(Math.abs(at(got, i) / angle - 1), what).toBeLessThan(2 ** (dtype === "f32" ? -22 : -51));
    });
  });

  it("remainders are those of JavaScript, and of Python's floored division", () => {
    const values = [0, -0, 1, -1, 0.1, 0.3, -7, 2.5, -2.5, 1e-10, 12345.678, INF, -INF, NAN];
    const a = floats(
      dtype,
      values.flatMap((v) => values.map(() => v)),
    );
    const b = floats(
      dtype,
      values.flatMap(() => values),
    );
    const of = (f: (x: Expr, y: Expr) => Expr) => applied((...args) => f(at(args, 0), at(args, 1)), dtype, [a, b]);
    const [rest, floored, whole] = [of(fmod), of(remainder), of(floorDiv)];
    // one divided by ten billionths leaves the type's precision behind
    const limit = dtype === "f32" ? 2 ** 23 : 2 ** 51;
    a.forEach((x, i) => {
      const y = at(b, i);
      if (Math.abs(x / y) > limit && y !== 0 && Number.isFinite(x)) return;
      const what = `${x} by ${y}`;
      const exact = x % y;
      expect(at(rest, i), `fmod ${what}`).toBe(exact);
      const isOther = exact !== 0 && exact < 0 !== y < 0;
      expect(at(floored, i), `remainder ${what}`).toBe(at(floats(dtype, [isOther ? exact + y : exact]), 0));
      if (y === 0) expect(at(whole, i), what).toBe(at(floats(dtype, [x / y]), 0));
      else if (!Number.isFinite(x)) expect(at(whole, i), what).toBe(NAN);
      else if (Number.isFinite(y)) {
        const quotient = Math.round((x - exact) / y) - (isOther ? 1 : 0);
        expect(Math.abs(at(whole, i) - at(floats(dtype, [quotient]), 0)), `floorDiv ${what}`).toBe(0);
      } else expect(Math.abs(at(whole, i) - (isOther ? -1 : x / y)), what).toBe(Number.isNaN(y) ? NAN : 0);
    });
  });

  it("sin and cos far out stay between -1 and 1", () => {
    const x = points(dtype, 2000, { dense: [-1e7, 1e7], all: [-Number.MAX_VALUE, Number.MAX_VALUE] });
    for (const of of [math.sin, math.cos]) expect(mapped(of, dtype, x).every((v) => v >= -1 && v <= 1)).toBe(true);
  });

  it("odd functions are mirrored bit by bit, and cos is even", () => {
    const x = points(dtype, 2000, { dense: [-8, 8], all: [-100, 100] });
    const mirrored = x.map((v) => -v);
    for (const of of [math.tanh, math.erf, math.sin, math.tan]) {
      expect(mapped(of, dtype, mirrored).map((v) => -v)).toEqual(mapped(of, dtype, x));
    }
    expect(mapped(math.cos, dtype, mirrored)).toEqual(mapped(math.cos, dtype, x));
  });
});
