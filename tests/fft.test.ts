/**
 * @file Fourier transforms of lengths that are cut in different ways: one stage and several, factors from one table or two, great primes,
 * lines one by one, in strips of columns and all at once. Bits on every target, accuracy, memory, and what transforms are used for.
 */
import { describe, expect, test } from "vitest";
import * as tm from "../src/api/index.ts";
import { type Complex, type Tensor, tensor } from "../src/api/index.ts";
import { hostRandom } from "../src/base/random.ts";
import { interpretBlocks } from "../src/codegen/block/interpret.ts";
import { blockProgram } from "../src/codegen/block/schedule.ts";
import { tensorType } from "../src/ir/type.ts";
import { interpretKernel } from "../src/kernel/interpret.ts";
import { rootNumber } from "../src/ops/fft/roots.ts";
import { fft, irfft, rfft } from "../src/ops/fft.ts";
import type { LoweringTarget } from "../src/target/description.ts";
import { traceFunction } from "../src/trace/function.ts";
import { loweringFor, SMALL_DEVICE } from "./support/blocks.ts";
import { check, runAll } from "./support/kernel-check.ts";
import { type KernelSample, kernelSample } from "./support/kernel-samples.ts";
import { plainTargets } from "./support/targets.ts";

type Form = "fft" | "rfft" | "irfft";
type Case = readonly [form: Form, shape: readonly number[], axis: number];

/** Three stages, lines of threads, strips of columns, great primes alone and in lines, odd real lengths. */
const CASES: readonly Case[] = [
  ["fft", [512], 0],
  ["fft", [13, 48], 1],
  ["fft", [2, 20, 128], 1],
  ["fft", [13, 19], 1],
  ["fft", [243], 0],
  ["rfft", [13, 64], 1],
  ["rfft", [3, 34], 1],
  ["rfft", [45, 2], 0],
  ["irfft", [13, 64], 1],
  ["irfft", [3, 34], 1],
  ["irfft", [45, 2], 0],
];

function sampleOf([form, shape, axis]: Case, dtype: "f32" | "f64", lowering: LoweringTarget): KernelSample {
  const n = shape[axis]!;
  const type = tensorType(dtype, form === "irfft" ? shape.with(axis, Math.floor(n / 2) + 1) : shape);
  const scale = 1 / Math.sqrt(n);
  if (form === "fft")
    return kernelSample(fft, { inputs: [type, type], attrs: { axis, inverse: n % 2 === 0, scale } }, lowering);
  if (form === "rfft") return kernelSample(rfft, { inputs: [type], attrs: { axis, scale, ends: 0.5 } }, lowering);
  return kernelSample(irfft, { inputs: [type, type], attrs: { axis, n, scale, ends: 2 } }, lowering);
}

/** Native code on one thread is that on several. */
for (const tested of plainTargets.filter(({ name }) => name !== "native")) {
  test.skipIf(tested.missing !== null)(`long transforms have the bits of the interpreter on ${tested.name}`, () => {
    const { description } = tested.target();
    const samples = CASES.map((c, i) => sampleOf(c, i % 2 === 0 ? "f32" : "f64", description));
    const outcome = runAll(tested, samples);
    for (const sample of samples) check(sample, outcome.get(sample)!);
  });
}

test("long transforms have the bits of the interpreter in block programs", () => {
  for (const c of CASES.slice(0, 5)) {
    const sample = sampleOf(c, "f32", loweringFor(SMALL_DEVICE));
    const buffers = sample.storage();
    interpretBlocks(blockProgram(sample.kernel, SMALL_DEVICE), buffers);
    check(
      sample,
      sample.outputs.map((i) => buffers[i]!),
    );
  }
});

test("bits do not depend on how many lines are transformed together", () => {
  const single: LoweringTarget = { ...loweringFor(SMALL_DEVICE), threads: 1 };
  for (const c of CASES) {
    const [together, apart] = [loweringFor(SMALL_DEVICE), single].map((lowering) => {
      const sample = sampleOf(c, "f32", lowering);
      const buffers = sample.storage();
      interpretKernel(sample.kernel, buffers as never);
      return sample.outputs.map((i) => buffers[i]!);
    });
    expect(apart).toEqual(together);
  }
});

// ---- accuracy -------------------------------------------------------------------------------------------------------

function uniform(n: number, seed: number, isSingle: boolean): Float64Array {
  const random = hostRandom(seed);
  return Float64Array.from({ length: n }, () => {
    const x = 2 * random.next() - 1;
    return isSingle ? Math.fround(x) : x;
  });
}

/** The root mean square of what is off at some elements, against that of all results. */
function errorOf(n: number, dtype: "f32" | "f64"): number {
  const parts = [uniform(n, 1, dtype === "f32"), uniform(n, 2, dtype === "f32")] as const;
  const [re, im] = parts.map((data) => tensor(data, { dtype })) as [Tensor, Tensor];
  const y = tm.compile((x: Complex) => tm.fft(x))({ re, im });
  const [yr, yi] = [y.re.data(), y.im.data()];
  const total = parts.reduce((sum, data) => sum + data.reduce((s, v) => s + v * v, 0), 0);
  const places = [0, 1, n >> 1, n - 1, ...Array.from({ length: 12 }, (_, i) => (i * 2654435761) % n)];
  let off = 0;
  for (const j of places) {
    // with what each sum loses added up apart
    const sums = [0, 0, 0, 0];
    const add = (at: number, term: number): void => {
      const next = sums[at]! + term;
      sums[at + 1]! += sums[at]! - (next - (next - sums[at]!)) + (term - (next - sums[at]!));
      sums[at] = next;
    };
    for (let k = 0; k < n; k++) {
      const { cos, sin } = rootNumber((j * k) % n, n);
      add(0, parts[0][k]! * cos);
      add(0, parts[1][k]! * sin);
      add(2, parts[1][k]! * cos);
      add(2, -parts[0][k]! * sin);
    }
    off += (Number(yr[j]) - sums[0]! - sums[1]!) ** 2 + (Number(yi[j]) - sums[2]! - sums[3]!) ** 2;
  }
  return Math.sqrt(off / places.length / total);
}

/** In units of half a last place: the most that is seen is 0.9 of these. */
test("errors grow with the logarithm of the length", () => {
  const bounds = (n: number): number => 1 + 0.2 * Math.log2(n);
  const primes = (n: number): number => 3 + 0.25 * Math.log2(n);
  for (const [lengths, bound] of [
    [[2, 3, 7, 16, 64, 360, 1024, 4096, 20480, 32768], bounds],
    [[17, 101, 1009, 4913, 10007], primes],
  ] as const) {
    for (const n of lengths) {
      expect(errorOf(n, "f32") / 2 ** -24, `f32, ${n}`).toBeLessThan(bound(n));
      expect(errorOf(n, "f64") / 2 ** -53, `f64, ${n}`).toBeLessThan(bound(n));
    }
  }
});

test("roots of unity are right to the last bit or two", () => {
  for (const n of [1, 2, 5, 8, 13, 16, 1000]) {
    for (let t = 0; t < n; t++) {
      const { cos, sin } = rootNumber(t, n);
      expect(Math.hypot(cos - Math.cos((2 * Math.PI * t) / n), sin - Math.sin((2 * Math.PI * t) / n))).toBeLessThan(
        2e-15,
      );
    }
  }
  expect([rootNumber(2, 8), rootNumber(12, 16)]).toEqual([
    { cos: -0, sin: 1 },
    { cos: 0, sin: -1 },
  ]);
});

// ---- memory ---------------------------------------------------------------------------------------------------------

describe("memory", () => {
  const pair = (...shape: number[]): Complex => ({ re: tm.spec(shape), im: tm.spec(shape) });

  test("a backward pass reads nothing that the transform did", () => {
    const x = tensor([3, 1, 2, 5]);
    const losses: readonly ((v: Tensor) => Tensor)[] = [
      (v) => tm.fft(v).im.sum(),
      (v) => tm.rfft(v).im.sum(),
      (v) => tm.irfft({ re: v, im: v }).sum(),
    ];
    for (const loss of losses) {
      const { graph } = traceFunction(tm.grad(loss), [x]);
      const forward = graph.nodes.filter((node) => node.phase !== "backward").flatMap((node) => node.outputs);
      const backward = graph.nodes.filter((node) => node.phase === "backward");
      const read = backward.flatMap((node) =>
        node.inputs.filter((v) => graph.params.includes(v) || forward.includes(v)),
      );
      expect(backward.length).toBeGreaterThan(0);
      expect(read.filter((v) => v.type.shape.length > 0 && graph.params.includes(v))).toEqual([]);
    }
  });

  test("lines need workspace for one of them, a real transform half of a complex one", () => {
    const lines = tm.plan((x: Complex) => tm.fft(x), { target: "wasm" })(pair(1000, 1024));
    expect(lines.arenaBytes).toBeLessThan(1.01 * 4 * 4 * 1024000);
    const whole = tm.plan((x: Complex) => tm.fft(x), { target: "wasm" })(pair(2 ** 18));
    expect(whole.arenaBytes).toBeLessThan(1.05 * 6 * 4 * 2 ** 18);
    const real = tm.plan((x: Tensor) => tm.rfft(x), { target: "wasm" })(tm.spec([2 ** 18]));
    expect(real.arenaBytes).toBeLessThan(1.05 * 3 * 4 * 2 ** 18);
  });
});

// ---- use ------------------------------------------------------------------------------------------------------------

const data = (x: Tensor): number[] => Array.from(x.data(), Number);

test("a product of transforms is a circular convolution, and so are its gradients", () => {
  const n = 12;
  const [x, w] = [1, 2].map((seed) => tensor(uniform(n, seed, false), { dtype: "f64" })) as [Tensor, Tensor];
  const byTransforms = (a: Tensor, b: Tensor): Tensor => tm.irfft(tm.complexMul(tm.rfft(a), tm.rfft(b)), { n });
  const direct = (a: Tensor, b: Tensor): Tensor =>
    tm.stack(Array.from({ length: n }, (_, j) => a.mul(tm.roll(b.flip(0), j + 1, 0)).sum()));
  const loss = (f: typeof direct) => (a: Tensor, b: Tensor) => f(a, b).mul(tm.arange(n, "f64").cos()).sum();
  const both = [byTransforms, direct].map((f) => {
    const gradients = tm.grad(loss(f), { argnums: [0, 1] })(x, w) as unknown as Tensor[];
    return [f(x, w), ...gradients].flatMap(data);
  });
  both[0]!.forEach((v, i) => {
    expect(v).toBeCloseTo(both[1]![i]!, 11);
  });
});

test("a unitary transform keeps lengths, and there and back is where it was", () => {
  for (const n of [1, 6, 23, 64]) {
    const x = {
      re: tensor(uniform(n, 1, false), { dtype: "f64" }),
      im: tensor(uniform(n, 2, false), { dtype: "f64" }),
    };
    const size = ({ re, im }: Complex): number => Number(re.square().sum().add(im.square().sum()).item());
    const y = tm.fft(x, { norm: "ortho" });
    expect(size(y)).toBeCloseTo(size(x), 12);
    data(tm.ifft(y, { norm: "ortho" }).im).forEach((v, i) => {
      expect(v).toBeCloseTo(data(x.im)[i]!, 13);
    });
  }
});

test("in forward mode the tangent is the transform of the tangent", () => {
  const [x, t] = [1, 2].map((seed) => tensor(uniform(12, seed, false), { dtype: "f64" })) as [Tensor, Tensor];
  const [, tangent] = tm.jvp((v: Tensor) => tm.rfft(v).im, [x], [t]);
  expect(data(tangent)).toEqual(data(tm.rfft(t).im));
});

test("spectral derivatives are exact for few waves", () => {
  const n = 32;
  const x = tm.arange(n, "f64").mul((2 * Math.PI) / n);
  const derivative = (u: Tensor): Tensor => {
    const { re, im } = tm.rfft(u);
    const k = tm.rfftfreq(n, 1 / n, "f64");
    return tm.irfft({ re: im.mul(k).neg(), im: re.mul(k) });
  };
  const found = derivative(x.mul(3).sin());
  data(x).forEach((v, i) => {
    expect(data(found)[i]).toBeCloseTo(3 * Math.cos(3 * v), 11);
  });
});

// ---- errors ---------------------------------------------------------------------------------------------------------

test("what cannot be transformed is refused with the numbers", () => {
  const x = tm.ones([2, 3]);
  const refused: readonly (readonly [() => unknown, string])[] = [
    [() => tm.fft(tm.zeros([2, 0])), "fft: a transform of 0 elements along axis 1 of f32[2,0]"],
    [() => tm.irfft(tm.zeros([2, 1])), "irfft: a transform of 0 elements along axis 1"],
    [() => tm.fft(x, { n: 2.5 }), "fft: a transform of 2.5 elements"],
    [() => tm.fft(x, { axis: 2 }), "fft: axis 2"],
    [() => tm.fft(x, { norm: "unit" as never }), "fft: norm"],
    [() => tm.fft({ re: x, im: tm.ones([3]) }), "fft: re is f32[2,3], im is f32[3]"],
    [() => tm.fft({ re: x } as never), "fft: takes a tensor or a pair { re, im }"],
    [() => tm.rfft(tm.ones([3], { dtype: "i32" })), "rfft: takes"],
    [() => tm.fft2(x, { axes: [0, 0] }), "fft2: axes [0,0]"],
    [() => tm.fftn(x, { s: [2], axes: [0, 1] }), "fftn: s has 1 numbers for 2 axes"],
    [() => tm.fft2(tm.ones([3])), "fft2: axis -2"],
    [() => tm.fftfreq(0), "fftfreq: n is 0"],
    [() => tm.rfftfreq(4, 0), "rfftfreq: spacing 0"],
  ];
  for (const [call, message] of refused) expect(call).toThrow(message);
  expect(tm.fft(tm.zeros([0, 3])).re.shape).toEqual([0, 3]);
});
