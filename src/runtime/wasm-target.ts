/**
 * @file The target `wasm`: a module for each program, on a memory of its own or on one that programs use in turn. With one
 * thread there is nothing to wait for; with several (wasm-threads.ts) the same nests are cut into pieces.
 */
import { invariant } from "../base/invariant.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import { LARGEST_ARENA_BYTES, wasmDescription } from "../codegen/wasm/description.ts";
import { MOST_PAGES } from "../codegen/wasm/encoder.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import { emitProgram, PAGE, pagesOf, type WasmModule } from "../codegen/wasm/program.ts";
import { teamBytes } from "../codegen/wasm/team.ts";
import { allocated, arenaRefused, type LoadOptions, type Machine, type Target, type TargetRequest } from "./device.ts";
import { HostMemory } from "./host-memory.ts";
import { instanceOf, moduleFrom } from "./wasm-module.ts";
import { Team } from "./wasm-threads.ts";
import type { WorkerPool } from "./workers.ts";

export interface WasmRequest extends TargetRequest {
  /** Of the host; several threads need them. */
  readonly workers?: WorkerPool;
  /** For tests: 0 shares all calls. */
  readonly shareFrom?: number;
}

/** The threads that share a memory. */
interface Sharing {
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
class WasmMemory extends HostMemory {
  readonly memory: WebAssembly.Memory;
  readonly start: number;
  readonly team: Team | null;
  #bytes = 0;

  constructor(sharing: Sharing | null, initial: number, maximum: number) {
    super();
    const shared = sharing !== null;
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

function sharingOf({ threads = 1, workers }: WasmRequest): Sharing | null {
  if (threads === 1) return null;
  invariant(workers, () => `${threads} threads without workers`);
  return { threads, workers };
}

/** The code of a program, for a memory that was given or for one of its own. */
function codeFor(placed: PlacedProgram, fma: boolean, request: WasmRequest, options: LoadOptions): WasmModule {
  const { stepwise, memory } = options;
  const { threads = 1, shareFrom } = request;
  const height = placed.base + placed.plan.height;
  const start = threads > 1 ? teamBytes(threads) : 0;
  if (pagesOf(start + height) > MOST_PAGES) {
    throw arenaRefused(`the arena of ${height} bytes is beyond the 4 GiB of a WebAssembly memory`);
  }
  const emit = (threads: number, from: number | undefined): WasmModule => {
    const shared = from === undefined ? {} : { shareFrom: from };
    return emitProgram(placed.kernels, placed.copies, height, { fma, stepwise, threads, ...shared });
  };
  if (threads === 1) return emit(1, undefined);
  // Step by step the caller is alone.
  if (memory) return emit(threads, stepwise ? Number.POSITIVE_INFINITY : shareFrom);
  const made = stepwise ? null : emit(threads, shareFrom);
  // Where nothing is worth sharing there is no need of words and workers.
  return made?.isShared ? made : emit(1, undefined);
}

function load(placed: PlacedProgram, fma: boolean, request: WasmRequest, options: LoadOptions): Machine {
  const { bytes, functions, pages, isShared } = codeFor(placed, fma, request, options);
  const arena = options.memory ?? new WasmMemory(isShared ? sharingOf(request) : null, pages, pages);
  invariant(arena instanceof WasmMemory, () => "a memory of another target");
  arena.reserve(placed.base + placed.plan.height);
  const { memory, team } = arena;
  const module = moduleFrom(bytes);
  const { exports } = instanceOf(module, { memory, check: () => team?.check() });
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

const SLOW =
  "no fused multiply-add: products are slower than they could be (a newer Node, or --experimental-wasm-relaxed-simd)";

/** WebAssembly with or without fused multiply-add; by default as the engine can. */
export function wasmTarget(fma: boolean = detectFeatures().relaxedMadd, request: WasmRequest = {}): Target {
  const { threads = 1 } = request;
  return {
    description: wasmDescription(fma, threads),
    threads,
    code: "WebAssembly",
    uses: fma ? "vectors and fused multiply-add" : SLOW,
    arenaIsArray: false,
    load: (placed, options) => load(placed, fma, request, options),
    allocate(budgetBytes = LARGEST_ARENA_BYTES) {
      const words = threads > 1 ? teamBytes(threads) : 0;
      return new WasmMemory(sharingOf(request), 0, Math.min(pagesOf(words + budgetBytes), MOST_PAGES));
    },
  };
}
