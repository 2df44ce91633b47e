/**
 * @file What a target is to the rest of the compiler.
 *
 *   placed program ── target.load ──→ machine: memory, run
 *
 * Targets compute the same numbers to rounding, not to the bit: products may be fused with sums on one and not on another.
 * A program is therefore compiled for one target and stays on it.
 */
import { grouped, TidemarkError } from "../base/errors.ts";
import type { PlacedProgram } from "../codegen/placed.ts";
import type { TargetDescription } from "../target/description.ts";

/** What holds arenas. Programs that run in turn may share one: its size is then that of the largest, not the sum. */
export interface ArenaMemory {
  /** Of now: growing may replace it. */
  readonly buffer: ArrayBuffer;
  /** Where in the buffer arenas start. */
  readonly start: number;
  /** Bytes that arenas may take. */
  readonly bytes: number;
  /** Makes room for an arena of this size; what is in the memory stays. */
  reserve(bytes: number): void;
}

/** The target has no room for an arena. */
export const arenaRefused = (summary: string): TidemarkError =>
  new TidemarkError("TargetUnsupported", summary, { help: "use smaller batches" });

/** Memory for an arena of so many bytes; where the engine or the system has not got it, an error that says so. */
export function allocated<T>(bytes: number, allocate: () => T): T {
  try {
    return allocate();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw arenaRefused(`an arena of ${grouped(bytes)} bytes cannot be had: ${error.message}`);
  }
}

/** A program loaded for one target, with its arena. */
export interface Machine {
  /** Size of the code: of the WebAssembly module, of the shared object. */
  readonly moduleBytes: number;
  /** Distinct kernel functions. */
  readonly kernelFunctions: number;
  readonly memory: ArenaMemory;
  run(): void;
  /** Runs one step; only where the program was loaded stepwise. */
  step(i: number): void;
  /** Ends what it runs on (threads) now, and not when the machine is collected. It cannot run again. */
  close(): void;
}

export interface LoadOptions {
  /** Steps can be run one by one. */
  readonly stepwise: boolean;
  /** From this target's `allocate`; default: a memory of the program's own. */
  readonly memory?: ArenaMemory | undefined;
}

export interface Target {
  /** What the compiler knows of it. */
  readonly description: TargetDescription;
  readonly threads: number;
  /** What its user should know, in one line. */
  readonly note?: string | null;
  /** Throws `TargetUnsupported` where the program cannot be made to run. */
  load(placed: PlacedProgram, options: LoadOptions): Machine;
  /** A memory for several programs, empty at first, that will not grow beyond `most` bytes. */
  allocate(most?: number): ArenaMemory;
}

export interface TargetRequest {
  /** How many threads run the program; default: 1. */
  readonly threads?: number | undefined;
}

/** A target, or one line that says why there is none. */
export type TargetAnswer = Target | string;
export type TargetProvider = (request: TargetRequest) => TargetAnswer;
