/**
 * @file Generated code against the kernel interpreter, bit for bit, and against the reference meaning, for every operation
 * and every one of its samples, on every target.
 */

import { beforeAll, describe, expect, test } from "vitest";
import { check, type Outcome, runAll } from "./support/kernel-check.ts";
import { type KernelSample, kernelOps, kernelSamples } from "./support/kernel-samples.ts";
import { narrowTargets, plainTargets } from "./support/targets.ts";

const sizeOf = ({ inputs }: KernelSample): number => inputs.reduce((n, input) => n + input.length, 0);
const largest = (samples: readonly KernelSample[]): KernelSample =>
  samples.reduce((a, b) => (sizeOf(b) > sizeOf(a) ? b : a));

/** Variants are tried on the largest sample of each operation. */
const everySample: ReadonlySet<string> = new Set(["wasm", "native"]);

for (const tested of [...plainTargets, ...narrowTargets]) {
  describe.skipIf(tested.missing)(`every operation on ${tested.name}`, () => {
    const samples = new Map<string, readonly KernelSample[]>();
    let outcome: Outcome = new Map();

    beforeAll(() => {
      const { description } = tested.target();
      for (const op of kernelOps) {
        const all = kernelSamples(op, description);
        samples.set(op.name, everySample.has(tested.name) ? all : [largest(all)]);
      }
      outcome = runAll(tested, [...samples.values()].flat());
    });

    for (const op of kernelOps) {
      test(`equals the interpreter bit for bit and its reference meaning: ${op.name}`, () => {
        const own = samples.get(op.name) ?? [];
        expect(own.length).toBeGreaterThan(0);
        for (const sample of own) {
          try {
            check(sample, outcome.get(sample) ?? []);
          } catch (error) {
            throw new Error(sample.name, { cause: error });
          }
        }
      });
    }
  });
}
