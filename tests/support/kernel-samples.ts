/** @file Every operation on every one of its samples, as kernels with inputs, for comparing targets with the interpreter. */

import { hostRandom } from "../../src/base/random.ts";
import { Build } from "../../src/ir/build.ts";
import type { AnyOp, Sample } from "../../src/ir/op.ts";
import { elementsOf, type TensorType, typeText } from "../../src/ir/type.ts";
import { bytesOf, type DType, elementsIn, elementWriter, isFloat } from "../../src/kernel/dtype.ts";
import type { Kernel } from "../../src/kernel/loops.ts";
import { lowerNode } from "../../src/lower/lower.ts";
import { allOps } from "../../src/ops/all.ts";
import { addDiagonal } from "../../src/ops/reference.ts";
import type { LoweringTarget, TargetDescription } from "../../src/target/description.ts";

export type Buffer =
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>;

export function bufferOf(dtype: DType, elements: number, memory?: ArrayBuffer, at = 0): Buffer {
  return elementsIn(dtype, memory ?? new ArrayBuffer(elements * bytesOf(dtype)), at, elements) as Buffer;
}

/** One sample of an operation. */
export interface KernelSample {
  readonly op: AnyOp;
  readonly sample: Sample<unknown>;
  /** `add(f32[3], f32[3]) {}`. */
  readonly name: string;
  readonly kernel: Kernel;
  readonly inputs: readonly Buffer[];
  readonly outTypes: readonly TensorType[];
  /** Operand numbers of the results. */
  readonly outputs: readonly number[];
  /** Storage for every operand: inputs filled, the rest zero. */
  storage(): readonly Buffer[];
}

function randomInput(type: TensorType, range: readonly [number, number], next: () => number): Buffer {
  const out = bufferOf(type.dtype, elementsOf(type.shape));
  const elementOf = elementWriter(type.dtype);
  for (let i = 0; i < out.length; i++) {
    const x = range[0] + (range[1] - range[0]) * next();
    out[i] = elementOf(isFloat(type.dtype) ? x : Math.floor(x));
  }
  return out;
}

function rangeFor(sample: Sample<unknown>, i: number): readonly [number, number] {
  const { range } = sample;
  if (!range) return [-2, 2];
  return (typeof range[0] === "number" ? range : range[i]) as readonly [number, number];
}

export function kernelSample(op: AnyOp, sample: Sample<unknown>, traits: LoweringTarget): KernelSample {
  const source = hostRandom(7);
  const b = new Build(op.name);
  const params = sample.inputs.map((t) => b.param(t));
  const outs = b.callAll(op, params, sample.attrs as never);
  const [node] = b.nodes;
  if (!node) throw new Error("no node");
  const { kernel, values } = lowerNode(node, traits);
  const inputs = sample.inputs.map((t, i) => randomInput(t, rangeFor(sample, i), () => source.next()));
  for (const [i, data] of inputs.entries()) addDiagonal(sample, i, data);
  return {
    op,
    sample,
    name: `${op.name}(${sample.inputs.map(typeText).join(", ")}) ${JSON.stringify(sample.attrs)}`,
    kernel,
    inputs,
    outTypes: outs.map((v) => v.type),
    outputs: outs.map((v) => values.indexOf(v)),
    storage: () =>
      kernel.operands.map((o, i) => {
        const at = params.indexOf(values[i] as never);
        return at >= 0 ? (inputs[at] as Buffer) : bufferOf(o.dtype, o.elements);
      }),
  };
}

/** Operations with kernels of their own. */
export const kernelOps: readonly AnyOp[] = allOps.filter((op) => {
  return op.lower.kind !== "region" && op.lower.kind !== "control";
});

/** Of a target, those of types that it stores. */
export function kernelSamples(
  op: AnyOp,
  traits: LoweringTarget & Partial<Pick<TargetDescription, "storageTypes">>,
): readonly KernelSample[] {
  const { storageTypes } = traits;
  const all = (op.samples() as readonly Sample<unknown>[]).map((sample) => kernelSample(op, sample, traits));
  if (!storageTypes) return all;
  return all.filter(({ kernel }) => kernel.operands.every(({ dtype }) => storageTypes.includes(dtype)));
}
