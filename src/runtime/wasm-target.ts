/** @file The target `wasm`: a module and a memory of its own for each program. One thread. */
import { TidemarkError } from "../base/errors.ts";
import { contractScratch } from "../codegen/wasm/contract.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { emitProgram, PAGE, pagesOf } from "../codegen/wasm/program.ts";
import type { LowerTraits } from "../lower/lower.ts";
import { DEFAULT_MODELS } from "../plan/cost/model.ts";
import type { PlacedProgram } from "./assembler.ts";
import type { LoadOptions, Machine, Target } from "./target.ts";

/** What products on WebAssembly need, with or without fused multiply-add. */
export function wasmTraits(fma: boolean = detectFeatures().relaxedMadd): LowerTraits {
  return { contractScratch: (dtype, m, n, k) => contractScratch(dtype, fma, m, n, k) };
}

/** Of a WebAssembly memory with addresses of 32 bits. */
export const LARGEST_ARENA_BYTES = 65536 * PAGE;

function load(placed: PlacedProgram, fma: boolean, { stepwise }: LoadOptions): Machine {
  const { height } = placed.plan;
  if (pagesOf(height) * PAGE > LARGEST_ARENA_BYTES) {
    const summary = `the arena of ${height} bytes is beyond the 4 GiB of a WebAssembly memory`;
    throw new TidemarkError("TargetUnsupported", summary, { help: "use smaller batches" });
  }
  const { bytes, functions } = emitProgram(placed.kernels, placed.copies, height, { fma, stepwise });
  const pages = pagesOf(height);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
  return {
    moduleBytes: bytes.length,
    kernelFunctions: functions,
    buffer: memory.buffer as ArrayBuffer,
    start: 0,
    run: exports.run as () => void,
    step: (i) => (exports[`step${i}`] as () => void)(),
  };
}

/** WebAssembly with or without fused multiply-add; by default as the engine can. */
export function wasmTarget(fma: boolean = detectFeatures().relaxedMadd): Target {
  return {
    name: "wasm",
    threads: 1,
    traits: wasmTraits(fma),
    costs: DEFAULT_MODELS[fma ? "wasm-relaxed" : "wasm"],
    arithmetic: fma ? "fused multiply-add" : "plain",
    load: (placed, options) => load(placed, fma, options),
  };
}
