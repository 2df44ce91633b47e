/**
 * @file The vocabulary of planning, after MiniMalloc (Moffitt, ASPLOS 2023): buffers with lifespans and sizes make a
 * problem, offsets make it a plan. All intervals are half-open, in time and in bytes:
 *
 *     bytes
 *       │      ┌──────┐              Buffer b1: lifespan [2, 5), bytes = to - from
 *    to ┤- - - │  b1  │              Plan: offsets[b1] = from
 *       │ ┌────┴──┬───┘              height = highest `to`, rounded up to the alignment
 *  from ┤ │  b0   │
 *     0 ┼─┴──┬──┬─┴┬──┬── step
 *         0  1  2  3  4  5
 *
 * Every offset is a multiple of `problem.alignment`, and so is the height: that makes the sum of rounded-up sizes of what
 * is live at one step a lower bound of the height (bound.ts).
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import type { Program } from "./program.ts";

/** A position in the schedule. */
export type Step = number;
/** Index into `problem.buffers`. */
export type BufferId = number;

export interface Lifespan {
  readonly start: Step;
  readonly end: Step;
}

/** What a buffer is for; for reports, never for decisions. Stacked in this order in charts. */
export const BUFFER_KINDS = ["persistent", "input", "result", "activation", "gradient", "update", "scratch"] as const;
export type BufferKind = (typeof BUFFER_KINDS)[number];

/** Storage of one or more values, one after the other or as names of the same bytes. */
export interface Buffer {
  readonly id: BufferId;
  /** In the order in which they are written; empty for workspace. */
  readonly values: readonly Value[];
  readonly lifespan: Lifespan;
  readonly bytes: number;
  readonly align: number;
  /** Its offset was decided before placing (persistent storage at the bottom of the arena). */
  readonly fixedAt?: number;
  readonly kind: BufferKind;
}

export interface Problem {
  readonly buffers: readonly Buffer[];
  /** The budget in bytes, or Infinity. */
  readonly capacity: number;
  /** Divides every buffer's `align`. */
  readonly alignment: number;
}

/** A move at the return step, in list order. The storage of `from` holds `value`; `to` holds it afterwards. */
export interface Copy {
  readonly value: Value;
  readonly from: BufferId;
  readonly to: BufferId;
  /** The donated parameter whose storage is filled; null when the value is only put aside from being overwritten. */
  readonly param: Value | null;
}

/** Who is stored where, before addresses: the outcome of alias analysis. */
export interface Assignment {
  readonly program: Program;
  readonly problem: Problem;
  readonly bufferOf: ReadonlyMap<Value, BufferId>;
  /** Per step, the buffer of each of its workspaces. */
  readonly scratch: readonly (readonly BufferId[])[];
  /** Written value → the value read in the same step whose storage it takes over. */
  readonly inPlace: ReadonlyMap<Value, Value>;
  /** Final copies, to be executed in order after the last step. */
  readonly copies: readonly Copy[];
  /** Per result, the buffer that holds it when the run is over (not always `bufferOf`: see copies.ts). */
  readonly resultBuffers: readonly BufferId[];
}

/** The most that must be live at once. */
export interface Bound {
  readonly bytes: number;
  /** The first step at which it is reached. */
  readonly step: Step;
  /** Buffers live there, by id. */
  readonly live: readonly BufferId[];
}

export interface Plan extends Assignment {
  /** Per buffer. */
  readonly offsets: readonly number[];
  /** Bytes of the arena. */
  readonly height: number;
  readonly bound: Bound;
  /** Name of the placer that won. */
  readonly strategy: string;
}

export function alignUp(bytes: number, align: number): number {
  return Math.ceil(bytes / align) * align;
}

export function overlapInTime(a: Lifespan, b: Lifespan): boolean {
  return a.start < b.end && b.start < a.end;
}

/** A problem of some of the buffers, numbered anew in the order of `ids`. */
export function partOf(problem: Problem, ids: readonly number[]): Problem {
  return { ...problem, buffers: ids.map((id, index) => ({ ...at(problem.buffers, id), id: index })) };
}

/** The arena that offsets need. */
export function heightOf(problem: Problem, offsets: ArrayLike<number>): number {
  let top = 0;
  for (const buffer of problem.buffers) {
    if (buffer.bytes > 0) top = Math.max(top, (offsets[buffer.id] ?? 0) + buffer.bytes);
  }
  return alignUp(top, problem.alignment);
}

/** Byte range of a buffer. */
export function rangeOf(plan: Plan, id: BufferId): { readonly from: number; readonly to: number } {
  const from = at(plan.offsets, id);
  return { from, to: from + at(plan.problem.buffers, id).bytes };
}

/** Where a value is in the arena while it lives. */
export function addressOf(
  plan: Plan,
  value: Value,
): { readonly buffer: BufferId; readonly from: number; readonly to: number } {
  const buffer = plan.bufferOf.get(value) ?? -1;
  return { buffer, ...rangeOf(plan, buffer) };
}
