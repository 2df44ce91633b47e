/** @file WebGPU adapters as the compiler sees them (target/description.ts). */
import type { ScalarType } from "../../kernel/dtype.ts";
import { COMMON_FUSION, COMMON_ORDER, rebuildable, type TargetDescription } from "../../target/description.ts";
import { memorySpace } from "../../target/space.ts";
import type { CostModel } from "../../target/work.ts";
import type { DeviceClass } from "../block/program.ts";
import { blockWorkspace } from "../block/schedule.ts";
import { DEFAULT_TILE } from "../cpu/nests.ts";
import { cpuWork } from "../cpu/work.ts";
import { type BindingLimits, PART_ALIGNMENT } from "./bindings.ts";
import { WGSL_TYPES } from "./elements.ts";

/** What differs from adapter to adapter. */
export interface WebgpuOptions extends BindingLimits {
  /** Bytes of the largest buffer. */
  readonly bufferBytes: number;
  /** Bytes of memory that a block of threads shares. */
  readonly sharedBytes: number;
  /** `fma` rounds once. */
  readonly fma: boolean;
  /** Quotients and roots are computed from their bits, since those of the adapter are not the nearest numbers. */
  readonly exactly: boolean;
  /** Kernels run on the processor: there is no GPU. */
  readonly isSoftware: boolean;
  /** Whose arithmetic it is, where it differs from that of other targets; null where it does not. */
  readonly rounding: string | null;
}

const COMPUTED: readonly ScalarType[] = ["f32", "i32", "bool"];
/** Every adapter has blocks of so many threads. */
const THREADS = 256;
/** Adapters do not tell. Plans should not differ between them, and too many blocks do no harm. */
const MULTIPROCESSORS = 64;

export const deviceClass = ({ sharedBytes, fma }: Pick<WebgpuOptions, "sharedBytes" | "fma">): DeviceClass => ({
  threads: THREADS,
  sharedBytes,
  lanes: 32,
  multiprocessors: MULTIPROCESSORS,
  fma,
});

/** Of a graphics card of the middle range. */
export const WEBGPU_RATES: CostModel = {
  name: "webgpu",
  productRate: 4e12,
  arithmeticRate: 3e12,
  byteRate: 300e9,
  cachedByteRate: 1e12,
  cacheBytes: 4 * 2 ** 20,
  linkRate: 8e9,
  callSeconds: 8e-6,
};

/** Of a driver without a GPU, on a few cores: slower than WebAssembly, so that nothing is run on it by itself. */
const SOFTWARE_RATES: CostModel = {
  name: "webgpu-software",
  productRate: 1e9,
  arithmeticRate: 5e8,
  byteRate: 2e9,
  cachedByteRate: 2e9,
  cacheBytes: 2 ** 20,
  linkRate: 2e9,
  callSeconds: 2e-5,
};

export function webgpuDescription(options: WebgpuOptions): TargetDescription {
  const device = deviceClass(options);
  const profile = options.fma ? "fused multiply-add" : "plain";
  const { bufferBytes, bindingBytes, storageBuffers } = options;
  // a kernel reads one value and writes another, each in as many pieces as it needs
  const largestAllocation = bindingBytes * Math.max(1, Math.floor(storageBuffers / 2));
  const limits = { largestArena: bufferBytes, largestAllocation };
  return rebuildable("webgpu", options, {
    spaces: [memorySpace(PART_ALIGNMENT, { name: "device", hostVisible: false, ...limits })],
    storageTypes: WGSL_TYPES,
    computeTypes: COMPUTED,
    fusion: COMMON_FUSION,
    arithmetic: {
      ...COMMON_ORDER,
      name: `webgpu, ${profile}${options.rounding === null ? "" : `, as ${options.rounding} rounds`}`,
      fusedMultiplyAdd: options.fma,
    },
    workspace: (nest) => blockWorkspace(nest, device),
    shapeLoops: (kernel) => kernel,
    work: cpuWork(DEFAULT_TILE),
    rates: options.isSoftware ? SOFTWARE_RATES : WEBGPU_RATES,
  });
}
