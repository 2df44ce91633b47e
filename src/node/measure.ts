/**
 * @file Measures the cost of a file in evaluations of a step: the step on the first state, and one snapshot written and
 * read. Writes overlap with steps, which schedules do not model; a cost that is slightly too high keeps fewer files.
 */
import type { Tensor } from "../trace/tensor.ts";
import type { ForwardPrograms } from "./programs.ts";
import type { Store } from "./store.ts";

/** Minimum duration of a measurement; at least one step runs. */
const MEASURE_MS = 20;

/** What reading and writing a snapshot costs, in steps. */
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
  // the first call may include compilation
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
  store.resetCounts();
  return { writeCost: (reading - writing) / stepMs, readCost: (done - reading) / stepMs };
}
