/** @file The options of generated C code: the properties of a machine that the text depends on. */
import { isBool, type ScalarType } from "../../kernel/dtype.ts";
import type { WinogradUse } from "../cpu/winograd-choice.ts";

/** Bytes of the second-level cache that blocks of products are sized for where nothing is said. */
export const USUAL_SECOND_CACHE = 1024 * 1024;

/** Detected by asking the machine's compiler. The same options give the same text. */
export interface NativeOptions {
  /** 32-bit lanes of the widest register. */
  readonly lanes: 4 | 8 | 16;
  /** Products are rounded together with the sum they are added to: in `contract` alone. */
  readonly fma: boolean;
  /** Convolutions computed by Winograd's algorithm, which rounds otherwise (codegen/cpu/winograd-choice.ts); default: none. */
  readonly winograd?: WinogradUse;
  /** Bytes of a core's second-level cache, where that is smaller than `USUAL_SECOND_CACHE`: blocks of products fit it. No bit depends on it. */
  readonly secondCache?: number;
  /** Threads that run the program. Results do not depend on it; the workspace of products does. */
  readonly threads: number;
}

export interface NativeEmitOptions extends NativeOptions {
  /** Also `tidemark_step`, to look at the arena in between; for one thread. */
  readonly stepwise?: boolean;
  /**
   * Scalar operations of a call from which on threads share it; default: some microseconds of them. And of pieces between which what
   * is in flight makes progress; default: a millisecond of them.
   */
  readonly shareFrom?: number;
}

/** Lanes of a vector in a nest; half as many where 64-bit values occur. */
export function lanesOf(options: NativeOptions, wide: boolean): number {
  return wide ? options.lanes / 2 : options.lanes;
}

/** The C type of one lane of a register. */
export function laneType(dtype: ScalarType): string {
  return isBool(dtype) ? "i32" : dtype;
}

/** The C type of a register of `lanes` elements: a bool is a mask of 32-bit lanes, all ones or zero. */
export function vectorType(dtype: ScalarType, lanes: number): string {
  return `${dtype}x${lanes}`;
}

/** Adds a section of C text to the file under a name, once: functions with addresses of their own, or what others include. */
export type ShareFunction = (name: string, kind: "function" | "inline" | "registers", text: () => string) => void;

/** The C file that functions are written into: its options, and the function that adds shared definitions. */
export interface CFile {
  readonly options: NativeOptions;
  readonly share: ShareFunction;
}
