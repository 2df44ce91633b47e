/** @file What users see of the processes that run a program together. */
import { communicator } from "./communicator.ts";
import { type Launched, launched } from "./launched.ts";

/** The processes of a run that `mpirun` started. */
export type Processes = Launched;

/**
 * Which process this is, and of how many; one where it was started alone. From then on a process that fails ends all of them.
 *
 * ```ts
 * const { rank, size } = mpi();
 * const mine = batch.slice([{ start: (rank * 64) / size, end: ((rank + 1) * 64) / size }]);
 * ```
 */
export function mpi(): Processes {
  if (!launched()) return { rank: 0, size: 1 };
  const { rank, size } = communicator("mpi()");
  return { rank, size };
}
