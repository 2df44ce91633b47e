/**
 * @file From groups of values to a placement problem: numbers the buffers, adds workspace and final copies, and puts
 * persistent storage at the bottom of the arena in parameter order, where it stays between runs:
 *
 *       ├── persistent: w1 │ w2 │ m1 │ … ──┼── everything else, placed by place.ts ──┤
 *       0                                  persistent bytes                          height
 *
 * Each memory space has its own persistent part at the bottom. Numbering: persistent buffers first, then by birth;
 * within a step, values before workspace.
 */
import { at } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { finalCopies } from "./copies.ts";
import type { Storage, Storages } from "./liveness.ts";
import {
  type Assignment,
  alignUp,
  type BufferId,
  type BufferKind,
  type Lifespan,
  type ProgramBuffer,
  type ProgramProblem,
  type Step,
} from "./problem.ts";
import { type Program, returnStepOf } from "./program.ts";

/** A buffer under construction. */
export interface BufferGroup {
  /** Sorted by start, then id. */
  readonly storages: readonly Storage[];
  /** It must exist for the whole run, whatever its content: storage of a persistent parameter. */
  readonly wholeRun: boolean;
  /** A final copy writes it at the return step, so no value in it may be needed then. */
  readonly filledByCopy: boolean;
}

export interface BufferGroups {
  readonly of: (storage: Storage) => BufferGroup;
  /** Written value → the value read in the same step whose storage it takes over. */
  readonly inPlace: ReadonlyMap<Value, Value>;
  /** Donated parameters whose replacement is stored elsewhere. */
  readonly pending: readonly Value[];
}

/** A buffer without its number. */
type Draft = Omit<ProgramBuffer, "id" | "fixedAt"> & { readonly group?: BufferGroup; readonly step?: number };

export function assembleProblem(
  program: Program,
  storages: Storages,
  groups: BufferGroups,
  capacity: number,
): Assignment {
  const drafts = draftBuffers(program, storages, groups);
  const buffers: ProgramBuffer[] = [];
  const scratch: BufferId[][] = program.steps.map(() => []);
  const bufferOfGroup = new Map<BufferGroup, BufferId>();
  const add = (draft: Draft, fixedAt?: number): BufferId => {
    const { values, lifespan, bytes, align, kind, space, group, step } = draft;
    const id = buffers.length;
    const buffer = { id, values, lifespan, bytes, align, kind, space };
    buffers.push(fixedAt === undefined ? buffer : { ...buffer, fixedAt });
    if (group) bufferOfGroup.set(group, id);
    if (step !== undefined) at(scratch, step).push(id);
    return id;
  };
  const floors = program.spaces.map(() => 0);
  for (const draft of drafts.filter((d) => d.kind === "persistent")) {
    const floor = at(floors, draft.space);
    add(draft, floor);
    floors[draft.space] = floor + alignUp(draft.bytes, draft.align);
  }
  const others = drafts.filter((d) => d.kind !== "persistent");
  for (const draft of others.sort((a, b) => a.lifespan.start - b.lifespan.start)) add(draft);

  const bufferOf = new Map<Value, BufferId>();
  for (const storage of storages.all) {
    const id = bufferOfGroup.get(groups.of(storage)) ?? -1;
    for (const value of storage.values) bufferOf.set(value, id);
  }
  const returnStep = returnStepOf(program);
  const aside = (value: Value, isResult: boolean): BufferId => {
    const { bytes, space } = storages.of(value);
    return add({
      values: [],
      lifespan: { start: returnStep, end: returnStep + 1 },
      ...{ bytes, space, align: at(program.spaces, space).alignment },
      kind: isResult ? "result" : "scratch",
    });
  };
  const { copies, resultBuffers } = finalCopies(program, groups.pending, bufferOf, aside);
  const [first, ...rest] = program.spaces;
  const arena = capacity < first.capacity ? { ...first, capacity } : first;
  const problem: ProgramProblem = { buffers, spaces: [arena, ...rest] };
  return { program, problem, bufferOf, scratch, inPlace: groups.inPlace, copies, resultBuffers };
}

/** All buffers in order of their first storage, then workspace in order of steps. */
function draftBuffers(program: Program, storages: Storages, groups: BufferGroups): Draft[] {
  const wholeRun: Lifespan = { start: 0, end: returnStepOf(program) + 1 };
  const kindOf = kinds(program);
  const seen = new Set<BufferGroup>();
  const drafts: Draft[] = [];
  for (const storage of storages.all) {
    const group = groups.of(storage);
    if (seen.has(group)) continue;
    seen.add(group);
    const first = at(group.storages, 0);
    const values = group.storages.length === 1 ? first.values : group.storages.flatMap((s) => s.values);
    const end = group.storages.reduce((latest, s) => Math.max(latest, s.lifespan.end), 0);
    const lifespan = group.wholeRun ? wholeRun : { start: first.lifespan.start, end };
    const kind = kindOf(values, first.lifespan.start);
    const { bytes, space } = first;
    drafts.push({ values, lifespan, bytes, align: at(program.spaces, space).alignment, kind, space, group });
  }
  const align = program.spaces[0].alignment;
  program.steps.forEach((step, i) => {
    for (const bytes of step.scratch) {
      const lifespan = { start: i, end: i + 1 };
      drafts.push({ values: [], lifespan, bytes, align, kind: "scratch", space: 0, step: i });
    }
  });
  return drafts;
}

/** The kind of a buffer of these values: why it must be kept, otherwise the phase of its first writer. */
function kinds(program: Program): (values: readonly Value[], first: Step) => BufferKind {
  const params = new Set(program.params);
  const results = new Set(program.results);
  const byPhase = { forward: "activation", backward: "gradient", update: "update" } as const;
  // The writer of a buffer's first value is the step that the buffer begins with.
  return (values, first) => {
    if (values.some((v) => program.persistent.has(v))) return "persistent";
    if (values.some((v) => params.has(v))) return "input";
    if (values.some((v) => results.has(v))) return "result";
    return byPhase[program.steps[first]?.node.phase ?? "forward"];
  };
}
