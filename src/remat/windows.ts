/**
 * @file Windows of a plan solved exactly. A long sequence is cut at first executions; the stages in between are given to
 * the integer program with what is held at both ends fixed, and the answer is taken if the whole still fits and is
 * cheaper. Large-neighbourhood search (Shaw, 1998) with an exact solver for the neighbourhood.
 */
import { at } from "../base/invariant.ts";
import type { FlatGraph } from "../plan/recompute/flat-graph.ts";
import { profiler } from "../plan/recompute/profile.ts";
import { type Solving, solveWindow } from "./optimal.ts";
import type { StageWindow } from "./stage-program.ts";

/** Where each stage begins in the sequence, and the end. */
export function stageStarts(graph: FlatGraph, sequence: readonly number[]): readonly number[] {
  const starts = [0];
  sequence.forEach((op, p) => {
    if (op === starts.length - 1 && starts.length <= graph.ops) starts.push(p + 1);
  });
  return starts;
}

/** Values held across the gap before position `p`: those whose next touch is a read. */
export function heldAt(graph: FlatGraph, sequence: readonly number[], p: number): Set<number> {
  const held = new Set<number>();
  const touched = new Set<number>();
  for (let q = p; q < sequence.length; q++) {
    const op = at(sequence, q);
    for (let i = at(graph.inputStart, op); i < at(graph.inputStart, op + 1); i++) {
      const v = at(graph.inputs, i);
      if (!touched.has(v)) held.add(v);
      touched.add(v);
    }
    for (let o = at(graph.outputStart, op); o < at(graph.outputStart, op + 1); o++) touched.add(at(graph.outputs, o));
  }
  for (const v of graph.results) if (!touched.has(v)) held.add(v);
  return held;
}

/** Operations worth allowing again: makers of what is held at either end, those that run, and what all of these read. */
function candidatesOf(graph: FlatGraph, ran: readonly number[], held: Iterable<number>): Set<number> {
  const candidates = new Set<number>(ran);
  for (const v of held) candidates.add(at(graph.producer, v));
  for (const op of [...candidates]) {
    for (let i = at(graph.inputStart, op); i < at(graph.inputStart, op + 1); i++) {
      candidates.add(at(graph.producer, at(graph.inputs, i)));
    }
  }
  return candidates;
}

/** Stages times candidates that a program may have: about a second of solving. */
const LARGEST = 6_000;

export interface WindowOptions {
  /** Stages a window has, at most. */
  readonly stages: number;
  /** Seconds for one window. */
  readonly seconds: number;
  readonly deadline: number;
}

function costOf(graph: FlatGraph, sequence: readonly number[]): number {
  return sequence.reduce((sum, op) => sum + at(graph.cost, op), 0);
}

/** `sequence` with windows improved, from the front to the back, until the deadline. */
export function improveWindows(
  graph: FlatGraph,
  solving: Solving,
  sequence: readonly number[],
  options: WindowOptions,
): readonly number[] {
  const { budget } = solving;
  let best = sequence;
  const half = Math.max(1, options.stages >> 1);
  for (let from = 0; from < graph.ops && performance.now() < options.deadline; from += half) {
    const to = Math.min(graph.ops, from + options.stages);
    const starts = stageStarts(graph, best);
    const ran = best.slice(at(starts, from), at(starts, to));
    const known =
      costOf(graph, ran) -
      costOf(
        graph,
        Array.from({ length: to - from }, (_, i) => from + i),
      );
    if (known <= 0) continue;
    const enter = heldAt(graph, best, at(starts, from));
    const leave = heldAt(graph, best, at(starts, to));
    const window: StageWindow = { from, to, enter, leave, candidates: candidatesOf(graph, ran, [...enter, ...leave]) };
    if ((to - from) * (window.candidates?.size ?? 0) > LARGEST) continue;
    const deadline = Math.min(options.deadline, performance.now() + options.seconds * 1000);
    const inside = solveWindow(graph, solving, window, { deadline, gap: 1e-4, known });
    if (inside === null) continue;
    const trial = [...best.slice(0, at(starts, from)), ...inside, ...best.slice(at(starts, to))];
    const { overBytes, cost } = profiler(graph, budget, trial.length).profile(Int32Array.from(trial), trial.length);
    if (overBytes === 0 && cost < costOf(graph, best)) best = trial;
  }
  return best;
}
