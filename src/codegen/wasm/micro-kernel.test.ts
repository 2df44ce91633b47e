/**
 * @file Tests of the micro-kernel against sequential JavaScript, bit for bit. Memory starts as noise and is compared as
 * a whole afterwards, so that a byte written outside of the tile is found too.
 */
import { setFlagsFromString } from "node:v8";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../kernel/dtype.ts";
import { ModuleBuilder } from "./encoder.ts";
import { probeFeatures } from "./features.ts";
import { addMicroKernel, columnsOf, type Tile, tileOf } from "./micro-kernel.ts";

// Node 20 has relaxed SIMD behind this flag; the engines that do not know the flag have it without.
if (!probeFeatures().relaxedMadd) setFlagsFromString("--experimental-wasm-relaxed-simd");
const { relaxedMadd } = probeFeatures();

type Numbers = Float32Array | Float64Array | Int32Array;
type Kernel = (a: number, b: number, depth: number, c: number, strideBytes: number, accumulate: number) => void;
/** sum + x · y. */
type MultiplyAdd = (sum: number, x: number, y: number) => number;

/** i64 is compared as a part of programs: numbers here are JavaScript's. */
const TYPES = ["f32", "f64", "i32"] as const;
type Tested = (typeof TYPES)[number];
const ARRAYS = { f32: Float32Array, f64: Float64Array, i32: Int32Array };
const PAGE_BYTES = 65_536;

const TWO_ROUNDINGS: Record<Tested, MultiplyAdd> = {
  f32: (sum, x, y) => Math.fround(sum + Math.fround(x * y)),
  f64: (sum, x, y) => sum + x * y,
  i32: (sum, x, y) => (sum + Math.imul(x, y)) | 0,
};

/** Exact for integers: Number(bigint) rounds to nearest, and what f32 is given here is below 2⁵³. */
const ONE_ROUNDING: Record<"f32" | "f64", MultiplyAdd> = {
  f32: (sum, x, y) => Math.fround(Number(BigInt(sum) + BigInt(x) * BigInt(y))),
  f64: (sum, x, y) => Number(BigInt(sum) + BigInt(x) * BigInt(y)),
};

/** Numbers in [0, 1), the same for the same seed. */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Values over a few binades with signs and zeros of both signs, so that roundings and cancellations happen. */
function realValue(dtype: Tested, random: () => number): number {
  if (dtype === "i32") return Math.floor((random() - 0.5) * 2 ** 32);
  const magnitude = random() < 0.05 ? 0 : (1 + random()) * 2 ** Math.floor(random() * 8 - 4);
  return random() < 0.5 ? -magnitude : magnitude;
}

interface Case {
  readonly dtype: Tested;
  readonly fma: boolean;
  readonly tile: Tile;
  readonly depth: number;
  readonly padding: number;
  readonly accumulate: boolean;
  readonly seed: number;
}

interface Outcome {
  readonly actual: Uint8Array<ArrayBuffer>;
  /** The memory that `multiplyAdd` in the order of k asks for. */
  expected(multiplyAdd: MultiplyAdd): Uint8Array<ArrayBuffer>;
}

function kernelOver(memory: WebAssembly.Memory, { dtype, fma, tile }: Case): Kernel {
  const module = new ModuleBuilder();
  module.export("kernel", addMicroKernel(module, dtype, fma, tile));
  const compiled = new WebAssembly.Module(module.finish(1));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports.kernel as Kernel;
}

/** Runs a case on a memory of noise: [gap] c [gap] a [gap] b [gap], gaps of a few elements. */
function run(test: Case, value: (dtype: Tested, random: () => number) => number): Outcome {
  const { dtype, tile, depth, padding, accumulate } = test;
  const random = randomNumbers(test.seed);
  const columns = columnsOf(dtype, tile);
  const stride = columns + padding;
  const memory = new WebAssembly.Memory({ initial: 1 });
  const bytes = new Uint8Array(memory.buffer).map(() => Math.floor(random() * 256));
  new Uint8Array(memory.buffer).set(bytes);
  const numbers: Numbers = new ARRAYS[dtype](memory.buffer);
  const c = 3;
  const a = c + tile.rows * stride + 5;
  const b = a + tile.rows * depth + 1;
  const end = b + columns * depth + 7;
  if (end * bytesOf(dtype) > PAGE_BYTES) throw new Error(`the case needs ${end} elements`);
  for (let i = c; i < end; i++) numbers[i] = value(dtype, random);
  const before = numbers.slice();
  const kernel = kernelOver(memory, test);
  const inBytes = (element: number): number => element * bytesOf(dtype);
  kernel(inBytes(a), inBytes(b), depth, inBytes(c), inBytes(stride), accumulate ? 1 : 0);
  return {
    actual: new Uint8Array(memory.buffer),
    expected: (multiplyAdd) => {
      const after = before.slice();
      for (let r = 0; r < tile.rows; r++) {
        for (let j = 0; j < columns; j++) {
          let sum = 0;
          for (let k = 0; k < depth; k++)
            sum = multiplyAdd(sum, before[a + k * tile.rows + r]!, before[b + k * columns + j]!);
          // c + 1 · sum: one rounding
          after[c + r * stride + j] = accumulate ? multiplyAdd(before[c + r * stride + j]!, sum, 1) : sum;
        }
      }
      return new Uint8Array(after.buffer);
    },
  };
}

/** Compared as buffers: element by element would be slow, and a report of 65,536 bytes unreadable. */
function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0;
}

function cases(dtype: fc.Arbitrary<Tested>, fma: boolean): fc.Arbitrary<Case> {
  const anyTile = fc.record({ rows: fc.integer({ min: 1, max: 6 }), vectors: fc.integer({ min: 1, max: 3 }) });
  return dtype.chain((type) =>
    fc.record({
      dtype: fc.constant(type),
      fma: fc.constant(fma),
      tile: fc.oneof(fc.constant(tileOf(type, fma)), anyTile),
      depth: fc.integer({ min: 0, max: 70 }),
      padding: fc.integer({ min: 0, max: 9 }),
      accumulate: fc.boolean(),
      seed: fc.nat(),
    }),
  );
}

describe("the micro-kernel", () => {
  it("gives the bits of a sequential product for every type, and touches nothing but the tile", () => {
    const property = fc.property(cases(fc.constantFrom(...TYPES), false), (test) => {
      const { actual, expected } = run(test, realValue);
      return sameBytes(actual, expected(TWO_ROUNDINGS[test.dtype]));
    });
    fc.assert(property, { seed: 20, numRuns: 200 });
  });

  it("writes zeros for a depth of 0, or leaves the tile as it is", () => {
    for (const dtype of TYPES) {
      const common = { dtype, fma: false, tile: tileOf(dtype, false), depth: 0, padding: 2, seed: 1 };
      const fresh = run({ ...common, accumulate: false }, () => 7);
      const kept = run({ ...common, accumulate: true }, () => 7);
      const at = (bytes: Uint8Array<ArrayBuffer>): number => new ARRAYS[dtype](bytes.buffer)[3]!;
      expect([at(fresh.actual), at(kept.actual)]).toEqual([0, 7]);
      expect(sameBytes(kept.actual, kept.expected(TWO_ROUNDINGS[dtype]))).toBe(true);
    }
  });

  it("adds blocks of the depth that were each summed from zero", () => {
    const test = { dtype: "f32", fma: false, tile: { rows: 4, vectors: 2 }, depth: 96, padding: 0, seed: 5 } as const;
    const { actual } = run({ ...test, accumulate: false }, realValue);
    const memory = new WebAssembly.Memory({ initial: 1 });
    new Uint8Array(memory.buffer).set(actual);
    const before = new Float32Array(actual.buffer.slice(0));
    const kernel = kernelOver(memory, { ...test, accumulate: true });
    const [c, a] = [3, 3 + 4 * 8 + 5];
    const b = a + 4 * 96 + 1;
    const blocks = [
      [0, 1],
      [1, 40],
      [41, 55],
    ] as const;
    for (const [from, depth] of blocks) {
      kernel((a + from * 4) * 4, (b + from * 8) * 4, depth, c * 4, 8 * 4, from === 0 ? 0 : 1);
    }
    const after = new Float32Array(memory.buffer);
    for (let e = 0; e < 32; e++) {
      const [r, j] = [Math.floor(e / 8), e % 8];
      const sums = blocks.map(([from, depth]) => {
        let sum = 0;
        for (let k = from; k < from + depth; k++) {
          sum = Math.fround(sum + Math.fround(before[a + k * 4 + r]! * before[b + k * 8 + j]!));
        }
        return sum;
      });
      expect(after[c + e]).toBe(sums.slice(1).reduce((total, sum) => Math.fround(total + sum), sums[0]!));
    }
  });

  it.runIf(relaxedMadd)("rounds once for each k with fused multiply-add", () => {
    // Products of 16-bit integers round in f32, products of 40-bit integers in f64; sums of 70 f32 ones stay below 2⁵³.
    const integer = (dtype: Tested, random: () => number): number =>
      Math.round((random() - 0.5) * (dtype === "f32" ? 2 ** 17 : 2 ** 41));
    let distinguished = 0;
    const property = fc.property(cases(fc.constantFrom("f32", "f64"), true), (test) => {
      const dtype = test.dtype === "f32" ? "f32" : "f64";
      const { actual, expected } = run(test, integer);
      if (!sameBytes(actual, expected(TWO_ROUNDINGS[dtype]))) distinguished++;
      return sameBytes(actual, expected(ONE_ROUNDING[dtype]));
    });
    fc.assert(property, { seed: 21, numRuns: 100 });
    expect(distinguished).toBeGreaterThan(50);
  });

  it.runIf(relaxedMadd)("stays near the sequential product with fused multiply-add on real values", () => {
    const property = fc.property(cases(fc.constantFrom("f32", "f64"), true), (test) => {
      const { actual, expected } = run(test, realValue);
      const wanted = new ARRAYS[test.dtype](expected(TWO_ROUNDINGS[test.dtype]).buffer);
      const found = new ARRAYS[test.dtype](actual.buffer);
      // |a|, |b| ≤ 2⁴: sums stay below 71 · 2⁸, and each of 70 steps errs by half a unit in the last place of that.
      const tolerance = 71 ** 2 * 2 ** 8 * (test.dtype === "f32" ? 2 ** -24 : 2 ** -53);
      const tileEnd = 3 + test.tile.rows * (columnsOf(test.dtype, test.tile) + test.padding);
      return wanted.subarray(3, tileEnd).every((x, i) => Math.abs(x - found[3 + i]!) <= tolerance);
    });
    fc.assert(property, { seed: 22, numRuns: 60 });
  });

  it("has tiles whose registers V8 does not have to spill on x64", () => {
    for (const dtype of TYPES) {
      for (const fma of [false, true]) {
        const { rows, vectors } = tileOf(dtype, fma);
        const temporaries = fma && dtype !== "i32" ? 1 : 2;
        expect(rows * vectors + vectors + temporaries).toBeLessThanOrEqual(15);
      }
    }
  });
});
