/**
 * @file What runs programs: a device with memories of its own; only the device holds views of them.
 *
 *   placed program ── target.load ──→ machine: memory (write, read, fill, copy), run, step
 *
 * Targets compute the same numbers to rounding, not to the bit: products may be fused with sums on one and not on another.
 * A program is therefore compiled for one target and stays on it.
 */
import type { PlainBytes } from "../base/bytes.ts";
import { grouped, TidemarkError } from "../base/errors.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import type { Exchange } from "../codegen/wasm/exchange.ts";
import type { TargetDescription } from "../target/description.ts";

/**
 * Memory in which arenas lie; addresses count from its start. Programs that run in turn may share one: its size is then that
 * of the largest, not the sum. Everything happens in the order of the calls: a read gives what the runs before it left.
 */
export interface DeviceMemory {
  /** That arenas may take. */
  readonly bytes: number;
  /** That are taken of the device. */
  readonly allocatedBytes: number;
  /** Makes room for an arena of this size; what is in the memory stays. */
  reserve(bytes: number): void;
  /** Writes what `fill` puts into an array: a part of the memory itself where the host sees it. It is `fill`'s for the call. */
  write(address: number, bytes: number, fill: (into: Uint8Array) => void): void;
  read(address: number, bytes: number): Promise<Uint8Array>;
  /** The same without waiting, into an array of the caller's; null where the device has no such thing. */
  readonly readInto: ((address: number, into: Uint8Array) => void) | null;
  /** The bytes themselves, where the host sees them. */
  bytesAt?(address: number, bytes: number): Uint8Array;
  fill(address: number, bytes: number, value: number): void;
  /** Within the memory; the two do not overlap. */
  copy(to: number, from: number, bytes: number): void;
  /** Gives it back now, and not when it is collected. Nothing is read or written after that. */
  close?(): void;
}

/** The target has no room for an arena. */
export const arenaRefused = (summary: string): TidemarkError =>
  new TidemarkError("TargetUnsupported", summary, {
    help: "plan within a budget (compile(fn, { memory })), or use smaller batches",
  });

/** Memory for an arena of so many bytes; where the engine or the system has not got it, an error that says so. */
export function allocated<T>(bytes: number, allocate: () => T): T {
  try {
    return allocate();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw arenaRefused(`an arena of ${grouped(bytes)} bytes cannot be allocated: ${error.message}`);
  }
}

/** A program loaded for one target, with its arena. */
export interface Machine {
  /** Size of the code: of the WebAssembly module, of the shared object. */
  readonly moduleBytes: number;
  /** Distinct kernel functions. */
  readonly kernelFunctions: number;
  readonly memory: DeviceMemory;
  /** Runs it once, or hands it to a device that does; what went wrong there is known when something is read. */
  run(): void;
  /** Runs one step; only where the program was loaded stepwise. */
  step(i: number): void;
  /** Of the second memory that its values are moved to, as the system has it; missing where there is none. */
  spillBytes?(): number;
  /** That memory, for parameters that stay in it between runs: once it is asked for, it is open until it is closed. */
  readonly file?: DeviceMemory | null;
  /** Ends what it runs on (threads) now, and not when the machine is collected. It cannot run again. */
  close(): void;
}

/** A file of a page or of its workers, which is there already (page-file.ts). */
export interface OpenFile {
  /** Its name. */
  readonly name: string;
}

/** Where values of a program may wait for a later use: in files, or in memory of the host where the arena is a device's. */
export type SecondMemory = "file" | "host";

/** What `spill` says for the host's memory in place of a folder. */
export const HOST = "host" satisfies SecondMemory;

/** Why a target cannot have a second memory, and what to do, or null. */
export function secondMemoryProblem(
  second: SecondMemory,
  { description: { name }, spills }: Pick<Target, "description" | "spills">,
): readonly [problem: string, help: string] | null {
  if (spills === second) return null;
  const own = spills === HOST ? `, ${SECOND[HOST].how} for the host's memory` : "";
  const { what, where } = SECOND[second];
  return [`${name} moves no values to ${what}${own}`, `${where}, or leave spill out`];
}

const SECOND: Readonly<Record<SecondMemory, { readonly what: string; readonly how: string; readonly where: string }>> =
  {
    file: { what: "files", how: "a folder", where: 'import "tidemark/node" and give the target "native" or "wasm"' },
    host: {
      what: "memory of the host",
      how: 'spill: { to: "host" }',
      where: 'give the target "cuda", or for a folder of this name "./host"',
    },
  };

export const secondMemoryOf = ({ to }: Pick<SpillFolder, "to">): SecondMemory => (to === HOST ? HOST : "file");

/** A folder, or a file of a page, for values that wait for a later use; or `"host"`, the memory of the host. */
export interface SpillFolder {
  readonly to: string | OpenFile;
  /** The most bytes a second, each way; default: no limit. */
  readonly limit?: number | undefined;
}

/** How a target loads a program. */
export interface LoadOptions {
  /** For programs with copies to a file. */
  readonly spill?: SpillFolder | undefined;
  /** Steps can be run one by one, to look at the arena in between. */
  readonly stepwise: boolean;
  /** From this target's `allocate`, maybe with the arenas of others that run in turn; default: a memory of its own. */
  readonly memory?: DeviceMemory | undefined;
}

/** A program's code as data, which can be generated on one thread and loaded on another. */
export interface ProgramCode {
  readonly bytes: PlainBytes;
  /** Distinct kernel functions. */
  readonly functions: number;
  /** Of the memory that it runs in, at least. */
  readonly pages: number;
  /** Whether there are calls that threads share. */
  readonly isShared: boolean;
  /** On WebAssembly: what is exchanged with other devices, by number; elsewhere the code says it. */
  readonly exchanges?: readonly Exchange[];
}

/** Where programs run: WebAssembly, native code, a GPU. */
export interface Target {
  /** What the compiler knows of it. */
  readonly description: TargetDescription;
  readonly threads: number;
  /** What its programs are, in words: `WebAssembly`, `machine code`. */
  readonly code: string;
  /** What it uses of the machine, in one line: `vectors and fused multiply-add`. */
  readonly uses: string;
  /** Whether its arenas are array buffers, which the engine counts among its own. */
  readonly arenaIsArray: boolean;
  /** The second memory that its programs can have; missing where there is none. */
  readonly spills?: SecondMemory;
  /** Whether the host has to wait for what is in its memory (`x.dataAsync()`). */
  readonly readsLater?: boolean;
  /** What its user should know, in one line. */
  readonly note?: string | null;
  /** Throws `TargetUnsupported` where the program cannot be made to run. */
  load(placed: PlacedProgram, options: LoadOptions): Machine;
  /**
   * Loads code that was generated elsewhere, for an arena of so many bytes, without keeping the thread busy; missing where
   * code is generated only by loading.
   */
  loadCode?(code: ProgramCode, arenaBytes: number, options: LoadOptions): Promise<Machine>;
  /** A memory for several programs, empty at first, that will not grow beyond `budgetBytes`. */
  allocate(budgetBytes?: number): DeviceMemory;
}

/** Whether something is a target and not its name. */
export function isTarget(value: unknown): value is Target {
  if (typeof value !== "object" || value === null) return false;
  const { description, load, allocate } = value as Partial<Target>;
  return typeof description === "object" && typeof load === "function" && typeof allocate === "function";
}

export interface TargetRequest {
  /** How many threads run the program; default: 1. */
  readonly threads?: number | undefined;
  /** What large products of f32 are multiplied in; default: f32. */
  readonly products?: Products | undefined;
  /** The second memory that programs are to have; default: none. */
  readonly second?: SecondMemory | undefined;
  /** It is only planned for: a device that is not here may be described all the same. */
  readonly isPlanned?: boolean | undefined;
}

/** Types that products of f32 may be multiplied in; sums are f32. */
export const PRODUCTS = ["f32", "tf32"] as const;
export type Products = (typeof PRODUCTS)[number];

/** A target, or one line that says why there is none. */
export type TargetAnswer = Target | string;
export type TargetProvider = (request: TargetRequest) => TargetAnswer;
