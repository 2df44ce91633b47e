/**
 * @file The solver of integer programs, for strategies that need one. It is a package of its own that the core does not load:
 * `tidemark/node` makes known how it is found, and elsewhere it is given as an option.
 */
import type { IntegerSolver } from "../plan/recompute/optimal.ts";

let find: () => IntegerSolver | undefined = () => undefined;

/** Makes known how the solver is found; it is looked for when a plan needs it. */
export function provideSolver(provided: () => IntegerSolver | undefined): void {
  find = provided;
}

/** The solver that was made known, if there is one. */
export const knownSolver = (): IntegerSolver | undefined => find();
