/**
 * @file The target `wasm`: a module for each program, on a memory of its own or on one that programs use in turn. With one
 * thread there is nothing to wait for; with several (wasm-threads.ts) the same nests are cut into pieces.
 */
import { invariant } from "../base/invariant.ts";
import type { WinogradUse } from "../codegen/cpu/winograd-choice.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import { LARGEST_ARENA_BYTES, wasmDescription } from "../codegen/wasm/description.ts";
import { MOST_PAGES } from "../codegen/wasm/encoder.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { PAGE, pagesOf, type WasmModule } from "../codegen/wasm/program.ts";
import { teamBytes } from "../codegen/wasm/team.ts";
import { allocated, type LoadOptions, type Machine, type Target, type TargetRequest } from "./device.ts";
import { HostMemory } from "./host-memory.ts";
import { wasmCode } from "./wasm-code.ts";
import { instanceLater, instanceOf, moduleFrom, moduleLater } from "./wasm-module.ts";
import { Team } from "./wasm-threads.ts";
import type { WorkerPool } from "./workers.ts";

export interface WasmRequest extends TargetRequest {
  /** Of the host; several threads need them. */
  readonly workers?: WorkerPool;
  /** For tests: 0 shares all calls. */
  readonly shareFrom?: number;
  /** Convolutions computed by Winograd's algorithm; default: where it pays, null: none. */
  readonly winograd?: WinogradUse | null;
}

/** The threads that share a memory. */
export interface Sharing {
  readonly threads: number;
  readonly workers: WorkerPool;
}

/** A shared one has all its addresses from the start: where the engine has not got so many, it can grow less. */
function newMemory(initial: number, maximum: number, shared: boolean): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial, maximum, shared });
  } catch (error) {
    const half = Math.floor(maximum / 2);
    if (!shared || half < initial) throw error;
    return newMemory(initial, half, shared);
  }
}

/** A memory of whole pages, which grows where it is. Where threads share it, the arena comes after their words. */
export class WasmMemory extends HostMemory {
  readonly memory: WebAssembly.Memory;
  readonly start: number;
  readonly team: Team | null;
  #bytes = 0;

  constructor(sharing: Sharing | null, initial: number, maximum: number, shared = sharing !== null) {
    super();
    this.start = sharing ? teamBytes(sharing.threads) : 0;
    const pages = shared ? Math.max(initial, pagesOf(this.start)) : initial;
    this.memory = allocated(pages * PAGE, () => newMemory(pages, maximum, shared));
    this.team = sharing && new Team(this.memory, sharing.threads, sharing.workers);
  }

  get buffer(): ArrayBuffer {
    return this.memory.buffer;
  }

  get bytes(): number {
    return this.#bytes;
  }

  reserve(bytes: number): void {
    const missing = pagesOf(this.start + bytes) - this.buffer.byteLength / PAGE;
    if (missing > 0) allocated(bytes, () => this.memory.grow(missing));
    this.#bytes = Math.max(this.#bytes, bytes);
  }
}

export function sharingOf({ threads = 1, workers }: WasmRequest): Sharing | null {
  if (threads === 1) return null;
  invariant(workers, () => `${threads} threads without workers`);
  return { threads, workers };
}

/** What is loaded: code, and the bytes of the arena from the start of its memory. */
interface Loading {
  readonly code: WasmModule;
  readonly arenaBytes: number;
  readonly request: WasmRequest;
  readonly options: LoadOptions;
}

function memoryFor({ code: { pages, isShared }, arenaBytes, request, options }: Loading): WasmMemory {
  const arena = options.memory ?? new WasmMemory(isShared ? sharingOf(request) : null, pages, pages);
  invariant(arena instanceof WasmMemory, () => "a memory of another target");
  arena.reserve(arenaBytes);
  return arena;
}

const importsOf = ({ memory, team }: WasmMemory) => ({ memory, check: () => team?.check() });

function machineOf(
  { bytes, functions, isShared }: WasmModule,
  arena: WasmMemory,
  module: WebAssembly.Module,
  { exports }: WebAssembly.Instance,
): Machine {
  const { memory, team } = arena;
  const run = exports.run as () => void;
  const program = { module, memory };
  return {
    moduleBytes: bytes.length,
    kernelFunctions: functions,
    memory: arena,
    run: team && isShared ? () => team.run(program, run) : run,
    step: (i) => (exports[`step${i}`] as () => void)(),
    close: () => team?.dismiss(),
  };
}

function load(placed: PlacedProgram, fma: boolean, request: WasmRequest, options: LoadOptions): Machine {
  const { threads = 1, shareFrom, winograd } = request;
  const { stepwise, memory } = options;
  const code = wasmCode(placed, { fma, threads, winograd, shareFrom, stepwise, sharesMemory: memory !== undefined });
  const arena = memoryFor({ code, arenaBytes: placed.base + placed.plan.height, request, options });
  const module = moduleFrom(code.bytes);
  return machineOf(code, arena, module, instanceOf(module, importsOf(arena)));
}

/** The engine compiles and links while this thread goes on. */
async function loadCode(loading: Loading): Promise<Machine> {
  const { code } = loading;
  const module = await moduleLater(code.bytes);
  const arena = memoryFor(loading);
  return machineOf(code, arena, module, await instanceLater(module, importsOf(arena)));
}

const SLOW =
  "no fused multiply-add: products are slower than they could be (a newer Node, or --experimental-wasm-relaxed-simd)";

/** WebAssembly with or without fused multiply-add; by default as the engine can. */
export function wasmTarget(fma: boolean = detectFeatures().relaxedMadd, request: WasmRequest = {}): Target {
  const { threads = 1, winograd } = request;
  return {
    description: wasmDescription(fma, { threads, winograd }),
    threads,
    code: "WebAssembly",
    uses: fma ? "vectors and fused multiply-add" : SLOW,
    arenaIsArray: false,
    load: (placed, options) => load(placed, fma, request, options),
    loadCode: (code, arenaBytes, options) => loadCode({ code, arenaBytes, request, options }),
    allocate(budgetBytes = LARGEST_ARENA_BYTES) {
      const words = threads > 1 ? teamBytes(threads) : 0;
      return new WasmMemory(sharingOf(request), 0, Math.min(pagesOf(words + budgetBytes), MOST_PAGES));
    },
  };
}
