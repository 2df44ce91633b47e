/**
 * @file What the planner uses of the system where the system has it. It is handed to the planner, which looks for nothing by
 * itself: `tidemark/node` has a store of plans on disk and the package `highs`; elsewhere a solver is given as an option.
 */
import type { ExactPlanner } from "../plan/recompute/solver.ts";
import type { TargetDescription } from "../target/description.ts";
import type { LoopSupport } from "./loops.ts";
import type { OverlappedPlan } from "./overlap.ts";
import type { PlanStore } from "./plan-cache.ts";
import type { PlanRequest, SourceProgram } from "./request.ts";
import type { SpilledPlans } from "./spill.ts";
import type { ChosenProgram } from "./stored.ts";

/** Plans programs: with everything stored (stored.ts), or for whatever is asked of memory (assemble.ts). */
export interface Planner {
  assemble(source: SourceProgram, target: TargetDescription, request: PlanRequest, host: PlanningHost): ChosenProgram;
}

/** What planners use. */
export interface PlannerHost {
  /** Where plans are kept; null: nowhere. */
  readonly planStore: PlanStore | null;
  /** A solver of integer programs, for strategies that need one; called when a plan needs it. */
  readonly findSolver: () => ExactPlanner | undefined;
  /** Plans with a file as second memory (spill.ts), where there are files. */
  readonly spilledPlans?: SpilledPlans;
  /** Plans with collectives in flight while other steps run (overlap.ts), where there are other processes. */
  readonly overlappedPlan?: OverlappedPlan;
}

/** With what plans programs. */
export interface PlanningHost extends PlannerHost {
  readonly planner: Planner;
  /** Null until a program has a loop or a branch. */
  readonly loops: LoopSupport | null;
}

/** A system that has neither. */
export const NO_HOST: PlannerHost = { planStore: null, findSolver: () => undefined };
