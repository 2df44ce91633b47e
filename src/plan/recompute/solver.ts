/**
 * @file What a solver of integer programs is here: a function that is given, so that this package depends on none. What is
 * done with it (src/remat) comes along with it, so that programs that never ask for the strategy `optimal` do not load that.
 */
import type { Candidate, FamilyOptions, Realise } from "../budget/budget-levels.ts";
import type { PlanFamily } from "../budget/family.ts";
import type { RecomputeProblem } from "./problem.ts";

/** The answer of a solver of integer programs. */
export interface SolverAnswer {
  /** `optimal`: proven; `feasible`: stopped with an answer; `infeasible`: proven that there is none; `unknown`: stopped. */
  readonly status: "optimal" | "feasible" | "infeasible" | "unknown";
  readonly objective: number;
  /** No answer has a smaller objective. */
  readonly bound: number;
  readonly value: (name: string) => number;
}

/** Limits of a solver of integer programs. */
export interface SolverLimits {
  readonly seconds: number;
  /** Relative gap at which an answer is good enough. */
  readonly gap: number;
  /** Nodes of the search tree, at most: an answer that ends there is the same on every machine. */
  readonly nodes?: number | undefined;
}

/** Solves a program in CPLEX's LP format. */
export type IntegerSolver = (program: string, limits: SolverLimits) => SolverAnswer;

/** The plans of the strategy `optimal`, which a solver makes. */
export interface ExactPlanner {
  readonly solve: IntegerSolver;
  /** `others`: families of the same program whose plans are this one's too. */
  family<R>(
    problem: RecomputeProblem,
    base: Candidate<R>,
    realise: Realise<R>,
    options: FamilyOptions & { readonly others: readonly PlanFamily<R>[] },
  ): PlanFamily<R>;
}
