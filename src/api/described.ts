/**
 * @file The built-in targets by what their descriptions are rebuilt from, for threads and processes that only have that: what
 * the compiler knows of them, and how their code is generated where that is possible without loading it.
 */

import type { WinogradUse } from "../codegen/cpu/winograd-choice.ts";
import { type CudaOptions, cudaDescription } from "../codegen/cuda/description.ts";
import { nativeDescription } from "../codegen/native/description.ts";
import type { NativeEmitOptions } from "../codegen/native/options.ts";
import { emitNativeProgram } from "../codegen/native/program.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import { wasmDescription } from "../codegen/wasm/description.ts";
import { type WebgpuOptions, webgpuDescription } from "../codegen/wgsl/description.ts";
import type { OwnTargetName } from "../runtime/choose-target.ts";
import type { ProgramCode } from "../runtime/device.ts";
import { wasmCode } from "../runtime/wasm-code.ts";
import type { Rebuild, TargetDescription } from "../target/description.ts";

interface WasmOptions {
  readonly fma: boolean;
  readonly threads: number;
  readonly winograd: WinogradUse | null;
}

const DESCRIBED: Readonly<Record<OwnTargetName, (options: unknown) => TargetDescription>> = {
  wasm(options) {
    const { fma, ...rest } = options as WasmOptions;
    return wasmDescription(fma, rest);
  },
  native: (options) => nativeDescription(options as NativeEmitOptions),
  cuda: (options) => cudaDescription(options as CudaOptions),
  webgpu: (options) => webgpuDescription(options as WebgpuOptions),
};

/** Code of programs that share a memory with others. */
const GENERATED: Readonly<Partial<Record<OwnTargetName, (placed: PlacedProgram, options: unknown) => ProgramCode>>> = {
  wasm(placed, options) {
    return wasmCode(placed, { ...(options as WasmOptions), stepwise: false, sharesMemory: true });
  },
  native(placed, options) {
    const { text, functions } = emitNativeProgram(placed.kernels, placed.copies, options as NativeEmitOptions);
    return { bytes: new Uint8Array(new TextEncoder().encode(text)), functions, pages: 0, isShared: false };
  },
};

const named = <T>(table: Readonly<Partial<Record<OwnTargetName, T>>>, name: string): T | undefined =>
  Object.entries(table).find(([known]) => known === name)?.[1];

/** The description that was made of this; null for other targets. */
export function descriptionOf({ target, options }: Rebuild): TargetDescription | null {
  return named(DESCRIBED, target)?.(options) ?? null;
}

/** The code of a program for that target; null where it is generated only by loading it. */
export function codeOf({ target, options }: Rebuild, placed: PlacedProgram): ProgramCode | null {
  return named(GENERATED, target)?.(placed, options) ?? null;
}
