/** @file CUDA devices as the compiler sees them (target/description.ts). */
import { isBig, typeOf } from "../../kernel/dtype.ts";
import { COMMON_FUSION, COMMON_ORDER, rebuildable, type TargetDescription } from "../../target/description.ts";
import { memorySpace } from "../../target/space.ts";
import type { CostModel } from "../../target/work.ts";
import type { DeviceClass } from "../block/program.ts";
import { blockWorkspace } from "../block/schedule.ts";
import { CPU_SCALARS } from "../cpu/limits.ts";
import { STORAGE_TYPES } from "../native/elements.ts";
import { copiedPlan } from "./copied-plan.ts";
import { isTensorAttend } from "./tensor-attend.ts";
import { sumElements, type TensorDevice, tensorPlan } from "./tensor-plan.ts";
import { cudaWork, PRODUCT_RATE, TENSOR_RATE } from "./work.ts";

/** Bytes; what the driver aligns allocations to as well. */
const ALIGNMENT = 256;
/** What the copy engine asks of rows. */
const ROW_BYTES = 16;
/** That a block may declare without asking for more. */
const SHARED_BYTES = 48 * 1024;

/** What differs from device to device. */
export interface CudaOptions extends TensorDevice {
  /** Bytes of the device's memory. */
  readonly bytes: number;
  readonly fma: boolean;
  /** What products of f32 are multiplied in: f32, or tf32 on tensor cores where they are large enough (tensor-plan.ts). */
  readonly products: "f32" | "tf32";
  /** Collectives are carried out on the only device of a group, too. */
  readonly alone?: true;
}

export const deviceClass = ({ multiprocessors, fma }: CudaOptions): DeviceClass => ({
  threads: 256,
  sharedBytes: SHARED_BYTES,
  lanes: 32,
  multiprocessors,
  fma,
});

/** Of an H200 in f32, by `tidemark calibrate --target cuda`. */
export const CUDA_RATES: CostModel = {
  name: "cuda",
  productRate: PRODUCT_RATE,
  arithmeticRate: 9.6e12,
  byteRate: 3.7e12,
  cachedByteRate: 4.7e12,
  cacheBytes: 50 * 2 ** 20,
  linkRate: 50e9,
  callSeconds: 0.9e-6,
  // NVLink of the fourth generation by its data sheet, and a small message between two devices of a machine: not measured
  networkRate: 450e9,
  messageSeconds: 5e-6,
};

export function cudaDescription(options: CudaOptions): TargetDescription {
  const device = deviceClass(options);
  const tensor = options.products === "tf32";
  const profile = `${options.fma ? "fused multiply-add" : "plain"}${tensor ? ", products in tf32" : ""}`;
  return rebuildable("cuda", options, {
    spaces: [memorySpace(ALIGNMENT, { name: "device", hostVisible: false, largestArena: options.bytes })],
    // whole numbers of 64 bits have not been run on a device
    collectives: true,
    overlapsCollectives: true,
    ...(options.alone ? { collectivesAlone: true as const } : {}),
    storageTypes: STORAGE_TYPES.filter((dtype) => !isBig(typeOf(dtype).compute)),
    computeTypes: CPU_SCALARS,
    // tensor cores wait for what is computed on the way in, and each tile computes it again
    fusion: tensor ? { ...COMMON_FUSION, maxPackedFlops: 0 } : COMMON_FUSION,
    ...(tensor ? { rowBytes: ROW_BYTES } : {}),
    arithmetic: {
      ...COMMON_ORDER,
      name: `cuda, ${profile}`,
      fusedMultiplyAdd: options.fma,
    },
    workspace(nest, operands) {
      if (tensor && nest.kind === "attend" && isTensorAttend(nest)) return 0;
      const plan = nest.kind === "contract" && tensor ? tensorPlan(nest, options) : null;
      if (!plan || nest.kind !== "contract") return blockWorkspace(nest, device);
      return copiedPlan(nest, operands, plan, options)?.workspace ?? sumElements(nest, plan);
    },
    sumOrder(nest) {
      const plan = tensor ? tensorPlan(nest, options) : null;
      if (!plan) return null;
      return plan.parts === 1 ? plan.factors : `${plan.factors}, ${plan.parts} × ${plan.partSteps}`;
    },
    startsSums: (nest) => (tensor ? tensorPlan(nest, options)?.parts === 1 : false),
    shapeLoops: (kernel) => kernel,
    work: cudaWork(options, tensor),
    rates: tensor ? { ...CUDA_RATES, name: "cuda-tf32", productRate: TENSOR_RATE } : CUDA_RATES,
  });
}
