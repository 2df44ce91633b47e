/** @file Whole numbers of 64 bits: the bits of BigInt on every processor target, conversions, and what is said of numbers that do not hold them. */
import { describe, expect, it } from "vitest";
import {
  compile,
  cumsum,
  full,
  load,
  maximum,
  minimum,
  plan,
  save,
  sort,
  spec,
  type Tensor,
  tensor,
  where,
} from "../src/api/index.ts";
import { cudaDescription } from "../src/codegen/cuda/description.ts";
import { WGSL_TYPES } from "../src/codegen/wgsl/elements.ts";
import "../src/node/index.ts";
import { loadNpy, saveNpy } from "../src/api/index.ts";

const GREATEST = 2n ** 63n - 1n;
const LEAST = -(2n ** 63n);
const VALUES = [
  ...[0n, 1n, -1n, 2n, -7n, GREATEST, LEAST, GREATEST - 1n, LEAST + 1n, 123456789012345678n],
  // beside the ends of f32, i32 and f64
  ...[2n ** 24n + 1n, 2n ** 31n, -(2n ** 31n) - 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 62n + 2n ** 38n + 1n],
];
const pairs = VALUES.flatMap((a) => VALUES.map((b) => [a, b] as const));

const longs = (values: readonly bigint[]): Tensor => tensor(new BigInt64Array(values), { dtype: "i64" });
const bigints = (x: Tensor): bigint[] => [...(x.data() as unknown as BigInt64Array)];
const wrapped = (x: bigint): bigint => BigInt.asIntN(64, x);
const inOrder = (a: bigint, b: bigint): readonly [bigint, bigint] => (a < b ? [a, b] : [b, a]);
const floorMod = (a: bigint, b: bigint): bigint => (a % b !== 0n && a % b < 0n !== b < 0n ? (a % b) + b : a % b);

type Function2 = (a: Tensor, b: Tensor) => Tensor;
const EXACT: Readonly<Record<string, readonly [Function2, (a: bigint, b: bigint) => bigint]>> = {
  add: [(a, b) => a.add(b), (a, b) => a + b],
  sub: [(a, b) => a.sub(b), (a, b) => a - b],
  mul: [(a, b) => a.mul(b), (a, b) => a * b],
  div: [(a, b) => a.div(b), (a, b) => (b === 0n ? 0n : a / b)],
  remainder: [(a, b) => a.remainder(b), (a, b) => (b === 0n ? 0n : floorMod(a, b))],
  floorDiv: [(a, b) => a.floorDiv(b), (a, b) => (b === 0n ? 0n : (a - floorMod(a, b)) / b)],
  maximum: [maximum, (a, b) => inOrder(a, b)[1]],
  minimum: [minimum, (a, b) => inOrder(a, b)[0]],
  where: [(a, b) => where(a.lessEqual(b), a, b.neg()), (a, b) => (a <= b ? a : -b)],
  xor: [(a, b) => a.bitwiseXor(b), (a, b) => a ^ b],
  abs: [(a) => a.abs(), (a) => (a < 0n ? -a : a)],
  shift: [
    (a, b) => a.leftShift(b.bitwiseAnd(63)).add(a.rightShift(b)),
    (a, b) => (a << (b & 63n)) + (a >> (b < 0n || b > 63n ? 63n : b)),
  ],
};

describe.each(["wasm", "native"] as const)("whole numbers of 64 bits on %s", (target) => {
  it("are computed as BigInt does, wrapped", () => {
    const names = Object.keys(EXACT);
    const all = compile((a: Tensor, b: Tensor) => names.map((name) => EXACT[name]![0](a, b)), { target });
    const results = all(longs(pairs.map(([a]) => a)), longs(pairs.map(([, b]) => b)));
    names.forEach((name, i) => {
      const expected = pairs.map(([a, b]) => wrapped(EXACT[name]![1](a, b)));
      expect(bigints(results[i]!), name).toEqual(expected);
    });
  });

  it("are added, multiplied, sorted and compared whole", () => {
    const totals = compile((x: Tensor) => [x.sum(), x.prod(), x.max(), x.min(), cumsum(x), sort(x)], { target });
    const [sum, product, most, least, running, sorted] = totals(longs(VALUES)).map(bigints);
    const added = (values: readonly bigint[]): bigint => wrapped(values.reduce((a, b) => a + b, 0n));
    expect([sum, product, most, least]).toEqual([[added(VALUES)], [0n], [GREATEST], [LEAST]]);
    expect(running).toEqual(VALUES.map((_, i) => added(VALUES.slice(0, i + 1))));
    expect(sorted).toEqual([...VALUES].sort((a, b) => (a < b ? -1 : 1)));
    const square = compile((x: Tensor) => x.reshape([4, 4]).matmul(x.reshape([4, 4])), { target })(longs(VALUES));
    const cell = (r: number, c: number): bigint =>
      wrapped([0, 1, 2, 3].reduce((total, k) => total + VALUES[4 * r + k]! * VALUES[4 * k + c]!, 0n));
    expect(bigints(square)).toEqual(VALUES.map((_, i) => cell(i >> 2, i % 4)));
  });

  it("are converted: rounded once to floats, truncated and saturated from them and to i32 and i8", () => {
    const out = compile((x: Tensor) => (["f32", "f64", "i32", "i8", "bool"] as const).map((d) => x.cast(d)), {
      target,
    });
    const [single, double, whole, byte, truth] = out(longs(VALUES));
    // 2⁶² + 2³⁸ + 1 lies above the middle of two f32, which a double would round away
    expect(single!.data().at(-1)).toBe(2 ** 62 + 2 ** 39);
    expect(double!.toArray()).toEqual(VALUES.map(Number));
    const limited = (bits: number) => (x: bigint) => {
      const end = 2 ** (bits - 1);
      return Math.min(Math.max(Number(x), -end), end - 1);
    };
    expect(whole!.toArray()).toEqual(VALUES.map(limited(32)));
    expect(byte!.toArray()).toEqual(VALUES.map(limited(8)));
    expect(truth!.toArray()).toEqual(VALUES.map((x) => x !== 0n));
    const given = [1e30, -1e30, Number.NaN, 2.9, -2.9, 2 ** 60, Number.POSITIVE_INFINITY];
    const expected = [GREATEST, LEAST, 0n, 2n, -2n, 2n ** 60n, GREATEST];
    for (const dtype of ["f32", "f64"] as const) {
      expect(bigints(compile((x: Tensor) => x.cast("i64"), { target })(tensor(given, { dtype })))).toEqual(expected);
    }
  });

  it("keep their bits as constants, donated, and on two threads", () => {
    const large = longs([2n ** 60n + 1n]);
    const step = compile((x: Tensor) => x.add(full([1], 2 ** 53 - 1, "i64").mul(3)).add(large), {
      target,
      donate: [0],
    });
    let x = longs([1n]);
    for (let i = 0; i < 3; i++) x = step(x);
    expect(bigints(x)).toEqual([wrapped(1n + 3n * (3n * (2n ** 53n - 1n) + 2n ** 60n + 1n))]);
    const many = Array.from({ length: 70_000 }, (_, i) => 2n ** 53n + BigInt(i));
    const total = wrapped(many.reduce((a, b) => a + 3n * b, 0n));
    expect(bigints(compile((v: Tensor) => v.mul(3).sum(), { target, threads: 2 })(longs(many)))).toEqual([total]);
  });
});

describe("whole numbers of 64 bits outside of programs", () => {
  it("are printed whole, and are numbers where a number holds them", () => {
    const x = longs([2n ** 53n + 1n, 5n]);
    expect(String(x)).toBe("Tensor(i64[2] [9007199254740993, 5])");
    expect(tensor([[1], [-2]], { dtype: "i64" }).toArray()).toEqual([[1], [-2]]);
    const beyond = "the i64 9007199254740993 is beyond 2^53: a number does not hold it exactly";
    for (const read of [() => x.toArray(), () => x.slice([0]).item(), () => JSON.stringify(x)])
      expect(read).toThrow(beyond);
  });

  it("are refused as numbers beyond 2^53, and bigints beyond 64 bits", () => {
    expect(() => tensor([2 ** 53], { dtype: "i64" })).toThrow("9007199254740992 is not a whole number that fits i64");
    expect(() => longs([1n]).mul(2 ** 60)).toThrow("larger ones are given in a BigInt64Array");
    expect(() => tensor(new BigUint64Array([2n ** 63n]), { dtype: "i64" })).toThrow("does not fit i64");
    expect(() => longs([1n]).add(0.5)).toThrow("0.5 is not a whole number that fits i64");
    expect(() => tensor(new BigInt64Array([2n ** 40n]))).toThrow("fits i32");
  });

  it("are written to files and read into trees that have them", () => {
    const x = longs([2n ** 53n + 1n, -3n]);
    const file = save({ x });
    expect(bigints(load(file, { x: spec([2], "i64") }).x)).toEqual([2n ** 53n + 1n, -3n]);
    expect(() => load(file)).toThrow('read it into a tree that has i64 in its place, such as spec(shape, "i64")');
    expect(load(save({ x: longs([7n]) })).x!.dtype).toBe("i32");
    expect(loadNpy(saveNpy(longs([4n, -5n]))).toArray()).toEqual([4, -5]);
  });

  it("are planned with eight bytes, and refused by name where a device has none", () => {
    expect(plan((x: Tensor) => x.add(1), { donate: [0] })(spec([1000], "i64")).arenaBytes).toBe(8000);
    expect(WGSL_TYPES).not.toContain("i64");
    const options = { fma: true, bytes: 2 ** 30, products: "f32" } as Parameters<typeof cudaDescription>[0];
    expect(cudaDescription(options).storageTypes).not.toContain("i64");
  });
});
