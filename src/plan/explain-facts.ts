/**
 * @file Facts for explanations, computed once for all values of a plan: writers, readers, renamings, overlapping
 * buffers. Explaining every value of a plan then takes as long as reading it, but for the overlaps, which are compared
 * pair by pair as numbers.
 */
import type { Value } from "../ir/graph.ts";
import { liveness } from "./liveness.ts";
import { type NameOf, nameValues } from "./names.ts";
import { type BufferId, type Lifespan, type Plan, rangeOf, type Step } from "./problem.ts";

/** A copy between memory spaces, with the steps of its halves. */
export interface CopySpan {
  readonly from: Value;
  readonly to: Value;
  readonly start: Step;
  readonly wait: Step;
}

export interface PlanFacts {
  readonly plan: Plan;
  readonly nameOf: NameOf;
  readonly lifespans: ReadonlyMap<Value, Lifespan>;
  /** Step that writes a value; parameters have none. */
  readonly writers: ReadonlyMap<Value, Step>;
  /** Steps that read a value, in order. */
  readers(value: Value): readonly Step[];
  /** Follows renamings back to the value that was written. */
  rootOf(value: Value): Value;
  /** The first step after `step` that reads a value under any name; -1 if there is none. */
  laterReader(root: Value, step: Step): Step;
  readonly results: ReadonlySet<Value>;
  readonly resultRoots: ReadonlySet<Value>;
  /** Parameters whose storage is a buffer. */
  paramsIn(buffer: BufferId | undefined): readonly Value[];
  /** Copies that read a value, and the one that wrote it: the steps that start and wait for each. */
  copiesFrom(value: Value): readonly CopySpan[];
  copyTo(value: Value): CopySpan | undefined;
  /** Other buffers of its memory space that have bytes in common with one, in order of their numbers. */
  overlapping(id: BufferId): readonly BufferId[];
}

/** Adds to a list under a key. */
function push<K, V>(lists: Map<K, V[]>, key: K, item: V): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}

function usesOf(plan: Plan) {
  const original = new Map<Value, Value>();
  const rootOf = (value: Value): Value => original.get(value) ?? value;
  const writers = new Map<Value, Step>();
  const readers = new Map<Value, Step[]>();
  const rootReaders = new Map<Value, Step[]>();
  plan.program.steps.forEach(({ alias, reads, writes }, step) => {
    for (const value of new Set(reads)) push(readers, value, step);
    for (const root of new Set(reads.map(rootOf))) push(rootReaders, root, step);
    for (const value of writes) writers.set(value, step);
    if (alias) original.set(alias[1], rootOf(alias[0]));
  });
  return { rootOf, writers, readers, rootReaders };
}

/** Compares columns of numbers: plans have tens of thousands of buffers. */
function overlaps(plan: Plan): (id: BufferId) => readonly BufferId[] {
  const ranges = plan.problem.buffers.map((b) => rangeOf(plan, b.id));
  const [from, to] = [Float64Array.from(ranges, (r) => r.from), Float64Array.from(ranges, (r) => r.to)];
  const space = Int32Array.from(plan.problem.buffers, (b) => b.space);
  return (id) => {
    const [low, high] = [from[id] as number, to[id] as number];
    const others: BufferId[] = [];
    for (let b = 0; b < from.length; b++) {
      const [start, end] = [from[b] as number, to[b] as number];
      if (start < high && low < end && start < end && b !== id && space[b] === space[id]) others.push(b);
    }
    return others;
  };
}

function copySpans(plan: Plan): readonly CopySpan[] {
  const waits = new Map<Value, Step>();
  plan.program.steps.forEach(({ copy }, step) => {
    if (copy?.kind === "wait") waits.set(copy.to, step);
  });
  return plan.program.steps.flatMap(({ copy }, start) =>
    copy?.kind === "start" ? [{ from: copy.from, to: copy.to, start, wait: waits.get(copy.to) ?? start }] : [],
  );
}

export function planFacts(plan: Plan): PlanFacts {
  const { program, bufferOf } = plan;
  const { rootOf, writers, readers, rootReaders } = usesOf(plan);
  const params = new Map<BufferId, Value[]>();
  for (const param of program.params) {
    const buffer = bufferOf.get(param);
    if (buffer !== undefined) push(params, buffer, param);
  }
  const spans = copySpans(plan);
  return {
    ...{ plan, writers, rootOf },
    copiesFrom: (value) => spans.filter(({ from }) => from === value),
    copyTo: (value) => spans.find(({ to }) => to === value),
    nameOf: nameValues(program),
    lifespans: liveness(program),
    readers: (value) => readers.get(value) ?? [],
    laterReader: (root, step) => rootReaders.get(root)?.find((s) => s > step) ?? -1,
    results: new Set(program.results),
    resultRoots: new Set(program.results.map(rootOf)),
    paramsIn: (buffer) => (buffer === undefined ? [] : (params.get(buffer) ?? [])),
    overlapping: overlaps(plan),
  };
}
