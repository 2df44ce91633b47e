/**
 * @file Block programs: the form between loop nests and the text of devices that run blocks of threads (CUDA, WGSL), and of
 * C, which emulates them.
 *
 *   nest ── schedule (pure function of nest and device class) ──→ launches ──→ CUDA | WGSL | C | interpreter
 *
 * A launch runs a grid of blocks, in no order and at the same time. The threads of a block run the same phases; between two
 * phases they wait for each other, and see what the others have written. Within a phase every thread is on its own:
 *
 *   launch      grid [row tile < 8, column tile < 4], 256 threads
 *     phase     ░░░░░░░░░░░░░░░░   all threads: sums = 0
 *     ───────── barrier ──────────
 *     repeat k < 32                the same number of times for all threads of a block
 *       phase   ░░░░░░░░░░░░░░░░   each thread: a few elements of the tiles, global → shared
 *       ─────── barrier ──────────
 *       phase   ░░░░░░░░░░░░░░░░   each thread: sums += a · b, shared → registers
 *       ─────── barrier ──────────
 *     phase     ░░░░░░░░░░░░░░░░   each thread: stores its sums, registers → global
 *
 * There is a barrier after every phase (that after the last one is the launch's end), and nowhere else; so barriers stand
 * where all threads of a block pass them by construction. Launches of a kernel run one after the other.
 *
 * Memories are numbered, and everything that is read or written is an element of one. The kernel's operands come first, with
 * their own numbers, so expressions of a nest are used as they are; then what the launch declares:
 *
 *   global     an operand once more, seen as elements of another type of the same bytes (counts in a workspace of f32)
 *   shared     one for each block; not set when the block starts
 *   register   one for each thread, for as long as the block runs; not set when it starts
 *   local      one for each thread and phase; not set when the phase starts
 *
 * A `load` of an expression is of any of them, and converts as loads do. Registers and locals are indexed by constants and
 * counters of unrolled loops alone, but for those that say `indexed`. Counters are those of the grid, the thread's number in its
 * block, and those of `repeat` and `for`; all counters of a launch have different names. A thread's row and column are divisions
 * of its number in the index: thread div 16, thread mod 16.
 *
 * Nothing here rounds but the scalar functions and `fma`; the order of arithmetic is the nest's, which the schedules keep.
 * Two threads may touch one element between two barriers only where neither writes it; neither may two blocks of a launch, in
 * any phase. The interpreter (interpret.ts) checks that, and that everything read was set.
 */
import type { Accumulator, DType } from "../../kernel/dtype.ts";
import type { Bound, Expr, Index, LoopVar } from "../../kernel/expr.ts";
import type { Operand, Store } from "../../kernel/loops.ts";

export type Memory =
  /** `operand` of the kernel; the first memories of a launch are all of them in order. */
  | { readonly scope: "global"; readonly operand: number; readonly dtype: DType; readonly elements: number }
  | { readonly scope: "shared"; readonly dtype: Accumulator; readonly elements: number }
  /** `indexed`: also by counters that are known only when the program runs. */
  | {
      readonly scope: "register" | "local";
      readonly dtype: Accumulator;
      readonly elements: number;
      readonly indexed?: boolean;
    };

/** An element of a memory; `operand` is the memory's number, as in loads and stores of nests. */
export interface Element {
  readonly operand: number;
  readonly index: Index;
}

/**
 * One more kind is foreseen: `mma`, which multiplies fragments (registers of the threads of a warp) and stands in a phase that
 * every thread of the block runs without condition.
 */
export type Statement =
  /** All values and indices first, then all stores. */
  | { readonly kind: "store"; readonly stores: readonly Store[] }
  /** sum = sum + a · b, rounded once; sum is in a register or a local. */
  | { readonly kind: "fma"; readonly sum: Element; readonly a: Expr; readonly b: Expr }
  /**
   * `count` neighbouring elements from one memory to another of the same type, as wide as the device can. Both indices are
   * multiples of `count`; so are the addresses, but for those of operands, which the printer knows.
   */
  | { readonly kind: "copy"; readonly to: Element; readonly from: Element; readonly count: 2 | 4 }
  /** For counter from 0 while below its extent, and below `limit` where there is one. */
  | {
      readonly kind: "for";
      readonly counter: LoopVar;
      readonly limit?: Index;
      /** Written out one by one, so that registers are indexed by constants; without a limit. */
      readonly unroll: boolean;
      /** One of many, of which a device's compiler should unroll none: it would not have the registers. */
      readonly rolled?: true;
      readonly body: readonly Statement[];
    }
  /** Where all bounds hold. */
  | { readonly kind: "if"; readonly bounds: readonly Bound[]; readonly body: readonly Statement[] };

/** All threads of a block, then a barrier. */
export interface Phase {
  readonly kind: "phase";
  readonly body: readonly Statement[];
}

/** A loop around phases; `limit` depends on counters of the grid and of `repeat` alone, or on global memory that the launch only reads. */
export interface Repeat {
  readonly kind: "repeat";
  readonly counter: LoopVar;
  readonly limit?: Index;
  readonly body: readonly Part[];
}

export type Part = Phase | Repeat;

export interface Launch {
  /** Counters of blocks, the last one running fastest; none for a single block. No extent is 0. */
  readonly grid: readonly LoopVar[];
  /** The number of a thread in its block; its extent is that of the block. */
  readonly thread: LoopVar;
  readonly memories: readonly Memory[];
  readonly body: readonly Part[];
  /** Skip the launch if these two operands have the same address. */
  readonly skipIfAliased?: readonly [number, number];
}

/** A kernel as launches, one after the other. */
export interface BlockProgram {
  readonly operands: readonly Operand[];
  readonly launches: readonly Launch[];
}

/** What schedules depend on. */
export interface DeviceClass {
  /** Threads of a block where a schedule has no reason for fewer: a power of two of at least 32. */
  readonly threads: number;
  /** Bytes of shared memory that a block may declare. */
  readonly sharedBytes: number;
  /** Threads that run in step: neighbours among them should read neighbours in memory. */
  readonly lanes: number;
  /** Blocks below this number leave parts of the device idle. */
  readonly multiprocessors: number;
  /** Products are rounded together with the sum that they are added to: in `contract` alone. */
  readonly fma: boolean;
}

/** The operands of a kernel as the first memories of a launch. */
export const operandMemories = (operands: readonly Operand[]): readonly Memory[] =>
  operands.map(({ dtype, elements }, operand) => ({ scope: "global", operand, dtype, elements }));

export const phase = (...body: readonly Statement[]): Phase => ({ kind: "phase", body });

export const storing = (...stores: readonly Store[]): Statement => ({ kind: "store", stores });

/** `body`, where there are bounds at all only where they hold. */
export const where = (bounds: readonly Bound[], body: readonly Statement[]): readonly Statement[] =>
  bounds.length === 0 ? body : [{ kind: "if", bounds, body }];

/** A loop; one that runs once is its body, since its counter is 0 wherever it stands in an index. */
export const loop = (counter: LoopVar, body: readonly Statement[], unroll = false): readonly Statement[] =>
  counter.extent === 1 ? body : [{ kind: "for", counter, unroll, body }];
