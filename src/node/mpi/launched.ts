/** @file Whether this process is one of several that `mpirun` started, which the variables of its environment say. */

export interface Launched {
  /** The number of this process, from 0. */
  readonly rank: number;
  /** Of processes. */
  readonly size: number;
}

/** Of OpenMPI, of MPICH and others that use its protocol. */
const VARIABLES = [
  ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
  ["PMI_RANK", "PMI_SIZE"],
] as const;

/** The number among the processes of one machine, of OpenMPI, MPICH and Slurm. */
const ON_MACHINE = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"];

/** The number of this process among those on its machine; 0 where it was started alone. */
export function numberOnMachine(env: Readonly<Record<string, string | undefined>> = process.env): number {
  const started = launched(env);
  if (!started) return 0;
  const said = ON_MACHINE.map((name) => Number(env[name] || Number.NaN)).find(Number.isInteger);
  // else machines with as many processes as each other, filled one after the other
  return said ?? started.rank;
}

/** Null where this process was started alone. */
export function launched(env: Readonly<Record<string, string | undefined>> = process.env): Launched | null {
  for (const [rankName, sizeName] of VARIABLES) {
    const [rank, size] = [Number(env[rankName] || Number.NaN), Number(env[sizeName] || Number.NaN)];
    if (Number.isInteger(rank) && Number.isInteger(size)) return { rank, size };
  }
  return null;
}
