/** @file What users see of the processes that run a program together. */
import { communicator } from "./communicator.ts";
import { type Launched, launched } from "./launched.ts";

/** The processes of a run that `mpirun` started. */
export type Processes = Launched;

/**
 * Which process this is, and of how many; one where it was started alone. From then on a process that fails ends all of them.
 *
 * @throws In a process that `mpirun` started: TargetUnsupported where MPI is missing or does not start,
 * and in worker threads
 *
 * @example
 * import { mpi } from "tidemark/node";
 *
 * const { rank, size } = mpi();
 * console.log(rank, size); // → 0 1
 */
export function mpi(): Processes {
  if (!launched()) return { rank: 0, size: 1 };
  const { rank, size } = communicator("mpi()");
  return { rank, size };
}
