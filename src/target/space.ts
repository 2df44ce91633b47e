/** @file Memories of a target. */

/** A memory with its own alignment and limits. */
export interface MemorySpace {
  /** For text and reports: `arena`, `device`, `host`. */
  readonly name: string;
  /** Bytes; every offset in the space and its height are multiples of it. */
  readonly alignment: number;
  /** The most bytes that plans may use of it, or Infinity. */
  readonly capacity: number;
  /** The most bytes of one buffer, or Infinity: the limit of a binding. */
  readonly largestAllocation: number;
  /** The most bytes of an arena that can be had at all, or Infinity: asked when a program is loaded, not when it is planned. */
  readonly largestArena: number;
  /** The host reads and writes it without a copy. */
  readonly hostVisible: boolean;
}

/** The first is the default: kernels compute in it. */
export type Spaces = readonly [MemorySpace, ...MemorySpace[]];

/**
 * A space without limits.
 *
 * @example
 * import { memorySpace } from "tidemark/plan";
 *
 * console.log(memorySpace(64, { name: "host" }).alignment); // → 64
 */
export function memorySpace(alignment: number, limits: Partial<Omit<MemorySpace, "alignment">> = {}): MemorySpace {
  const most = Number.POSITIVE_INFINITY;
  const unlimited = { capacity: most, largestAllocation: most, largestArena: most };
  return { name: "arena", alignment, ...unlimited, hostVisible: true, ...limits };
}
