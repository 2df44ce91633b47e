/** @file The interpreter against hand-computed values and independent loops: each scalar function, each kind of nest. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { at } from "../base/invariant.ts";
import type { DType, ScalarType } from "./dtype.ts";
import { call, compare, constant, type Expr, type Index, type LoopVar, load, type ScalarFn } from "./expr.ts";
import { addIndex, constIndex, divIndex, modIndex, scaleIndex, valueIndex, varIndex, ZERO } from "./index-math.ts";
import { evaluate, interpretKernel, type TypedArray } from "./interpret.ts";
import type { Combine, Kernel, Nest, Operand } from "./loops.ts";

const loop = (name: string, extent: number): LoopVar => ({ kind: "var", name, extent });

function apply(
  fn: ScalarFn,
  type: ScalarType,
  args: readonly (number | bigint)[],
  result: ScalarType = type,
): number | bigint {
  return evaluate(
    call(
      fn,
      args.map((x) => constant(type, x)),
      result,
    ),
  );
}

function guarded(index: Index, lo: number, hi: number, then: Expr, otherwise: Expr): Expr {
  return { kind: "guard", dtype: otherwise.dtype, bounds: [{ index, lo, hi }], then, otherwise };
}

/** Operands `in` except the last, which is `out`. */
function kernel(nests: readonly Nest[], buffers: readonly TypedArray[]): Kernel {
  const operands = buffers.map(
    (buffer, i): Operand => ({
      dtype: dtypeOf(buffer),
      elements: buffer.length,
      role: i === buffers.length - 1 ? "out" : "in",
    }),
  );
  return { operands, nests };
}

function dtypeOf(buffer: TypedArray): DType {
  if (buffer instanceof Float32Array) return "f32";
  if (buffer instanceof Float64Array) return "f64";
  return buffer instanceof Int32Array ? "i32" : "bool";
}

function run(nest: Nest, ...buffers: TypedArray[]): TypedArray {
  interpretKernel(kernel([nest], buffers), buffers);
  return at(buffers, buffers.length - 1);
}

describe("scalar functions", () => {
  it("round f32 after every step and f64 not at all", () => {
    expect(apply("add", "f32", [1, 2 ** -24])).toBe(1);
    expect(apply("add", "f64", [1, 2 ** -24])).toBe(1 + 2 ** -24);
    expect(apply("mul", "f32", [1 + 2 ** -12, 1 + 2 ** -12])).toBe(1 + 2 ** -11);
    expect(apply("div", "f32", [1, 3])).toBe(Math.fround(1 / 3));
    expect(apply("sqrt", "f32", [2])).toBe(Math.fround(Math.SQRT2));
    expect(evaluate(constant("f32", 0.1))).toBe(Math.fround(0.1));
  });

  it("round to integers, halves to even, with the sign of zero", () => {
    const cases = [
      [0.5, 0],
      [1.5, 2],
      [2.5, 2],
      [-0.5, -0],
      [-1.5, -2],
      [-0, -0],
      [8388609, 8388609],
      [1e30, 1e30],
    ] as const;
    for (const [x, y] of cases) expect(apply("nearest", "f64", [x])).toBe(y);
    expect(apply("nearest", "f64", [4503599627370495.5])).toBe(4503599627370496);
    expect(apply("floor", "f32", [-0.5])).toBe(-1);
    expect(apply("ceil", "f32", [-0.5])).toBe(-0);
    expect(apply("trunc", "f32", [-1.5])).toBe(-1);
  });

  it("propagate NaN in min and max and order the zeros", () => {
    for (const fn of ["min", "max"] as const) {
      expect(apply(fn, "f32", [Number.NaN, 1])).toBeNaN();
      expect(apply(fn, "f32", [1, Number.NaN])).toBeNaN();
    }
    expect(apply("min", "f32", [0, -0])).toBe(-0);
    expect(apply("max", "f32", [-0, 0])).toBe(0);
  });

  it("wrap i32, truncate its division and give 0 for a zero divisor", () => {
    expect(apply("add", "i32", [0x7fffffff, 1])).toBe(-0x80000000);
    expect(apply("sub", "i32", [-0x80000000, 1])).toBe(0x7fffffff);
    expect(apply("mul", "i32", [0x12345678, 0x9abcdef])).toBe(Math.imul(0x12345678, 0x9abcdef));
    expect(apply("neg", "i32", [-0x80000000])).toBe(-0x80000000);
    expect(apply("abs", "i32", [-0x80000000])).toBe(-0x80000000);
    expect(apply("div", "i32", [-7, 2])).toBe(-3);
    expect(apply("div", "i32", [7, 0])).toBe(0);
    expect(apply("div", "i32", [-0x80000000, -1])).toBe(-0x80000000);
    expect(apply("not", "i32", [5])).toBe(-6);
    expect(apply("shl", "i32", [3, 31])).toBe(-0x80000000);
    expect(apply("shr_u", "i32", [-1, 28])).toBe(15);
    expect(apply("shr_s", "i32", [-16, 2])).toBe(-4);
  });

  it("wrap i64 and shift it both ways", () => {
    expect(apply("add", "i64", [2n ** 63n - 1n, 1n])).toBe(-(2n ** 63n));
    expect(apply("sub", "i64", [-(2n ** 63n), 1n])).toBe(2n ** 63n - 1n);
    expect(apply("shl", "i64", [3n, 63n])).toBe(-(2n ** 63n));
    expect(apply("shr_u", "i64", [-1n, 60n])).toBe(15n);
    expect(apply("shr_s", "i64", [-16n, 2n])).toBe(-4n);
    expect(apply("and", "i64", [-1n, 12n])).toBe(12n);
    expect(apply("wrap", "i64", [0x1_8000_0001n], "i32")).toBe(-0x7fffffff);
    expect(apply("extend", "i32", [-5], "i64")).toBe(-5n);
  });

  it("refuse what a target need not have", () => {
    expect(() => apply("sqrt", "i64", [1n])).toThrow(/sqrt is not defined on i64/);
    expect(() => apply("and", "f32", [1, 2])).toThrow(/and is not defined on f32/);
    expect(() => apply("bitcast", "f32", [1], "i64")).toThrow(/bitcast/);
  });

  it("convert with truncation and saturation, NaN to 0", () => {
    const toInt = (x: number): unknown => apply("convert", "f32", [x], "i32");
    expect([1.9, -1.9, 1e20, -1e20, Number.NaN, -0.5].map(toInt)).toEqual([1, -1, 0x7fffffff, -0x80000000, 0, 0]);
    expect(apply("convert", "i32", [16777217], "f32")).toBe(16777216);
    expect(apply("convert", "i32", [16777217], "f64")).toBe(16777217);
    expect(apply("convert", "f64", [0.1], "f32")).toBe(Math.fround(0.1));
    expect([0, -0, 0.5, Number.NaN].map((x) => apply("convert", "f32", [x], "bool"))).toEqual([0, 0, 1, 1]);
  });

  it("cast bits to and fro", () => {
    expect(apply("bitcast", "f32", [1], "i32")).toBe(0x3f800000);
    expect(apply("bitcast", "i32", [-0x80000000], "f32")).toBe(-0);
    expect(apply("bitcast", "f64", [-2], "i64")).toBe(-0x4000000000000000n);
    fc.assert(
      fc.property(fc.double({ noNaN: true }), (x) => {
        const bits = call("bitcast", [constant("f64", x)], "i64");
        return Object.is(evaluate(call("bitcast", [bits], "f64")), x);
      }),
      { seed: 5 },
    );
  });

  it("compare, and pick by the result", () => {
    const x = constant("f32", 2);
    const nan = constant("f32", Number.NaN);
    expect(["eq", "ne", "lt", "le"].map((fn) => evaluate(compare(fn as "eq", x, nan)))).toEqual([0, 1, 0, 0]);
    expect(["eq", "ne", "lt", "le"].map((fn) => evaluate(compare(fn as "eq", x, x)))).toEqual([1, 0, 0, 1]);
    const bigPick = call("pick", [constant("bool", 0), constant("i64", 1n), constant("i64", 2n)]);
    expect(evaluate(bigPick)).toBe(2n);
    expect(apply("not", "bool", [1])).toBe(0);
    expect(apply("xor", "bool", [1, 1])).toBe(0);
  });
});

describe("expressions", () => {
  it("read operands at indices with quotients, remainders and run-time values", () => {
    const i = loop("i", 12);
    const table = Int32Array.from([4, 3, 2, 1, 0]);
    const j = valueIndex(load("i32", 0, modIndex(varIndex(i), 5)), 0, 4);
    const index = addIndex(scaleIndex(divIndex(varIndex(i), 3), 100), scaleIndex(j, -1), constIndex(7));
    const expr: Expr = { kind: "index", dtype: "i32", index };
    for (let v = 0; v < 12; v++) {
      const wanted = Math.floor(v / 3) * 100 - (4 - (v % 5)) + 7;
      expect(evaluate(expr, { buffers: [table], counters: { i: v } })).toBe(wanted);
    }
  });

  it("evaluate the chosen side of a guard alone", () => {
    const i = loop("i", 8);
    const shifted = addIndex(varIndex(i), constIndex(-2));
    const x = load("f32", 0, shifted);
    const guard = guarded(shifted, 0, 3, x, constant("f32", -1));
    // The same load outside of a guard would be out of bounds, so it must not have run for i = 0.
    const stores = [{ operand: 1, index: varIndex(i), value: guard }];
    const out = run({ kind: "map", loops: [i], stores }, Float32Array.of(10, 20, 30), new Float32Array(8));
    expect([...out]).toEqual([-1, -1, 10, 20, 30, -1, -1, -1]);
    expect(() => evaluate(x, { buffers: [Float32Array.of(1)], counters: { i: 0 } })).toThrow(/load of element -2/);
  });

  it("may use one object inside a guard, in another guard and after it", () => {
    const i = loop("i", 4);
    const x = load("f64", 0, varIndex(i));
    const square = call("mul", [x, x]);
    const guard = (lo: number, hi: number): Expr => guarded(varIndex(i), lo, hi, square, constant("f64", 0));
    const value = call("add", [call("add", [guard(1, 2), guard(2, 4)]), square]);
    const stores = [{ operand: 1, index: varIndex(i), value }];
    const out = run({ kind: "map", loops: [i], stores }, Float64Array.of(1, 2, 3, 4), new Float64Array(4));
    expect([...out]).toEqual([1, 8, 18, 32]);
  });
});

describe("map", () => {
  it("makes all stores of an iteration after all its loads", () => {
    const i = loop("i", 3);
    const [x, y] = [load("i32", 0, varIndex(i)), load("i32", 1, varIndex(i))];
    const [a, b] = [Int32Array.of(1, 2, 3), Int32Array.of(4, 5, 6)];
    const stores = [
      { operand: 0, index: varIndex(i), value: y },
      { operand: 1, index: varIndex(i), value: x },
    ];
    run({ kind: "map", loops: [i], stores }, a, b);
    expect([[...a], [...b]]).toEqual([
      [4, 5, 6],
      [1, 2, 3],
    ]);
  });

  it("is skipped when its two operands share storage, and runs otherwise", () => {
    const i = loop("i", 2);
    const value = call("add", [load("i32", 0, varIndex(i)), constant("i32", 1)]);
    const nest: Nest = {
      kind: "map",
      loops: [i],
      stores: [{ operand: 1, index: varIndex(i), value }],
      skipIfAliased: [0, 1],
    };
    const memory = Int32Array.of(5, 6);
    expect([...run(nest, memory, new Int32Array(memory.buffer))]).toEqual([5, 6]);
    expect([...run(nest, memory, new Int32Array(2))]).toEqual([6, 7]);
  });

  it("refuses a store outside of its operand", () => {
    const i = loop("i", 3);
    const stores = [{ operand: 0, index: varIndex(i), value: constant("f32", 0) }];
    expect(() => run({ kind: "map", loops: [i], stores }, new Float32Array(2))).toThrow(/store to 2/);
  });
});

/** out[i] = ⊕ over j, k of x[i, j, k]. */
function reduction(
  shape: readonly [number, number, number],
  order: "sequential" | "interleaved",
  combine: Combine,
  dtype: ScalarType,
): Nest {
  const [i, j, k] = [loop("i", shape[0]), loop("j", shape[1]), loop("k", shape[2])];
  const index = addIndex(scaleIndex(varIndex(i), shape[1] * shape[2]), scaleIndex(varIndex(j), shape[2]), varIndex(k));
  return {
    kind: "reduce",
    loops: [i],
    reduce: [j, k],
    order,
    combine,
    dtype,
    body: load(dtype, 0, index),
    stores: [{ operand: 1, index: varIndex(i), value: { kind: "acc", dtype } }],
  };
}

describe("reduce", () => {
  // 1 is lost next to 2^24 in f32: sums tell their order.
  const big = 2 ** 24;

  it("adds sequentially", () => {
    const x = Float32Array.from([big, 1, 1, 1, -big, 1]);
    expect([...run(reduction([1, 2, 3], "sequential", "add", "f32"), x, new Float32Array(1))]).toEqual([1]);
  });

  it("adds f32 in sixteen accumulators, then four, then one, and joins them pairwise", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 70 }), fc.integer({ min: 1, max: 2 }), fc.nat(), (n, outer, seed) => {
        const x = Float32Array.from({ length: n * outer }, (_, i) =>
          Math.fround(Math.sin(seed + i * 1.7) * 10 ** ((i * 7) % 9)),
        );
        // As the documentation has it, spelled out: q[g][l] is lane l of group g.
        const q = Array.from({ length: 4 }, () => [0, 0, 0, 0]);
        const put = (g: number, l: number, v: number): void => {
          const group = at(q, g);
          group[l] = Math.fround(at(group, l) + v);
        };
        for (let o = 0; o < outer; o++) {
          let r = 0;
          for (; r + 16 <= n; r += 16) for (let s = 0; s < 16; s++) put(s >> 2, s & 3, at(x, o * n + r + s));
          for (; r + 4 <= n; r += 4) for (let s = 0; s < 4; s++) put(0, s, at(x, o * n + r + s));
          for (; r < n; r++) put(0, 0, at(x, o * n + r));
        }
        const f = (a: number, b: number): number => Math.fround(a + b);
        const lane = [0, 1, 2, 3].map((l) =>
          f(f(at(at(q, 0), l), at(at(q, 1), l)), f(at(at(q, 2), l), at(at(q, 3), l))),
        );
        const wanted = f(f(at(lane, 0), at(lane, 2)), f(at(lane, 1), at(lane, 3)));
        const got = run(reduction([1, outer, n], "interleaved", "add", "f32"), x, new Float32Array(1));
        expect(at(got, 0)).toBe(wanted);
      }),
      { seed: 8, numRuns: 300 },
    );
  });

  it("adds f64 in eight accumulators, two lanes each", () => {
    // Element r goes to accumulator r mod 8; 13 elements: 8 by eights, 4 by twos, 1 alone.
    const x = Float64Array.from({ length: 13 }, (_, r) => Math.sin(r + 1) * 10 ** r);
    const e = (r: number): number => at(x, r);
    const lane0 = e(0) + e(8) + e(10) + e(12) + e(2) + (e(4) + e(6));
    const lane1 = e(1) + e(9) + e(11) + e(3) + (e(5) + e(7));
    expect(at(run(reduction([1, 1, 13], "interleaved", "add", "f64"), x, new Float64Array(1)), 0)).toBe(lane0 + lane1);
  });

  it("combines by maximum, minimum, product, any and all", () => {
    const x = Float32Array.from({ length: 19 }, (_, i) => ((i * 5) % 19) - 9);
    const of = (combine: Combine): number =>
      at(run(reduction([1, 1, 19], "interleaved", combine, "f32"), x, new Float32Array(1)), 0);
    expect([of("max"), of("min"), of("mul")]).toEqual([9, -9, -0]);
    const ints = Int32Array.of(0x7fffffff, 2, -5);
    expect([...run(reduction([1, 1, 3], "sequential", "add", "i32"), ints, new Int32Array(1))]).toEqual([0x7ffffffc]);
    const bools = Uint8Array.of(0, 1, 0, 0, 0);
    expect([...run(reduction([1, 1, 5], "interleaved", "or", "bool"), bools, new Uint8Array(1))]).toEqual([1]);
    expect([...run(reduction([1, 1, 5], "interleaved", "and", "bool"), bools, new Uint8Array(1))]).toEqual([0]);
  });

  it("of nothing is the identity", () => {
    for (const order of ["sequential", "interleaved"] as const) {
      expect([...run(reduction([2, 0, 3], order, "add", "f32"), new Float32Array(0), new Float32Array(2))]).toEqual([
        0, 0,
      ]);
      expect([...run(reduction([1, 1, 0], order, "max", "f32"), new Float32Array(0), new Float32Array(1))]).toEqual([
        -Infinity,
      ]);
    }
  });
});

describe("the other nests", () => {
  it("scan stores every prefix", () => {
    const [i, k] = [loop("i", 2), loop("k", 3)];
    const index = addIndex(scaleIndex(varIndex(i), 3), varIndex(k));
    const value = call("mul", [{ kind: "acc", dtype: "f32" }, constant("f32", 2)]);
    const nest: Nest = {
      kind: "scan",
      loops: [i],
      along: k,
      dtype: "f32",
      scale: null,
      body: load("f32", 0, index),
      stores: [{ operand: 1, index, value }],
    };
    expect([...run(nest, Float32Array.of(1, 2, 3, 10, 20, 30), new Float32Array(6))]).toEqual([2, 6, 12, 20, 60, 120]);
  });

  it("contract multiplies, rounds, adds and rounds along depth, then runs its epilogue", () => {
    const [m, n, k] = [loop("m", 2), loop("n", 3), loop("k", 5)];
    const x = Float32Array.from({ length: 10 }, (_, i) => Math.sin(i) * 1e3);
    const y = Float32Array.from({ length: 15 }, (_, i) => Math.cos(i) / 7);
    const index = addIndex(scaleIndex(varIndex(m), 3), varIndex(n));
    const nest: Nest = {
      kind: "contract",
      split: null,
      batch: [],
      rows: m,
      cols: n,
      depth: k,
      dtype: "f32",
      scratch: 2,
      a: load("f32", 0, addIndex(scaleIndex(varIndex(m), 5), varIndex(k))),
      b: load("f32", 1, addIndex(scaleIndex(varIndex(k), 3), varIndex(n))),
      stores: [{ operand: 3, index, value: call("neg", [{ kind: "acc", dtype: "f32" }]) }],
    };
    const out = run(nest, x, y, new Float32Array(0), new Float32Array(6));
    for (let r = 0; r < 2; r++) {
      for (let c = 0; c < 3; c++) {
        let sum = 0;
        for (let d = 0; d < 5; d++) sum = Math.fround(sum + Math.fround(at(x, r * 5 + d) * at(y, d * 3 + c)));
        expect(out[r * 3 + c]).toBe(-sum);
      }
    }
  });

  it("scatter adds in loop order and skips what is out of bounds", () => {
    const i = loop("i", 5);
    const to = valueIndex(load("i32", 0, varIndex(i)), -1, 3);
    const nest: Nest = {
      kind: "scatter",
      loops: [i],
      bounds: [{ index: to, lo: 0, hi: 3 }],
      operand: 2,
      index: to,
      value: load("f32", 1, varIndex(i)),
    };
    const out = run(
      nest,
      Int32Array.of(1, 1, -1, 3, 1),
      Float32Array.of(2 ** 24, 1, 5, 5, 1),
      Float32Array.of(1, 0, 0),
    );
    expect([...out]).toEqual([1, 2 ** 24, 0]);
  });

  it("shuffle is Fisher and Yates's permutation of the bits", () => {
    const i = loop("i", 6);
    const nest: Nest = { kind: "shuffle", along: i, bits: load("i32", 0, varIndex(i)), operand: 1 };
    // Zero bits: every element changes places with the first; all ones: with itself.
    expect([...run(nest, new Int32Array(6), new Int32Array(6))]).toEqual([1, 2, 3, 4, 5, 0]);
    expect([...run(nest, new Int32Array(6).fill(-1), new Int32Array(6))]).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("shuffle picks its partner exactly, with integers as the judge", () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1, maxLength: 40 }), (bits) => {
        const i = loop("i", bits.length);
        const wanted = bits.map((_, n) => n);
        for (let n = bits.length - 1; n >= 1; n--) {
          const j = Number((BigInt(at(bits, n) >>> 0) * BigInt(n + 1)) >> 32n);
          [wanted[n], wanted[j]] = [at(wanted, j), at(wanted, n)];
        }
        const nest: Nest = { kind: "shuffle", along: i, bits: load("i32", 0, varIndex(i)), operand: 1 };
        expect([...run(nest, Int32Array.from(bits), new Int32Array(bits.length))]).toEqual(wanted);
      }),
      { seed: 9 },
    );
  });

  it("of one kernel run one after the other", () => {
    const i = loop("i", 2);
    const plusOne = (from: number, to: number): Nest => ({
      kind: "map",
      loops: [i],
      stores: [
        { operand: to, index: varIndex(i), value: call("add", [load("i32", from, varIndex(i)), constant("i32", 1)]) },
      ],
    });
    const buffers = [Int32Array.of(1, 2), new Int32Array(2), new Int32Array(2)];
    interpretKernel(kernel([plusOne(0, 1), plusOne(1, 2)], buffers), buffers);
    expect([...at(buffers, 2)]).toEqual([3, 4]);
    expect(() => interpretKernel(kernel([], buffers), buffers.slice(1))).toThrow(/3 operands, 2 buffers/);
    expect(evaluate(load("i32", 0, ZERO), { buffers })).toBe(1);
  });
});
