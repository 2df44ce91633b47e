/**
 * @file Memory that libraries below PyTorch ask its allocator for. It counts in `max_memory_allocated` like tensors do.
 *
 * cuBLAS: PyTorch gives each handle a workspace, 32 MiB on Hopper and newer devices, and cuBLASLt one of 1 MiB (aten/src/ATen/cuda: CublasHandlePool.cpp,
 * CUDABlas.cpp). The thread of the forward pass has handles, that of the backward pass others. Workspaces stay.
 *
 * cuDNN: its kernels for tensor cores read channels last. Operands that lie channels first are converted in the workspace of the call, the
 * result too, so a convolution has copies of all three while it runs. Products at single pixels (1 × 1, stride 1) are read as they lie where
 * rows of pixels are whole vectors, four elements, and depthwise convolutions have kernels of their own. Gradients of weights are summed
 * in several parts.
 */

const MIB = 2 ** 20;

/** For each of the two threads. */
export const CUBLAS_WORKSPACES: readonly number[] = [32 * MIB, MIB];

export interface Convolution {
  /** Bytes. */
  readonly input: number;
  readonly weight: number;
  readonly output: number;
  readonly isDepthwise: boolean;
  /** Whether the kernel has one pixel and visits all. */
  readonly isProduct: boolean;
  /** Pixels of one image of the input. */
  readonly pixels: number;
}

/** Parts that gradients of weights are summed in, and the most bytes of them where operands are converted too. */
const PARTS = 16;
const MOST_PARTS = 8 * MIB;

const PIXELS_AT_ONCE = 4;

export function convolutionWorkspace(of: Convolution, what: "result" | "input" | "weight"): number {
  if (of.isDepthwise) return 0;
  const parts = what === "weight" ? PARTS * of.weight : 0;
  if (of.isProduct && of.pixels % PIXELS_AT_ONCE === 0) return parts;
  const converted = of.input + of.output + (of.isProduct ? 0 : of.weight);
  return converted + Math.min(parts, MOST_PARTS);
}
