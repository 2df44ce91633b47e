/**
 * @file Windows of a plan searched over states: what is present where a window begins is given, what is present where it
 * ends has to be present there, and in between the search is free.
 *
 * ```
 *   stages   0 … 3 │ 4 5 6 7 8 9 │ 10 …       cheaper than now, or nothing: a known cost makes the search short, and a
 *   present    enter▸             ◂leave       few stages are often searched completely
 * ```
 *
 * Like `windows.ts`, which needs a solver, this is large-neighbourhood search (Shaw, 1998); it is for small graphs.
 */
import type { FlatGraph } from "../plan/recompute/flat-graph.ts";
import { isSpent } from "../plan/recompute/meter.ts";
import { type StateOptions, searchStates } from "./state-search.ts";
import { heldAt, stageStarts } from "./windows.ts";

export interface StateWindowOptions extends Omit<StateOptions, "cutoff"> {
  /** Stages that a window has. */
  readonly stages: number;
}

/** `sequence` with windows of so many stages searched, one after the other, until none of them gets cheaper. */
export function improveByStates(
  graph: FlatGraph,
  budget: number,
  sequence: readonly number[],
  { stages, width, meter }: StateWindowOptions,
): readonly number[] {
  const costOf = (ops: readonly number[]): number => ops.reduce((sum, op) => sum + (graph.cost[op] as number), 0);
  let best = sequence;
  const half = Math.max(1, stages >> 1);
  let unchanged = 0;
  for (let from = 0; unchanged * half < graph.ops + stages && !isSpent(meter); from += half) {
    if (from >= graph.ops) from = 0;
    unchanged++;
    const to = Math.min(graph.ops, from + stages);
    const starts = stageStarts(graph, best);
    const [first, end] = [starts[from] as number, to === graph.ops ? best.length : (starts[to] as number)];
    const inside = best.slice(first, end);
    let cutoff = costOf(inside);
    for (let op = from; op < to; op++) cutoff -= graph.cost[op] as number;
    // sums of the same costs in another order differ in their last digits: no such difference is a cheaper window
    cutoff -= graph.baseCost * 1e-12;
    if (cutoff <= 0) continue;
    const leave = to === graph.ops ? graph.results : heldAt(graph, best, end);
    const window = { from, to, enter: heldAt(graph, best, first), leave };
    const options = { width, meter, cutoff: cutoff * (1 - 1e-9) };
    const cheaper = searchStates(graph, budget, options, window).sequence;
    if (!cheaper) continue;
    best = [...best.slice(0, first), ...cheaper, ...best.slice(end)];
    unchanged = 0;
  }
  return best;
}
