/**
 * @file A program with its steps in one order, and what follows from that, each computed once when it is first asked for:
 * buffers, their lower bound, their places. Orders are compared by their bounds, and few are placed.
 */
import { at } from "../base/invariant.ts";
import { assignBuffers } from "./alias.ts";
import { boundOf } from "./bound.ts";
import { place } from "./place.ts";
import {
  type Assignment,
  type Bound,
  type Layout,
  type Plan,
  type ProgramProblem,
  partOf,
  problemIn,
} from "./problem.ts";
import type { Program } from "./program.ts";
import type { SpaceId } from "./space.ts";

export class Draft {
  readonly program: Program;
  #assignment: Assignment | undefined;
  #bound: Bound | undefined;
  #plan: Plan | undefined;

  constructor(program: Program) {
    this.program = program;
  }

  get assignment(): Assignment {
    this.#assignment ??= assignBuffers(this.program);
    return this.#assignment;
  }

  /** Of the arena. */
  get bound(): Bound {
    this.#bound ??= boundOf(problemIn(this.assignment.problem));
    return this.#bound;
  }

  get plan(): Plan {
    this.#plan ??= this.#placed();
    return this.#plan;
  }

  #placed(): Plan {
    const { assignment, bound, program } = this;
    if (program.spaces.length > 1) return { ...assignment, ...placeSpaces(assignment.problem) };
    return { ...assignment, ...place(problemIn(assignment.problem), bound.bytes), bound, others: [] };
  }
}

/** Every space is a separate problem, with its buffers renumbered. */
function placeSpaces({ buffers, spaces }: ProgramProblem): Pick<Plan, "offsets" | "others" | keyof Layout> {
  const offsets = new Array<number>(buffers.length).fill(0);
  const layoutOf = (space: SpaceId): Layout => {
    const { capacity, alignment } = at(spaces, space);
    const ids = buffers.filter((b) => b.space === space).map((b) => b.id);
    const part = partOf({ buffers, capacity, alignment }, ids);
    const bound = boundOf(part);
    const { height, strategy, offsets: partOffsets } = place(part, bound.bytes);
    ids.forEach((id, index) => {
      offsets[id] = at(partOffsets, index);
    });
    return { height, strategy, bound: { ...bound, live: bound.live.map((index) => at(ids, index)) } };
  };
  const first = layoutOf(0);
  return { offsets, ...first, others: spaces.slice(1).map((_, i) => layoutOf(i + 1)) };
}
