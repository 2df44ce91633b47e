/**
 * @file Block programs as compiled C (the emulator of devices of blocks): every operation and every sample against the kernel
 * interpreter, bit for bit.
 */
import { beforeAll, describe, expect, test } from "vitest";
import { interpretBlocks } from "../src/codegen/block/interpret.ts";
import { blockProgram } from "../src/codegen/block/schedule.ts";
import { matmul } from "../src/ops/matmul.ts";
import { LARGE_DEVICE, largeSamples, loweringFor, SMALL_DEVICE } from "./support/blocks.ts";
import { blocksTarget } from "./support/blocks-target.ts";
import { check, type Outcome, runAll } from "./support/kernel-check.ts";
import { type KernelSample, kernelOps, kernelSamples } from "./support/kernel-samples.ts";
import type { TestedTarget } from "./support/targets.ts";

for (const [name, device] of Object.entries({ small: SMALL_DEVICE, large: LARGE_DEVICE })) {
  const target = blocksTarget(device, { quick: true });
  const missing = typeof target === "string" && !process.env.CI ? target : null;

  describe.skipIf(missing)(`compiled block programs of a ${name} device`, () => {
    let samples: readonly KernelSample[] = [];
    let outcome: Outcome = new Map();

    beforeAll(() => {
      if (typeof target === "string") throw new Error(target);
      const { description } = target;
      const own = device === SMALL_DEVICE ? kernelOps.flatMap((op) => kernelSamples(op, description)) : [];
      samples = [...own, ...largeSamples(description)];
      const tested: TestedTarget = { name, missing, target: () => target };
      outcome = runAll(tested, samples);
    });

    const large = new Set(largeSamples(loweringFor(device)).map((s) => s.op));
    for (const op of device === SMALL_DEVICE ? kernelOps : large) {
      test(`equal the interpreter bit for bit and the reference meaning: ${op.name}`, () => {
        for (const sample of samples.filter((s) => s.op === op)) check(sample, outcome.get(sample) ?? []);
      });
    }
  });
}

describe.skipIf(typeof blocksTarget(SMALL_DEVICE) === "string" && !process.env.CI)("fused multiply-add", () => {
  test("has the processor's bits in the interpreter of block programs", () => {
    const device = { ...SMALL_DEVICE, fma: true };
    const target = blocksTarget(device, { quick: true });
    if (typeof target === "string") throw new Error(target);
    const products = kernelSamples(matmul, target.description);
    const outcome = runAll({ name: "fma", missing: null, target: () => target }, products);
    for (const sample of products) {
      const storage = sample.storage();
      interpretBlocks(blockProgram(sample.kernel, device), storage);
      const want = sample.outputs.map((i) => storage[i]);
      expect(outcome.get(sample), sample.name).toEqual(want);
    }
  });
});
