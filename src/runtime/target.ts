/**
 * @file What a target is to the rest of the compiler.
 *
 *   placed program ── target.load ──→ machine: memory, run
 *
 * Targets compute the same numbers to rounding, not to the bit: products may be fused with sums on one and not on another.
 * A program is therefore compiled for one target and stays on it.
 */
import type { LowerTraits } from "../lower/lower.ts";
import type { CostModel } from "../plan/cost/model.ts";
import type { PlacedProgram } from "./assembler.ts";

/** A program loaded for one target, with its arena. */
export interface Machine {
  /** Size of the code: of the WebAssembly module, of the shared object. */
  readonly moduleBytes: number;
  /** Distinct kernel functions. */
  readonly kernelFunctions: number;
  /** What holds the arena, and where in it the arena starts. */
  readonly buffer: ArrayBuffer;
  readonly start: number;
  run(): void;
  /** Runs one step; only where the program was loaded stepwise. */
  step(i: number): void;
}

export interface LoadOptions {
  /** Steps can be run one by one. */
  readonly stepwise: boolean;
}

export interface Target {
  readonly name: "wasm" | "native";
  readonly threads: number;
  readonly traits: LowerTraits;
  /** How fast it is, before it is measured. */
  readonly costs: CostModel;
  /** In words: how products are rounded, as far as bits depend on it. */
  readonly arithmetic: string;
  load(placed: PlacedProgram, options: LoadOptions): Machine;
}

export interface TargetRequest {
  /** How many threads run the program; default: 1. */
  readonly threads?: number | undefined;
}

/** A target, or one line that says why there is none. */
export type TargetAnswer = Target | string;
export type TargetProvider = (request: TargetRequest) => TargetAnswer;
