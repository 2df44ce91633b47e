/** @file The target `cuda` as users have it, by name and as an object; where it is missing, an error says what is. */

import { TidemarkError } from "../../base/errors.ts";
import { cudaDescription } from "../../codegen/cuda/description.ts";
import { PRODUCTS, type Products, type Target, type TargetAnswer, type TargetRequest } from "../../runtime/device.ts";
import { requireOptions } from "../../trace/arguments.ts";
import { cudaTarget } from "./target.ts";

/** Options of {@link cuda}. */
export interface CudaTargetOptions {
  /**
   * What large products of f32 are multiplied in: `"f32"` has the bits of `native`, `"tf32"` runs on the tensor cores of GPUs of
   * the Hopper generation and rounds operands to 11 bits. Default: `"f32"`.
   */
  readonly products?: Products;
}

/**
 * The first CUDA device of this machine, to be given to `compile(fn, { target })`; of several processes that `mpirun` started each has its
 * own. It needs the driver and NVRTC or nvcc, on meshes of several devices NCCL as well. Results are on the device until they are read.
 *
 * @throws TargetUnsupported where there is no device, no driver or no compiler
 *
 * @example
 * import { TidemarkError } from "tidemark";
 * import { cuda } from "tidemark/node";
 *
 * try {
 *   const target = cuda();
 *   console.log(target.description.name);
 * } catch (error) {
 *   // Without a device or its driver.
 *   if (!(error instanceof TidemarkError)) throw error;
 * }
 */
export function cuda(options: CudaTargetOptions = {}): Target {
  requireOptions("cuda", options, { products: "a text" });
  const { products = "f32" } = options;
  if (!PRODUCTS.includes(products)) {
    throw new TidemarkError("InvalidArgument", `cuda: products is ${products}`, {
      help: `give one of ${PRODUCTS.join(", ")}`,
    });
  }
  const target = cudaTarget({ products });
  if (typeof target !== "string") return target;
  throw noDevice(target);
}

const noDevice = (why: string): TidemarkError =>
  new TidemarkError("TargetUnsupported", `cuda: ${why}`, { help: 'the targets "wasm" and "native" need no GPU' });

/** The device that programs are planned for where there is none: an H200. */
const PLANNED_FOR = { name: "H200", multiprocessors: 132, bytes: 139 * 2 ** 30 } as const;

/** The first CUDA device by its name in options; for plans alone an H200 where there is none. */
export function cudaNamed({ threads = 1, products = "f32", isPlanned = false }: TargetRequest): TargetAnswer {
  if (threads !== 1) return `cuda runs on all multiprocessors: leave threads out, which is ${threads}`;
  const found = cudaTarget({ products });
  return typeof found === "string" && isPlanned ? describedOnly(products, found) : found;
}

/** What can be planned for and runs nothing. */
function describedOnly(products: Products, why: string): Target {
  const { name, multiprocessors, bytes } = PLANNED_FOR;
  const refuse = (): never => {
    throw noDevice(why);
  };
  return {
    description: cudaDescription({ multiprocessors, bytes, fma: true, products }),
    ...{ threads: 1, code: "CUDA", uses: `nothing: ${why}`, arenaIsArray: false, spills: "host" as const },
    note: `planned for an ${name}: ${why}`,
    load: refuse,
    allocate: refuse,
  };
}
