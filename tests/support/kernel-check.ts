/**
 * @file Kernels of samples on a target, compared with the kernel interpreter bit for bit and with the reference meaning. All
 * kernels of a target are one program, since a C compiler takes a moment to start.
 */
import { expect } from "vitest";
import { at as item } from "../../src/base/invariant.ts";
import type { PlacedKernel } from "../../src/codegen/placed.ts";
import { typeText } from "../../src/ir/type.ts";
import { bytesOf, type DType, elementReader, isBig, typeOf } from "../../src/kernel/dtype.ts";
import { interpretKernel } from "../../src/kernel/interpret.ts";
import { hostMemory } from "./host-memory.ts";
import { type Buffer, bufferOf, type KernelSample } from "./kernel-samples.ts";
import { loadSteps, type TestedTarget } from "./targets.ts";

/** Results of every sample. */
export type Outcome = ReadonlyMap<KernelSample, readonly Buffer[]>;

export function runAll(tested: TestedTarget, samples: readonly KernelSample[]): Outcome {
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

/** How far results may be from the reference meaning, relative to those above 1. */
const TOLERANCE: Readonly<Record<DType, number>> = {
  f64: 1e-11,
  f32: 1e-4,
  bf16: 2 ** -6,
  f16: 2 ** -9,
  i32: 0,
  i64: 0,
  i8: 0,
  u8: 0,
  bool: 0,
};

const numbersOf = (dtype: DType, elements: Buffer): Float64Array =>
  // the nearest numbers to those of 64 bits
  Float64Array.from(elements as Float32Array, isBig(typeOf(dtype).compute) ? Number : elementReader(dtype));

export function check(
  { op, sample, kernel, inputs, outTypes, outputs, storage }: KernelSample,
  got: readonly Buffer[],
): void {
  const plain = storage();
  interpretKernel(kernel, plain as never);
  const reference = op.evaluate({
    inputs: inputs.map((x, i) => numbersOf(item(sample.inputs, i).dtype, x)),
    inTypes: sample.inputs,
    outTypes,
    attrs: sample.attrs as never,
    regions: [],
    run: () => [],
  });
  outTypes.forEach((type, i) => {
    const result = got[i] as Buffer;
    expect(result, `${op.name}(${sample.inputs.map(typeText).join(", ")}) against the interpreter`).toEqual(
      plain[outputs[i] as number],
    );
    const expected = reference[i] as Float64Array;
    const tolerance = TOLERANCE[type.dtype];
    const numbers = numbersOf(type.dtype, result);
    for (let e = 0; e < expected.length; e++) {
      const [is, want] = [numbers[e] as number, expected[e] as number];
      if (Object.is(is, want) || is === want) continue;
      const error = Math.abs(is - want) / Math.max(1, Math.abs(want));
      if (!(error <= tolerance))
        expect(is, `${op.name}(${sample.inputs.map(typeText).join(", ")}) element ${e}`).toBe(want);
    }
  });
}
