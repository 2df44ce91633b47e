/**
 * @file What a file costs in evaluations of a step, measured: the step on the first state, and one snapshot written and
 * read. Writes go on beside the steps, which the schedules do not model; a cost that is a little high keeps fewer files.
 */
import type { Tensor } from "../trace/tensor.ts";
import type { ForwardPrograms } from "./programs.ts";
import type { Store } from "./store.ts";

/** How long steps are run for a measurement; at least one is. */
const MEASURE_MS = 20;

export interface FileCosts {
  /** Of one snapshot, in evaluations of a step. */
  readonly writeCost: number;
  readonly readCost: number;
}

export async function measureCosts(
  programs: ForwardPrograms,
  start: readonly Tensor[],
  store: Store,
): Promise<FileCosts> {
  programs.startFrom(start);
  // the first call may still be compiled
  programs.advance(0);
  const before = performance.now();
  let steps = 0;
  do {
    programs.advance(0);
    steps++;
  } while (performance.now() - before < MEASURE_MS);
  const stepMs = (performance.now() - before) / steps;
  programs.startFrom(start);
  const label = { kind: "state", step: 0 } as const;
  const writing = performance.now();
  await store.put(label, (block) => programs.readState(block));
  await store.settled();
  const reading = performance.now();
  await store.get(label, (block) => programs.writeState(block));
  const done = performance.now();
  await store.remove(label);
  store.forget();
  return { writeCost: (reading - writing) / stepMs, readCost: (done - reading) / stepMs };
}
