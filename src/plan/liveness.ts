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

/** Lifespan of every stored value's content. */
export function liveness(program: Program): ReadonlyMap<Value, Lifespan> {
  const start = new Map<Value, number>();
  const end = new Map<Value, number>();
  const define = (value: Value, step: number) => {
    start.set(value, step);
    end.set(value, step + 1);
  };
  for (const param of program.params) define(param, 0);
  program.steps.forEach((step, i) => {
    for (const value of step.reads) end.set(value, i + 1);
    for (const value of step.writes) define(value, i);
  });
  const whole = returnStepOf(program) + 1;
  for (const value of program.results) end.set(value, whole);
  for (const param of program.persistent) if (!program.donated.has(param)) end.set(param, whole);
  return new Map([...start].map(([value, s]) => [value, { start: s, end: end.get(value) ?? s + 1 }]));
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
  const groups: Value[][] = program.params.map((param) => [param]);
  const groupOf = new Map<Value, Value[]>(groups.map((group, i) => [program.params[i] as Value, group]));
  for (const step of program.steps) {
    const shared = step.alias ? groupOf.get(step.alias[0]) : undefined;
    for (const value of step.writes) {
      const group = shared ?? [];
      if (!shared) groups.push(group);
      group.push(value);
      groupOf.set(value, group);
    }
  }
  const storageOf = new Map<Value, Storage>();
  const all = groups.map((values, id): Storage => {
    const spans = values.map((v) => lifespans.get(v) as Lifespan);
    const lifespan = { start: spans[0]?.start ?? 0, end: spans.reduce((end, span) => Math.max(end, span.end), 0) };
    const bytes = byteLength((values[0] as Value).type);
    const storage = { id, values, bytes, lifespan, isParam: id < program.params.length };
    for (const value of values) storageOf.set(value, storage);
    return storage;
  });
  const of = (value: Value): Storage => {
    const storage = storageOf.get(value);
    invariant(storage, () => `${program.name}: ${value.name ?? "value"}#${value.id} is not stored`);
    return storage;
  };
  return { all, of };
}
