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
 * Every offset is a multiple of `problem.alignment`, and so is the height: so the sum of the rounded-up sizes of
 * buffers live at one step is a lower bound of the height (bound.ts).
 *
 * A program with several memory spaces (space.ts) is one problem per space: `ProgramProblem` has the buffers of all
 * spaces, `problemIn` those of one.
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import type { Program } from "./program.ts";
import type { SpaceId, Spaces } from "./space.ts";

/** A position in the schedule. */
export type Step = number;
/** Index into `problem.buffers`. */
export type BufferId = number;

/** The steps [start, end) in which something exists. */
export interface Lifespan {
  readonly start: Step;
  readonly end: Step;
}

/**
 * What a buffer is for; for reports, never for decisions. Stacked in this order in charts.
 *
 * @example
 * import { BUFFER_KINDS } from "tidemark/plan";
 *
 * console.log(BUFFER_KINDS.join(" ")); // → persistent input result activation gradient update scratch
 */
export const BUFFER_KINDS = ["persistent", "input", "result", "activation", "gradient", "update", "scratch"] as const;
/** One of {@link BUFFER_KINDS}. */
export type BufferKind = (typeof BUFFER_KINDS)[number];

/** Storage of one or more values, one after the other or as names of the same bytes. */
export interface Buffer {
  readonly id: BufferId;
  /** In the order in which they are written; empty for workspace. */
  readonly values: readonly Value[];
  readonly lifespan: Lifespan;
  readonly bytes: number;
  readonly align: number;
  /** An offset decided before placement (persistent storage at the bottom of the arena). */
  readonly fixedAt?: number;
  readonly kind: BufferKind;
}

/** Buffers of one memory space, to be placed. */
export interface Problem {
  readonly buffers: readonly Buffer[];
  /** The budget in bytes, or Infinity. */
  readonly capacity: number;
  /** Divides every buffer's `align`. */
  readonly alignment: number;
}

/** A buffer among those of all spaces. */
export interface ProgramBuffer extends Buffer {
  readonly space: SpaceId;
}

/** Buffers of all memory spaces of a program. */
export interface ProgramProblem {
  readonly buffers: readonly ProgramBuffer[];
  /** The program's spaces; the capacity of the first is the budget, if there is one. */
  readonly spaces: Spaces;
}

/** A move at the return step, in list order. The storage of `from` holds `value`; `to` holds it afterwards. */
export interface Copy {
  readonly value: Value;
  readonly from: BufferId;
  readonly to: BufferId;
  /** The donated parameter whose storage is filled; null if the value is only saved from being overwritten. */
  readonly param: Value | null;
}

/** Values assigned to buffers, before addresses: the result of alias analysis. */
export interface Assignment {
  readonly program: Program;
  readonly problem: ProgramProblem;
  readonly bufferOf: ReadonlyMap<Value, BufferId>;
  /** Per step, the buffer of each of its workspaces. */
  readonly scratch: readonly (readonly BufferId[])[];
  /** Written value → the value read in the same step whose storage it takes over. */
  readonly inPlace: ReadonlyMap<Value, Value>;
  /** Final copies, to be executed in order after the last step. */
  readonly copies: readonly Copy[];
  /** Per result, the buffer that contains it after the run (not always `bufferOf`: see copies.ts). */
  readonly resultBuffers: readonly BufferId[];
}

/** The most bytes live at once. */
export interface Bound {
  readonly bytes: number;
  /** The first step at which it is reached. */
  readonly step: Step;
  /** Buffers live there, by id. */
  readonly live: readonly BufferId[];
}

/** The placement of one space. */
export interface Layout {
  /** Bytes of it that are used. */
  readonly height: number;
  readonly bound: Bound;
  /** Name of the placer that won. */
  readonly strategy: string;
}

/** `height`, `bound` and `strategy` are those of the first space, the arena. */
export interface Plan extends Assignment, Layout {
  /** Per buffer, within its space. */
  readonly offsets: readonly number[];
  /** Those of the other spaces, in their order. */
  readonly others: readonly Layout[];
}

/**
 * The placement of one space.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { layoutIn } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(layoutIn(plan, 0).height === plan.height); // → true
 */
export function layoutIn(plan: Plan, space: SpaceId): Layout {
  return space === 0 ? plan : at(plan.others, space - 1);
}

/**
 * The buffers of one space, with their ids among all buffers.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { problemIn } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(problemIn(plan.problem).buffers.length === plan.problem.buffers.length); // → true
 */
export function problemIn({ buffers, spaces }: ProgramProblem, space: SpaceId = 0): Problem {
  const { capacity, alignment } = at(spaces, space);
  return { buffers: spaces.length === 1 ? buffers : buffers.filter((b) => b.space === space), capacity, alignment };
}

/** The plan with another budget for its arena, at most the capacity of its space. */
export function withCapacity(plan: Plan, budgetBytes: number): Plan {
  const [first, ...others] = plan.problem.spaces;
  const capacity = Math.min(budgetBytes, plan.program.spaces[0].capacity);
  if (first.capacity === capacity) return plan;
  return { ...plan, problem: { ...plan.problem, spaces: [{ ...first, capacity }, ...others] } };
}

export function alignUp(bytes: number, align: number): number {
  return Math.ceil(bytes / align) * align;
}

export function overlapInTime(a: Lifespan, b: Lifespan): boolean {
  return a.start < b.end && b.start < a.end;
}

/** A problem of some of the buffers, renumbered in the order of `ids`. */
export function partOf(problem: Problem, ids: readonly number[]): Problem {
  return { ...problem, buffers: ids.map((id, index) => ({ ...at(problem.buffers, id), id: index })) };
}

/**
 * The arena that offsets need.
 *
 * @example
 * import { heightOf, parseCsv } from "tidemark/plan";
 *
 * const text = "id,lower,upper,size\na,0,2,64\nb,1,3,64";
 * const { problem } = parseCsv(text);
 * console.log(heightOf(problem, [0, 64])); // → 128
 */
export function heightOf(problem: Problem, offsets: ArrayLike<number>): number {
  let top = 0;
  for (const buffer of problem.buffers) {
    if (buffer.bytes > 0) top = Math.max(top, (offsets[buffer.id] ?? 0) + buffer.bytes);
  }
  return alignUp(top, problem.alignment);
}

/**
 * Byte range of a buffer.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { rangeOf } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * console.log(rangeOf(plan, 0).from); // → 18560
 */
export function rangeOf(plan: Plan, id: BufferId): { readonly from: number; readonly to: number } {
  const from = at(plan.offsets, id);
  return { from, to: from + at(plan.problem.buffers, id).bytes };
}

/**
 * The address of a value in its space.
 *
 * @example
 * import { compile, grad, type Tensor, zeros } from "tidemark";
 * import { addressOf } from "tidemark/plan";
 *
 * const slope = compile(grad((w: Tensor, x: Tensor) => x.matmul(w).tanh().sum()));
 * const { plan } = slope.program(zeros([64, 16]), zeros([32, 64]));
 * for (const result of plan.program.results) {
 *   const { from, to } = addressOf(plan, result);
 *   console.log(to - from); // → 4096
 * }
 */
export function addressOf(
  plan: Plan,
  value: Value,
): { readonly buffer: BufferId; readonly from: number; readonly to: number } {
  const buffer = plan.bufferOf.get(value) ?? -1;
  return { buffer, ...rangeOf(plan, buffer) };
}
