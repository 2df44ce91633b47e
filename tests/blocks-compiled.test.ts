/**
 * @file Block programs as compiled C (the emulator of devices of blocks): every operation and every sample against the kernel
 * interpreter, bit for bit.
 */
import { beforeAll, describe, test } from "vitest";
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
