/** @file The options of generated WebAssembly. */

export interface EmitOptions {
  /** Use relaxed SIMD's fused multiply-add in products. */
  readonly fma: boolean;
  /** Threads that run the program; default: 1. */
  readonly threads?: number;
}
