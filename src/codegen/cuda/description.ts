/** @file CUDA devices as the compiler sees them (target/description.ts). */
import { COMMON_FUSION, COMMON_ORDER, type TargetDescription } from "../../target/description.ts";
import { memorySpace } from "../../target/space.ts";
import type { CostModel } from "../../target/work.ts";
import type { DeviceClass } from "../block/program.ts";
import { blockWorkspace } from "../block/schedule.ts";
import { CPU_SCALARS } from "../cpu/limits.ts";
import { DEFAULT_TILE } from "../cpu/nests.ts";
import { cpuWork } from "../cpu/work.ts";
import { STORAGE_TYPES } from "../native/elements.ts";

/** Bytes; what the driver aligns allocations to as well. */
const ALIGNMENT = 256;
/** That a block may declare without asking for more. */
const SHARED_BYTES = 48 * 1024;

/** What differs from device to device. */
export interface CudaOptions {
  readonly multiprocessors: number;
  /** Bytes of the device's memory. */
  readonly bytes: number;
  readonly fma: boolean;
}

export const deviceClass = ({ multiprocessors, fma }: CudaOptions): DeviceClass => ({
  threads: 256,
  sharedBytes: SHARED_BYTES,
  lanes: 32,
  multiprocessors,
  fma,
});

/** On an H200, in f32. */
export const CUDA_RATES: CostModel = {
  name: "cuda",
  productRate: 30e12,
  arithmeticRate: 20e12,
  byteRate: 3.6e12,
  cachedByteRate: 5e12,
  cacheBytes: 50 * 2 ** 20,
  linkRate: 50e9,
  callSeconds: 2e-6,
};

export function cudaDescription(options: CudaOptions): TargetDescription {
  const device = deviceClass(options);
  return {
    name: "cuda",
    key: `cuda ${JSON.stringify(options)}`,
    spaces: [memorySpace(ALIGNMENT, { name: "device", hostVisible: false, largestArena: options.bytes })],
    storageTypes: STORAGE_TYPES,
    computeTypes: CPU_SCALARS,
    fusion: COMMON_FUSION,
    arithmetic: {
      ...COMMON_ORDER,
      name: `cuda, ${options.fma ? "fused multiply-add" : "plain"}`,
      fusedMultiplyAdd: options.fma,
    },
    workspace: (nest) => blockWorkspace(nest, device),
    shapeLoops: (kernel) => kernel,
    work: cpuWork(DEFAULT_TILE),
    rates: CUDA_RATES,
  };
}
