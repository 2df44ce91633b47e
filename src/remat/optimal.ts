/**
 * @file The exact answer for small graphs, and bounds: the program of `stage-program.ts` through a solver that is given,
 * so that this package depends on none. An answer that is above the budget at a repetition inside a stage has that
 * pair's bytes added and is solved again; the first that fits is optimal among schedules that compute a value once a
 * stage, in order, and no schedule with this order of first executions costs less than the bound.
 */
import type { FlatGraph } from "../plan/recompute/flat-graph.ts";
import { profiler } from "../plan/recompute/profile.ts";
import type { IntegerSolver } from "../plan/recompute/solver.ts";
import { printStageProgram, type StageWindow, sequenceOf, wholeWindow } from "./stage-program.ts";

/** A budget, and what solves programs about it. */
export interface Solving {
  readonly budget: number;
  readonly solver: IntegerSolver;
}

export interface OptimalOptions {
  readonly deadline: number;
  /** Relative gap at which the solver may stop. */
  readonly gap: number;
  /** The cost of a plan that is known; only cheaper ones are looked for. */
  readonly known: number;
  readonly nodes?: number | undefined;
}

export interface OptimalAnswer {
  readonly sequence: readonly number[] | null;
  /** No schedule with this order of first executions costs less. */
  readonly bound: number;
  /** The solver showed that no schedule in stages is cheaper than the sequence, or than what was known. */
  readonly proven: boolean;
}

/** Bytes at each step above the budget, as pairs of stage and operation; `null` when the sequence fits. */
function broken(graph: FlatGraph, budget: number, sequence: readonly number[]): readonly string[] | null {
  const { profile, bytesAt } = profiler(graph, budget, sequence.length);
  if (profile(Int32Array.from(sequence), sequence.length).overBytes === 0) return null;
  const pairs: string[] = [];
  let stage = 0;
  sequence.forEach((op, p) => {
    if ((bytesAt[p] as number) > budget && op < stage) pairs.push(`${stage} ${op}`);
    if (op === stage) stage++;
  });
  return pairs;
}

/** Least cost by the relaxation in which variables need not be whole; the known bound if the solver does not finish. */
export function relaxedBound(graph: FlatGraph, { budget, solver }: Solving, deadline: number): number {
  const seconds = (deadline - performance.now()) / 1000;
  if (seconds < 0.1) return graph.baseCost;
  const options = { budget, tight: new Set<string>(), cutoff: Number.POSITIVE_INFINITY, relaxed: true };
  const answer = solver(printStageProgram(graph, wholeWindow(graph), options), { seconds, gap: 0 });
  if (answer.status === "infeasible") return Number.POSITIVE_INFINITY;
  if (answer.status !== "optimal") return graph.baseCost;
  return graph.baseCost * (1 + Math.max(0, answer.objective - 1e-6) / 1000);
}

export function solveOptimal(graph: FlatGraph, { budget, solver }: Solving, options: OptimalOptions): OptimalAnswer {
  const window = wholeWindow(graph);
  const tight = new Set<string>();
  let bound = graph.baseCost;
  for (;;) {
    const seconds = (options.deadline - performance.now()) / 1000;
    if (seconds < 0.05) return { sequence: null, bound, proven: false };
    const cutoff = (options.known - graph.baseCost) * (1 - options.gap) - graph.baseCost * 1e-9;
    if (cutoff < 0) return { sequence: null, bound, proven: true };
    const program = printStageProgram(graph, window, { budget, tight, cutoff, relaxed: false });
    const answer = solver(program, { seconds, gap: options.gap, nodes: options.nodes });
    // with bytes inside stages the program is about schedules in stages; only without is it about all
    const all = tight.size === 0;
    if (answer.status === "infeasible") return { sequence: null, bound: all ? options.known : bound, proven: true };
    const least = Math.min(options.known, graph.baseCost * (1 + Math.max(0, answer.bound * (1 - 1e-9)) / 1000));
    if (all && Number.isFinite(least)) bound = Math.max(bound, least);
    if (answer.status === "unknown") return { sequence: null, bound, proven: false };
    const sequence = sequenceOf(graph, window, (name) => answer.value(name) > 0.5);
    const pairs = broken(graph, budget, sequence);
    if (pairs === null) return { sequence, bound, proven: answer.status === "optimal" };
    const before = tight.size;
    for (const pair of pairs) tight.add(pair);
    if (answer.status === "feasible" || tight.size === before) return { sequence: null, bound, proven: false };
  }
}

/** The window's stages solved exactly, everything outside as it is; null if nothing cheaper that fits was found. */
export function solveWindow(
  graph: FlatGraph,
  { budget, solver }: Solving,
  window: StageWindow,
  options: OptimalOptions,
): readonly number[] | null {
  const seconds = (options.deadline - performance.now()) / 1000;
  if (seconds < 0.05 || options.known <= 0) return null;
  const cutoff = options.known * (1 - 1e-6);
  const program = printStageProgram(graph, window, { budget, tight: new Set(), cutoff, relaxed: false });
  const answer = solver(program, { seconds, gap: options.gap });
  if (answer.status !== "optimal" && answer.status !== "feasible") return null;
  return sequenceOf(graph, window, (name) => answer.value(name) > 0.5);
}
