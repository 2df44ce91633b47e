/** @file The target `cuda` as users have it: an object for `compile`, or an error that says what is missing. */

import { TidemarkError } from "../../base/errors.ts";
import type { Target } from "../../runtime/device.ts";
import { requireOptions } from "../../trace/arguments.ts";
import { cudaTarget } from "./target.ts";

export interface CudaTargetOptions {
  /**
   * What large products of f32 are multiplied in: `"f32"` has the bits of `native`, `"tf32"` runs on the tensor cores of GPUs of
   * the Hopper generation and rounds operands to 11 bits. Default: `"f32"`.
   */
  readonly products?: "f32" | "tf32";
}

const PRODUCTS: readonly string[] = ["f32", "tf32"];

/**
 * The first CUDA device of this machine, to be given to `compile(fn, { target })`. It needs the driver and NVRTC or nvcc. Results are
 * on the device until they are read.
 *
 * @throws TargetUnsupported where there is no device, no driver or no compiler
 */
export function cuda(options: CudaTargetOptions = {}): Target {
  requireOptions("cuda", options, { products: "a text" });
  const { products = "f32" } = options;
  if (!PRODUCTS.includes(products)) {
    throw new TidemarkError("InvalidArgument", `cuda: products is ${products}`, { help: 'give "f32" or "tf32"' });
  }
  const target = cudaTarget({ products });
  if (typeof target !== "string") return target;
  throw new TidemarkError("TargetUnsupported", `cuda: ${target}`, {
    help: 'the targets "wasm" and "native" need no GPU',
  });
}
