/**
 * @file How long a step will take, without running it: the roofline (Williams, Waterman, Patterson 2009). Every kernel
 * takes as long as its arithmetic or its memory traffic, whichever is longer:
 *
 *   ms = Σ max(flops / rate, bytes / bandwidth) + calls · overhead
 *
 * The constants are what `tidemark bench chain64` reaches on one core of a server (AMD EPYC, 2 vCPUs, Node 20): products
 * of 256 × 256 matrices, and streaming through memory. On another machine the figure is as far off as that machine is,
 * but the ratio of two plans still means something.
 */
import type { Value } from "../ir/graph.ts";
import { byteLength, type TensorType } from "../ir/type.ts";
import type { Plan } from "../plan/problem.ts";

export interface MachineRates {
  /** Floating-point operations a second. */
  readonly flops: number;
  /** Bytes a second, read and written together. */
  readonly bytes: number;
  /** Seconds a kernel call. */
  readonly overhead: number;
}

/** WebAssembly on one thread, with fused multiply-add and without. */
export const WASM_RATES = {
  fused: { flops: 50e9, bytes: 10e9, overhead: 1e-6 },
  plain: { flops: 39e9, bytes: 10e9, overhead: 1e-6 },
} as const satisfies Record<string, MachineRates>;

const typesOf = (values: readonly Value[]): readonly TensorType[] => values.map((value) => value.type);

/** Milliseconds of one run of a plan. */
export function predictedMs(plan: Plan, rates: MachineRates): number {
  let seconds = 0;
  for (const { node, reads, writes, alias } of plan.program.steps) {
    if (alias) continue;
    const [inputs, outputs] = [typesOf(node.inputs), typesOf(node.outputs)];
    const { flops } = node.op.cost(inputs, outputs, node.attrs, node.regions);
    const bytes = [...reads, ...writes].reduce((sum, value) => sum + byteLength(value.type), 0);
    seconds += Math.max(flops / rates.flops, bytes / rates.bytes) + rates.overhead;
  }
  for (const copy of plan.copies) seconds += (2 * (plan.problem.buffers[copy.to]?.bytes ?? 0)) / rates.bytes;
  return seconds * 1000;
}
