/** @file Zeros, infinities, NaN, symmetry and arguments far out, for the mathematical functions in both types. */
import { describe, expect, it } from "vitest";
import { applied, floats, mapped, points } from "../../tests/support/float-sweeps.ts";
import { at } from "../base/invariant.ts";
import type { Expr } from "./expr.ts";
import * as math from "./math.ts";

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
];

describe.each(["f32", "f64"] as const)("special values of %s", (dtype) => {
  it.each(CASES)("%s are right", (_name, of, x, y) => {
    expect([...mapped(of, dtype, floats(dtype, x))]).toEqual([...floats(dtype, y)]);
  });

  it("subnormal arguments of odd functions with slope 1 give themselves", () => {
    const tiny = dtype === "f32" ? 2 ** -149 : 2 ** -1074;
    const x = floats(dtype, [tiny, -tiny, 3 * tiny, -1001 * tiny]);
    for (const of of [math.expm1, math.log1p, math.tanh, math.sin, math.tan]) expect(mapped(of, dtype, x)).toEqual(x);
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
