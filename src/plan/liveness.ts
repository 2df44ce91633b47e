/**
 * @file When is each value's content needed? Half-open lifespans on the schedule:
 *
 *   - a value lives from the step that writes it to its last reader: [written, last read + 1)
 *   - parameters are there from step 0
 *   - results live through the return step
 *   - a persistent parameter is needed for the whole run (the next run reads it), unless it was donated: then its
 *     content dies at its last use. Its storage does not; that is alias.ts's business.
 *
 * Values that are names of the same bytes (alias steps) form one `Storage`, which lives as long as any of them.
 */
import { invariant } from "../base/invariant.ts";
import type { Value } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import type { Lifespan } from "./problem.ts";
import { type Program, returnStepOf } from "./program.ts";

interface Span {
  start: number;
  end: number;
}

/** Lifespan of every stored value's content. */
export function liveness(program: Program): ReadonlyMap<Value, Lifespan> {
  const spans = new Map<Value, Span>();
  const extend = (value: Value, end: number): void => {
    const span = spans.get(value);
    if (span) span.end = end;
  };
  for (const param of program.params) spans.set(param, { start: 0, end: 1 });
  program.steps.forEach((step, i) => {
    for (const value of step.reads) extend(value, i + 1);
    for (const value of step.writes) spans.set(value, { start: i, end: i + 1 });
  });
  const whole = returnStepOf(program) + 1;
  for (const value of program.results) extend(value, whole);
  for (const param of program.persistent) if (!program.donated.has(param)) extend(param, whole);
  return spans;
}

/** Values that are the same bytes by definition: one that is written, and its renamings. */
export interface Storage {
  /** Parameters in order, then in order of the first write. Breaks ties. */
  readonly id: number;
  readonly values: readonly Value[];
  readonly bytes: number;
  /** When its content is needed. */
  readonly lifespan: Lifespan;
  readonly isParam: boolean;
}

export interface Storages {
  readonly all: readonly Storage[];
  readonly of: (value: Value) => Storage;
}

/** Joins values over alias steps. */
export function storagesOf(program: Program): Storages {
  const lifespans = liveness(program);
  const all: Storage[] = [];
  const storageOf = new Map<Value, Storage>();
  const add = (value: Value, isParam: boolean): void => {
    const { start, end } = lifespans.get(value) as Lifespan;
    const storage = {
      id: all.length,
      values: [value],
      bytes: byteLength(value.type),
      lifespan: { start, end },
      isParam,
    };
    all.push(storage);
    storageOf.set(value, storage);
  };
  for (const param of program.params) add(param, true);
  for (const { alias, writes } of program.steps) {
    if (!alias) for (const value of writes) add(value, false);
    else rename(storageOf, alias[0], alias[1], (lifespans.get(alias[1]) as Lifespan).end);
  }
  const of = (value: Value): Storage => {
    const storage = storageOf.get(value);
    if (storage) return storage;
    return invariant(false, () => `${program.name}: ${value.name ?? "value"}#${value.id} is not stored`) as never;
  };
  return { all, of };
}

function rename(storageOf: Map<Value, Storage>, from: Value, to: Value, end: number): void {
  const storage = storageOf.get(from) as { values: Value[]; lifespan: { end: number } } & Storage;
  storage.values.push(to);
  storage.lifespan.end = Math.max(storage.lifespan.end, end);
  storageOf.set(to, storage);
}
