/**
 * @file The target `wasm`: a module for each program, on a memory of its own or on one that programs use in turn. With one
 * thread nobody is waited for; with several (wasm-threads.ts) the same nests are cut into pieces.
 */
import { invariant } from "../base/invariant.ts";
import { contractScratch } from "../codegen/wasm/blocking.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { emitProgram, PAGE, pagesOf } from "../codegen/wasm/program.ts";
import type { LowerTraits } from "../lower/lower.ts";
import { DEFAULT_MODELS } from "../plan/cost/model.ts";
import type { PlacedProgram } from "./assembler.ts";
import {
  type ArenaMemory,
  allocated,
  arenaRefused,
  type LoadOptions,
  type Machine,
  type Target,
  type TargetRequest,
} from "./target.ts";
import { instanceOf, moduleFrom } from "./wasm-module.ts";
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

/** A memory of whole pages, which grows where it is. */
class WasmMemory implements ArenaMemory {
  readonly memory: WebAssembly.Memory;
  readonly start = 0;
  #bytes = 0;

  constructor(initial: number, maximum: number) {
    this.memory = allocated(initial * PAGE, () => new WebAssembly.Memory({ initial, maximum }));
  }

  get buffer(): ArrayBuffer {
    return this.memory.buffer;
  }

  get bytes(): number {
    return this.#bytes;
  }

  reserve(bytes: number): void {
    const missing = pagesOf(bytes) - this.buffer.byteLength / PAGE;
    if (missing > 0) allocated(bytes, () => this.memory.grow(missing));
    this.#bytes = Math.max(this.#bytes, bytes);
  }
}

function load(placed: PlacedProgram, fma: boolean, request: WasmRequest, options: LoadOptions): Machine {
  const { stepwise } = options;
  const height = placed.base + placed.plan.height;
  const threads = stepwise || options.memory ? 1 : (request.threads ?? 1);
  // Words that threads share may take one page more.
  if ((pagesOf(height) + (threads > 1 ? 1 : 0)) * PAGE > LARGEST_ARENA_BYTES) {
    throw arenaRefused(`the arena of ${height} bytes is beyond the 4 GiB of a WebAssembly memory`);
  }
  const { shareFrom } = request;
  const emitOptions = { fma, stepwise, threads, ...(shareFrom === undefined ? {} : { shareFrom }) };
  const { bytes, functions, pages, team } = emitProgram(placed.kernels, placed.copies, height, emitOptions);
  if (team !== null) return loadThreads({ bytes, functions, pages, team, height }, threads);
  const arena = options.memory ?? new WasmMemory(pages, pages);
  invariant(arena instanceof WasmMemory, () => "a memory of another target");
  arena.reserve(height);
  const { exports } = instanceOf(moduleFrom(bytes), { memory: arena.memory });
  return {
    moduleBytes: bytes.length,
    kernelFunctions: functions,
    memory: arena,
    run: exports.run as () => void,
    step: (i) => (exports[`step${i}`] as () => void)(),
    close: () => undefined,
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
    // Workers may still be looking at a program's words when the next one runs: each has a memory of its own.
    allocate: (most = LARGEST_ARENA_BYTES) =>
      threads > 1 ? null : new WasmMemory(0, Math.min(pagesOf(most), LARGEST_ARENA_BYTES / PAGE)),
  };
}
