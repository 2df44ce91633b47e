/**
 * @file Generated code against the kernel interpreter, bit for bit, and against the reference meaning, for every operation
 * and every one of its samples, on every target. All kernels of a target are one program, since a C compiler takes a
 * moment to start.
 */

import { beforeAll, describe, expect, test } from "vitest";
import type { PlacedKernel } from "../src/codegen/placed.ts";
import { bytesOf } from "../src/kernel/dtype.ts";
import { interpretKernel } from "../src/kernel/interpret.ts";
import { hostMemory } from "./support/host-memory.ts";
import { type Buffer, bufferOf, type KernelSample, kernelOps, kernelSamples } from "./support/kernel-samples.ts";
import { loadSteps, narrowTargets, plainTargets, type TestedTarget } from "./support/targets.ts";

/** Results of every sample, by name. */
type Outcome = ReadonlyMap<KernelSample, readonly Buffer[]>;

function runAll(tested: TestedTarget, samples: readonly KernelSample[]): Outcome {
  let top = 64;
  const steps = samples.map(({ kernel }): PlacedKernel => {
    const addresses = kernel.operands.map((o) => {
      const address = top;
      top += Math.ceil((o.elements * bytesOf(o.dtype)) / 64 + 1) * 64;
      return address;
    });
    return { kernel, addresses };
  });
  const machine = loadSteps(tested.target(), steps, top);
  const { buffer, start } = hostMemory(machine.memory);
  new Uint8Array(buffer, start, top).fill(0xa5);
  const operand = (sample: number, i: number): Buffer => {
    const { kernel, addresses } = steps[sample] as PlacedKernel;
    const o = kernel.operands[i] as (typeof kernel.operands)[number];
    return bufferOf(o.dtype, o.elements, buffer, start + (addresses[i] as number));
  };
  samples.forEach(({ kernel, storage }, s) => {
    storage().forEach((source, i) => {
      if (kernel.operands[i]?.role === "in") operand(s, i).set(source as Float32Array);
    });
  });
  machine.run();
  return new Map(samples.map((sample, s) => [sample, sample.outputs.map((i) => operand(s, i))]));
}

function check({ op, sample, kernel, inputs, outTypes, outputs, storage }: KernelSample, got: readonly Buffer[]): void {
  const plain = storage();
  interpretKernel(kernel, plain as never);
  const reference = op.evaluate({
    inputs: inputs.map((x) => Float64Array.from(x as Float32Array)),
    inTypes: sample.inputs,
    outTypes,
    attrs: sample.attrs as never,
    regions: [],
    run: () => [],
  });
  outTypes.forEach((type, i) => {
    const result = got[i] as Buffer;
    expect(result, "against the interpreter").toEqual(plain[outputs[i] as number]);
    const expected = reference[i] as Float64Array;
    const tolerance = { f64: 1e-11, f32: 1e-4, i32: 0, bool: 0 }[type.dtype];
    for (let e = 0; e < expected.length; e++) {
      const [is, want] = [result[e] as number, expected[e] as number];
      if (Object.is(is, want) || is === want) continue;
      const error = Math.abs(is - want) / Math.max(1, Math.abs(want));
      if (!(error <= tolerance)) expect(is, `element ${e}`).toBe(want);
    }
  });
}

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
