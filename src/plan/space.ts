/**
 * @file Memories. Values live in memory spaces: the arena of a device, the host's memory, a file. Each has an alignment and
 * limits of its own and is packed on its own; offsets count from the start of a space. The first space of a program is the
 * default: kernels compute in it, and `plan.height` is its height. The others are reached by copies alone (program.ts).
 *
 *     device  │ w │ h ──╮ │      ╭─→ h' │      capacity 24 GiB, alignment 256
 *     ────────┼───┼─────┼─┼──────┼──────┤
 *     host    │   │     ╰─→ h ───╯      │      capacity ∞, alignment 64
 */
import type { Value } from "../ir/graph.ts";
import type { Program } from "./program.ts";

export interface MemorySpace {
  /** For text and reports: `arena`, `device`, `host`. */
  readonly name: string;
  /** Bytes; every offset in the space and its height are multiples of it. */
  readonly alignment: number;
  /** The most bytes that plans may use of it, or Infinity. */
  readonly capacity: number;
  /** The most bytes of one buffer, or Infinity: what a target can bind at once. */
  readonly largestAllocation: number;
  /** The host reads and writes it without a copy. */
  readonly hostVisible: boolean;
}

/** Index into the spaces of a program. */
export type SpaceId = number;

/** The first is the default. */
export type Spaces = readonly [MemorySpace, ...MemorySpace[]];

/** A space without limits. */
export function memorySpace(alignment: number, limits: Partial<Omit<MemorySpace, "alignment">> = {}): MemorySpace {
  const unlimited = { capacity: Number.POSITIVE_INFINITY, largestAllocation: Number.POSITIVE_INFINITY };
  return { name: "arena", alignment, ...unlimited, hostVisible: true, ...limits };
}

/** The memory space that a value lives in. */
export function spaceOf(program: Program, value: Value): SpaceId {
  return program.spaceOf?.get(value) ?? 0;
}
