/** @file The options of generated WebAssembly. */
import type { WinogradUse } from "../cpu/winograd-choice.ts";

export interface EmitOptions {
  /** Use relaxed SIMD's fused multiply-add in products. */
  readonly fma: boolean;
  /** Convolutions computed by Winograd's algorithm, which rounds otherwise (codegen/cpu/winograd-choice.ts); default: none. */
  readonly winograd?: WinogradUse | undefined;
  /** Threads that run the program; default: 1. */
  readonly threads?: number;
}
