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
import { PAGE, pagesOf } from "../codegen/wasm/program.ts";
import { teamBytes } from "../codegen/wasm/team.ts";
import { type ConnectedCode, connected } from "./communicator.ts";
import {
  allocated,
  type LoadOptions,
  type Machine,
  type ProgramCode,
  type Target,
  type TargetRequest,
} from "./device.ts";
import type { Devices } from "./devices.ts";
import { HostMemory } from "./host-memory.ts";
import { wasmCode } from "./wasm-code.ts";
import { instanceLater, instanceOf, moduleFrom, moduleLater } from "./wasm-module.ts";
import { Team } from "./wasm-threads.ts";
import type { WorkerPool } from "./workers.ts";

export interface WasmRequest extends TargetRequest {
  /** Of the host; several threads need them. */
  readonly workers?: WorkerPool;
  /** Of the host; programs with collectives need them. */
  readonly devices?: Devices;
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

interface Loaded {
  readonly module: WebAssembly.Module;
  readonly instance: WebAssembly.Instance;
  enter(): void;
}

/** What is loaded: code, and the bytes of the arena from the start of its memory. */
interface Loading {
  readonly code: ProgramCode;
  /** Of the program. */
  readonly name: string;
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

/** What a module imports: its memory, and the host's part of calls. */
export interface Imports {
  readonly env: WebAssembly.Imports[string];
  /** The program runs from now on. */
  enter(): void;
}

/** A program with collectives is joined with the devices that run it, before anything of it runs. */
export function importsOf({ memory, team }: WasmMemory, code: ConnectedCode, devices: Devices | undefined): Imports {
  const env = { memory, check: () => team?.check() };
  if ((code.exchanges ?? []).length === 0) return { env, enter: () => undefined };
  const link = connected(code, devices);
  const exchange = (number: number, to: number, from: number): void => {
    link.exchange(number, memory.buffer, to >>> 0, from >>> 0);
  };
  return { env: { ...env, exchange }, enter: () => link.enter() };
}

function machineOf(
  { bytes, functions, isShared }: ProgramCode,
  arena: WasmMemory,
  { module, instance, enter }: Loaded,
): Machine {
  const { exports } = instance;
  const { memory, team } = arena;
  const runs = exports.run as () => void;
  const run = (): void => {
    enter();
    runs();
  };
  const program = { module, memory };
  return {
    moduleBytes: bytes.length,
    kernelFunctions: functions,
    memory: arena,
    run: team && isShared ? () => team.run(program, run) : run,
    step(i) {
      enter();
      (exports[`step${i}`] as () => void)();
    },
    close: () => team?.dismiss(),
  };
}

function load(placed: PlacedProgram, fma: boolean, request: WasmRequest, options: LoadOptions): Machine {
  const { threads = 1, shareFrom, winograd, devices } = request;
  const { stepwise, memory } = options;
  const code = wasmCode(placed, { fma, threads, winograd, shareFrom, stepwise, sharesMemory: memory !== undefined });
  const { name } = placed.plan.program;
  const arena = memoryFor({ code, name, arenaBytes: placed.base + placed.plan.height, request, options });
  const module = moduleFrom(code.bytes);
  const { env, enter } = importsOf(arena, { ...code, name }, devices);
  return machineOf(code, arena, { module, instance: instanceOf(module, env), enter });
}

/** The engine compiles and links while this thread goes on. */
async function loadCode(loading: Loading): Promise<Machine> {
  const { code, name, request } = loading;
  const module = await moduleLater(code.bytes);
  const arena = memoryFor(loading);
  const { env, enter } = importsOf(arena, { ...code, name }, request.devices);
  return machineOf(code, arena, { module, instance: await instanceLater(module, env), enter });
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
    loadCode: (code, arenaBytes, options) => loadCode({ code, name: "a program", arenaBytes, request, options }),
    allocate(budgetBytes = LARGEST_ARENA_BYTES) {
      const words = threads > 1 ? teamBytes(threads) : 0;
      return new WasmMemory(sharingOf(request), 0, Math.min(pagesOf(words + budgetBytes), MOST_PAGES));
    },
  };
}
