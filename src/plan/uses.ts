/** @file The steps that use stored values. */
import type { Value } from "../ir/graph.ts";
import type { Storage, Storages } from "./liveness.ts";
import type { Step } from "./problem.ts";
import { type Program, returnStepOf } from "./program.ts";

/** Steps that use a storage, in order: the one that writes it, or -1 for parameters, first; the return step for results. */
export function usesOf(program: Program, storages: Storages, of: ReadonlySet<Storage>): Map<Storage, Step[]> {
  const uses = new Map<Storage, Step[]>();
  for (const storage of of) uses.set(storage, storage.isParam ? [-1] : []);
  const use = (value: Value, step: Step): void => {
    const list = uses.get(storages.of(value));
    if (list && list.at(-1) !== step) list.push(step);
  };
  program.steps.forEach((step, i) => {
    for (const value of step.reads) use(value, i);
    for (const value of step.writes) use(value, i);
  });
  for (const value of program.results) use(value, returnStepOf(program));
  return uses;
}
