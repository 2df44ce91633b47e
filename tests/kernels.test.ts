/**
 * @file Generated WebAssembly against the kernel interpreter, bit for bit, and against the reference meaning, for every
 * operation and every one of its samples.
 */
import { describe, expect, test } from "vitest";
import { hostRandom } from "../src/base/random.ts";
import { contractScratch } from "../src/codegen/wasm/contract.ts";
import { emitProgram, pagesOf } from "../src/codegen/wasm/program.ts";
import { Build } from "../src/ir/build.ts";
import type { AnyOp, Sample } from "../src/ir/op.ts";
import { elementsOf, type TensorType, typeText } from "../src/ir/type.ts";
import { bytesOf, type ScalarType } from "../src/kernel/dtype.ts";
import { interpretKernel } from "../src/kernel/interpret.ts";
import type { Kernel } from "../src/kernel/loops.ts";
import { lowerNode } from "../src/lower/lower.ts";
import { allOps } from "../src/ops/all.ts";

type Buffer = Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>;

function bufferOf(dtype: ScalarType, elements: number, memory?: ArrayBuffer, at = 0): Buffer {
  const source = memory ?? new ArrayBuffer(elements * bytesOf(dtype));
  if (dtype === "f32") return new Float32Array(source, at, elements);
  if (dtype === "f64") return new Float64Array(source, at, elements);
  if (dtype === "i32") return new Int32Array(source, at, elements);
  return new Uint8Array(source, at, elements);
}

function runWasm(kernel: Kernel, buffers: readonly Buffer[]): void {
  let top = 64;
  const addresses = kernel.operands.map((o) => {
    const address = top;
    top += Math.ceil((o.elements * bytesOf(o.dtype)) / 64 + 1) * 64;
    return address;
  });
  const { bytes } = emitProgram([{ kernel, addresses }], [], top, { fma: false });
  const memory = new WebAssembly.Memory({ initial: pagesOf(top) });
  new Uint8Array(memory.buffer).fill(0xa5);
  kernel.operands.forEach((o, i) => {
    const source = buffers[i] as Buffer;
    if (o.role === "in")
      (bufferOf(o.dtype, o.elements, memory.buffer as ArrayBuffer, addresses[i]) as Float32Array).set(
        source as Float32Array,
      );
  });
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
  (instance.exports.run as () => void)();
  kernel.operands.forEach((o, i) => {
    if (o.role === "out")
      (buffers[i] as Float32Array).set(
        bufferOf(o.dtype, o.elements, memory.buffer as ArrayBuffer, addresses[i]) as Float32Array,
      );
  });
}

function randomInput(type: TensorType, range: readonly [number, number], next: () => number): Buffer {
  const out = bufferOf(type.dtype, elementsOf(type.shape));
  for (let i = 0; i < out.length; i++) {
    const x = range[0] + (range[1] - range[0]) * next();
    out[i] = type.dtype === "i32" || type.dtype === "bool" ? Math.floor(x) : x;
  }
  return out;
}

function rangeFor(sample: Sample<unknown>, i: number): readonly [number, number] {
  const { range } = sample;
  if (!range) return [-2, 2];
  return (typeof range[0] === "number" ? range : range[i]) as readonly [number, number];
}

function check(op: AnyOp, sample: Sample<unknown>): void {
  const source = hostRandom(7);
  const next = (): number => source.next();
  const b = new Build(op.name);
  const params = sample.inputs.map((t) => b.param(t));
  const outs = b.callAll(op, params, sample.attrs as never);
  const node = b.nodes[0];
  if (!node) throw new Error("no node");
  const { kernel, values } = lowerNode(node, { contractScratch: (d, m, n, k) => contractScratch(d, false, m, n, k) });
  const inputs = sample.inputs.map((t, i) => randomInput(t, rangeFor(sample, i), next));
  const fill = (): Buffer[] =>
    kernel.operands.map((o, i) => {
      const at = params.indexOf(values[i] as never);
      return at >= 0 ? (inputs[at] as Buffer) : bufferOf(o.dtype, o.elements);
    });
  const [wasm, plain] = [fill(), fill()];
  runWasm(kernel, wasm);
  interpretKernel(kernel, plain as never);
  const reference = op.evaluate({
    inputs: inputs.map((x) => Float64Array.from(x as Float32Array)),
    inTypes: sample.inputs,
    outTypes: outs.map((v) => v.type),
    attrs: sample.attrs as never,
    regions: [],
    run: () => [],
  });
  outs.forEach((out, i) => {
    const at = values.indexOf(out);
    expect(wasm[at], "wasm against the interpreter").toEqual(plain[at]);
    const expected = reference[i] as Float64Array;
    const tolerance = { f64: 1e-11, f32: 1e-4, i32: 0, bool: 0 }[out.type.dtype];
    for (let e = 0; e < expected.length; e++) {
      const [got, want] = [(wasm[at] as Buffer)[e] as number, expected[e] as number];
      if (Object.is(got, want) || got === want) continue;
      const error = Math.abs(got - want) / Math.max(1, Math.abs(want));
      if (!(error <= tolerance)) expect(got, `element ${e}`).toBe(want);
    }
  });
}

describe("every operation on WebAssembly equals the interpreter bit for bit and its reference meaning", () => {
  for (const op of allOps) {
    if (op.lower.kind === "region") continue;
    test(op.name, () => {
      for (const sample of op.samples as readonly Sample<unknown>[]) {
        try {
          check(op, sample);
        } catch (error) {
          throw new Error(`${op.name}(${sample.inputs.map(typeText).join(", ")}) ${JSON.stringify(sample.attrs)}`, {
            cause: error,
          });
        }
      }
    });
  }
});
