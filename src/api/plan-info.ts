/** @file What a program needs: the numbers of its plan, with what is known of the traced function and of the target. */
import type { ChosenProgram } from "../compiler/stored.ts";
import type { RoundedReport } from "../ir/facts.ts";
import type { Graph } from "../ir/graph.ts";
import type { Plan } from "../plan/problem.ts";
import type { ChosenTarget } from "../runtime/choose-target.ts";
import { type PlacedFigures, placedFigures } from "./placed-figures.ts";
import { pathsOf, type TracedProgram } from "./traced-program.ts";

/** What a program needs. */
export interface PlanInfo {
  /** After all passes, in planned order. */
  readonly graph: Graph;
  readonly plan: Plan;
  readonly arenaBytes: number;
  /** With nothing recomputed, and loops that keep all that their reverses read. */
  readonly storeAllArenaBytes: number;
  /** Of the file that values are moved to (`spill`); 0 where none are. */
  readonly spillBytes: number;
  /** What it is for, and with `target: "auto"` why it is not for a faster one. */
  readonly target: string;
  readonly targetNote: string | null;
  /** Which strategy decided what is recomputed. */
  readonly strategy: string;
  /** How long a run should take, and the same as a multiple of what it would take with nothing recomputed. */
  readonly predictedMs: number;
  readonly slowdown: number;
  /**
   * Under the strategy `"optimal"`: what recomputation costs over the solver's bound for this budget, less 1, in the planner's
   * own count (docs/budget.md). Null where no solver was asked.
   */
  readonly gap: number | null;
  /** Whether the solver showed that no plan costs less; false where none was asked. */
  readonly proven: boolean;
  readonly lowerBoundBytes: number;
  /** Of the arena, what stays there between calls; and of the file (`spill`). */
  readonly persistentBytes: number;
  readonly spillPersistentBytes: number;
  /** Where each parameter of the graph comes from: `state.params.w0` of the arguments, or `captured[0]`. */
  readonly paths: readonly string[];
  /** Values that the backward pass reads rounded, under `lossy`. */
  readonly lossy: readonly RoundedReport[];
  /** Floating-point operations of one run. */
  readonly flops: number;
  readonly kernelCalls: number;
  readonly traceMs: number;
  /** Passes, kernels and the plan. */
  readonly planMs: number;
  /** Whether the plan was read from the cache (`cache`): `planMs` is then the time to read and check it. */
  readonly planCached: boolean;
}

/** The figures of a placed program with what is known of the traced function and of the target. @internal */
export function programFigures(
  figures: PlacedFigures,
  source: TracedProgram,
  { target, note }: ChosenTarget,
): Omit<PlanInfo, "graph" | "plan"> {
  const about = { target: target.description.name, targetNote: note };
  return { ...figures, ...about, paths: pathsOf(source), traceMs: source.traceMs };
}

/** The numbers of a placed program. @internal */
export function planInfo(source: TracedProgram, placed: ChosenProgram, target: ChosenTarget): PlanInfo {
  const { plan, graph } = placed;
  return { graph, plan, ...programFigures(placedFigures(placed), source, target) };
}
