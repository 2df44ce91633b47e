/** @file The fastest way to share a step among devices that fits their memory: all ways are tried. */
import { type DeviceMemory, memoryOf } from "./device.ts";
import { RECOMPUTES } from "./kept.ts";
import { LAYOUT, type Layout } from "./layout.ts";
import type { ZeroStage } from "./states.ts";
import { type Rates, type StepTime, stepTime } from "./time.ts";
import type { Transformer } from "./transformer.ts";

export interface Found {
  readonly layout: Layout;
  readonly memory: readonly DeviceMemory[];
  /** Of the device with the most. */
  readonly bytes: number;
  readonly time: StepTime;
}

export interface Search {
  readonly devices: number;
  /** Sequences of a step, over all devices. */
  readonly batch: number;
  readonly memoryBytes: number;
  readonly rates: Rates;
  /** What is not to be chosen: tokens, recipe, dropout, and axes that are given. */
  readonly fixed: Partial<Layout>;
  /** Devices of one tensor axis at most: those of one machine. */
  readonly mostTensor: number;
}

const STAGES: readonly ZeroStage[] = [0, 1, 2, 3];
const MICROBATCHES = [1, 2, 4, 8];

const divisors = (n: number): readonly number[] =>
  Array.from({ length: n }, (_, i) => i + 1).filter((d) => n % d === 0);

export const described = (model: Transformer, layout: Layout, rates: Rates): Found => {
  const memory = memoryOf(model, layout);
  const bytes = Math.max(...memory.map((device) => device.bytes));
  return { layout, memory, bytes, time: stepTime(model, layout, rates) };
};

/** All that fit, the fastest first; of equal times the one with less memory. */
export function search(model: Transformer, options: Search): readonly Found[] {
  const found: Found[] = [];
  for (const layout of layouts(model, options)) {
    const one = described(model, layout, options.rates);
    if (one.bytes <= options.memoryBytes) found.push(one);
  }
  return found.sort((a, b) => a.time.totalMs - b.time.totalMs || a.bytes - b.bytes);
}

function* layouts(model: Transformer, { devices, batch, fixed, mostTensor }: Search): Generator<Layout> {
  const context = fixed.context ?? 1;
  const among = <T>(given: T | undefined, all: readonly T[]): readonly T[] => (given === undefined ? all : [given]);
  const tensors = divisors(devices).filter((n) => n <= mostTensor && model.heads % n === 0 && model.inner % n === 0);
  for (const tensor of among(fixed.tensor, tensors)) {
    const pipelines = divisors(devices / tensor / context).filter((p) => p <= model.layers);
    for (const pipeline of among(fixed.pipeline, pipelines)) {
      const data = devices / tensor / pipeline / context;
      if (!Number.isInteger(data) || (fixed.data !== undefined && fixed.data !== data)) continue;
      for (const microbatch of among(fixed.microbatch, MICROBATCHES)) {
        const microbatches = batch / data / microbatch;
        if (!Number.isInteger(microbatches)) continue;
        for (const zero of among(fixed.zero, data * context > 1 ? STAGES : STAGES.slice(0, 1))) {
          for (const recompute of among(fixed.recompute, RECOMPUTES)) {
            const isSequence = fixed.isSequence ?? tensor > 1;
            const sizes = { data, tensor, pipeline, context, microbatch, microbatches, zero, recompute, isSequence };
            yield { ...LAYOUT, ...fixed, ...sizes };
          }
        }
      }
    }
  }
}
