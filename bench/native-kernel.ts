/** @file One operation on the target `native`, loaded by itself and filled with random numbers, for measuring it. */
import { invariant } from "../src/base/invariant.ts";
import { hostRandom } from "../src/base/random.ts";
import type { PlacedKernel, PlacedProgram } from "../src/codegen/placed.ts";
import { Build } from "../src/ir/build.ts";
import type { OpDef } from "../src/ir/op.ts";
import type { TensorType } from "../src/ir/type.ts";
import { bytesOf } from "../src/kernel/dtype.ts";
import { lowerNode } from "../src/lower/lower.ts";
import { type NativeRequest, nativeTarget } from "../src/node/native/target.ts";
import type { Machine } from "../src/runtime/device.ts";
import { HostMemory } from "../src/runtime/host-memory.ts";

export interface LoadedKernel {
  readonly machine: Machine;
  /** Of the inputs, then of the result. */
  readonly addresses: readonly number[];
  readonly workspaceBytes: number;
}

/** `count` runs of an operation, one after the other, as one program. */
export function loadKernel<A>(
  op: OpDef<A>,
  inputs: readonly TensorType[],
  attrs: A,
  count: number,
  request: NativeRequest = {},
): LoadedKernel {
  const target = nativeTarget(request);
  if (typeof target === "string") throw new Error(target);
  const b = new Build("kernel");
  b.callAll(
    op,
    inputs.map((type) => b.param(type)),
    attrs,
  );
  const [node] = b.nodes;
  invariant(node, () => "no operation");
  const { kernel } = lowerNode(node, target.description);
  let [top, workspaceBytes] = [0, 0];
  const addresses = kernel.operands.map(({ elements, dtype, role }) => {
    const at = top;
    top += Math.ceil((elements * bytesOf(dtype)) / 64 + 1) * 64;
    if (role === "scratch") workspaceBytes += elements * bytesOf(dtype);
    return at;
  });
  const kernels = new Array<PlacedKernel>(count).fill({ kernel, addresses });
  const placed = { kernels, copies: [], base: 0, plan: { height: top } } as unknown as PlacedProgram;
  const machine = target.load(placed, { stepwise: false });
  const random = hostRandom(1);
  inputs.forEach((type, i) => {
    const { elements } = kernel.operands[i] ?? { elements: 0 };
    const data = floats(machine, type.dtype === "f64" ? "f64" : "f32", addresses[i] ?? 0, elements);
    for (let e = 0; e < data.length; e++) data[e] = random.next() - 0.5;
  });
  return { machine, addresses, workspaceBytes };
}

/** Elements of a machine's arena. */
export function floats(
  { memory }: Machine,
  dtype: "f32" | "f64",
  at: number,
  elements: number,
): Float32Array<ArrayBuffer> | Float64Array<ArrayBuffer> {
  invariant(memory instanceof HostMemory, () => "memory of the process");
  const { buffer, start } = memory;
  return dtype === "f32"
    ? new Float32Array(buffer, start + at, elements)
    : new Float64Array(buffer, start + at, elements);
}

/** Seconds of the process's CPU time, which other processes do not affect. One thread is measured. */
export function seconds(run: () => void): number {
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}
