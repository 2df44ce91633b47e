/**
 * @file The target `wasm`: a module and a memory of its own for each program. With one thread nothing is shared and nobody
 * is waited for; with several (wasm-threads.ts) the same nests are cut into pieces.
 */
import { TidemarkError } from "../base/errors.ts";
import { contractScratch } from "../codegen/wasm/blocking.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { emitProgram, PAGE, pagesOf } from "../codegen/wasm/program.ts";
import type { LowerTraits } from "../lower/lower.ts";
import { DEFAULT_MODELS } from "../plan/cost/model.ts";
import type { PlacedProgram } from "./assembler.ts";
import type { LoadOptions, Machine, Target, TargetRequest } from "./target.ts";
import { loadThreads } from "./wasm-threads.ts";

/** What products on WebAssembly need, with or without fused multiply-add. */
export function wasmTraits(fma: boolean = detectFeatures().relaxedMadd, threads = 1): LowerTraits {
  const key = `wasm ${JSON.stringify({ fma, threads })}`;
  return { key, contractScratch: (dtype, m, n, k) => contractScratch(dtype, fma, m, n, k, threads) };
}

/** What tests ask for beside threads: all calls shared. */
export interface WasmRequest extends TargetRequest {
  readonly shareFrom?: number;
}

/** Of a WebAssembly memory with addresses of 32 bits. */
export const LARGEST_ARENA_BYTES = 65536 * PAGE;

function load(placed: PlacedProgram, fma: boolean, request: WasmRequest, { stepwise }: LoadOptions): Machine {
  const { height } = placed.plan;
  const threads = stepwise ? 1 : (request.threads ?? 1);
  // Words that threads share may take one page more.
  if ((pagesOf(height) + (threads > 1 ? 1 : 0)) * PAGE > LARGEST_ARENA_BYTES) {
    const summary = `the arena of ${height} bytes is beyond the 4 GiB of a WebAssembly memory`;
    throw new TidemarkError("TargetUnsupported", summary, { help: "use smaller batches" });
  }
  const { shareFrom } = request;
  const options = { fma, stepwise, threads, ...(shareFrom === undefined ? {} : { shareFrom }) };
  const { bytes, functions, pages, team } = emitProgram(placed.kernels, placed.copies, height, options);
  if (team !== null) return loadThreads({ bytes, functions, pages, team }, threads);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
  return {
    moduleBytes: bytes.length,
    kernelFunctions: functions,
    buffer: memory.buffer,
    start: 0,
    run: exports.run as () => void,
    step: (i) => (exports[`step${i}`] as () => void)(),
  };
}

/** WebAssembly with or without fused multiply-add; by default as the engine can. */
export function wasmTarget(fma: boolean = detectFeatures().relaxedMadd, request: WasmRequest = {}): Target {
  const { threads = 1 } = request;
  return {
    name: "wasm",
    threads,
    traits: wasmTraits(fma, threads),
    costs: DEFAULT_MODELS[fma ? "wasm-relaxed" : "wasm"],
    arithmetic: fma ? "fused multiply-add" : "plain",
    load: (placed, options) => load(placed, fma, request, options),
  };
}
