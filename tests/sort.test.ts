/**
 * @file The order of elements on every target, for rows that are sorted in different ways: short and long, with ties in the first
 * word of keys or in all of them, with NaN, infinities, zeros of both signs, in order already or the other way round.
 */
import { expect, test } from "vitest";
import { grad, quantile, sort, type Tensor, tensor, topK } from "../src/api/index.ts";
import { hostRandom } from "../src/base/random.ts";
import { interpretBlocks } from "../src/codegen/block/interpret.ts";
import { blockProgram } from "../src/codegen/block/schedule.ts";
import { tensorType } from "../src/ir/type.ts";
import type { DType } from "../src/kernel/dtype.ts";
import { argsort } from "../src/ops/sort.ts";
import type { LoweringTarget } from "../src/target/description.ts";
import { traceFunction } from "../src/trace/function.ts";
import { loweringFor, SMALL_DEVICE } from "./support/blocks.ts";
import { check, runAll } from "./support/kernel-check.ts";
import { type KernelSample, kernelSample } from "./support/kernel-samples.ts";
import { plainTargets } from "./support/targets.ts";

type Draw = (i: number, random: () => number) => number;

const SPECIAL = [Number.NaN, -Number.NaN, 0, -0, Infinity, -Infinity, 1e-40, -1e-40, 1, -1, 5e-324, 1.5];

const FLOATS: Readonly<Record<string, Draw>> = {
  normal: (_, random) => (random() - 0.5) * 10 ** (8 * random()),
  special: (_, random) => SPECIAL[Math.floor(random() * SPECIAL.length)]!,
  "few values": (_, random) => Math.floor(5 * random()),
  "close to one": (_, random) => 1 + Math.floor(random() * 2 ** 20) * 2 ** -50,
  descending: (i) => -i,
};

const DRAWS: Readonly<Record<string, Readonly<Record<string, Draw>>>> = {
  f32: FLOATS,
  f64: FLOATS,
  i32: { normal: (_, random) => (random() * 2 ** 32) | 0, "few values": (_, random) => Math.floor(5 * random()) },
};

type Size = readonly [rows: number, length: number, wanted: number];

/** All, few of many, many. */
const SIZES: readonly Size[] = [
  [3, 40, 40],
  [2, 700, 700],
  [3, 700, 5],
  [2, 700, 130],
  [2, 700, 400],
];

const BLOCK_SIZES: readonly Size[] = [
  [2, 150, 150],
  [1, 150, 5],
  [1, 150, 90],
];

function samplesFor(lowering: LoweringTarget, sizes: readonly Size[]): readonly KernelSample[] {
  return Object.entries(DRAWS).flatMap(([dtype, draws]) =>
    Object.values(draws).flatMap((draw, d) =>
      sizes.map(([rows, length, count], s) => {
        const inputs = [tensorType(dtype as DType, [rows, length])];
        const attrs = { axis: 1, descending: (s + d) % 2 === 0, count };
        const sample = kernelSample(argsort, { inputs, attrs }, lowering);
        const random = hostRandom(s);
        sample.inputs[0]!.forEach((_, i, all) => {
          all[i] = draw(i, () => random.next());
        });
        return sample;
      }),
    ),
  );
}

/** Native code on one thread is that on several. */
for (const tested of plainTargets.filter(({ name }) => name !== "native")) {
  test.skipIf(tested.missing !== null)(`rows are in order on ${tested.name}`, () => {
    const samples = samplesFor(tested.target().description, SIZES);
    const outcome = runAll(tested, samples);
    for (const sample of samples) check(sample, outcome.get(sample)!);
  });
}

test("rows are in order in block programs", () => {
  for (const sample of samplesFor(loweringFor(SMALL_DEVICE), BLOCK_SIZES)) {
    const buffers = sample.storage();
    interpretBlocks(blockProgram(sample.kernel, SMALL_DEVICE), buffers);
    check(
      sample,
      sample.outputs.map((i) => buffers[i]!),
    );
  }
});

test("a backward pass reads positions and not what was sorted", () => {
  const x = tensor([3, 1, 2]);
  for (const fn of [(v: Tensor) => sort(v), (v: Tensor) => topK(v, 2).values, (v: Tensor) => quantile(v, 0.3)]) {
    const { graph } = traceFunction(
      grad((v: Tensor) => fn(v).sum()),
      [x],
    );
    const backward = graph.nodes.filter((node) => node.phase === "backward");
    expect(backward.length).toBeGreaterThan(0);
    expect(backward.filter((node) => node.inputs.some((input) => graph.params.includes(input)))).toEqual([]);
  }
});
