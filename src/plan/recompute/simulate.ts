/**
 * @file The independent checker: runs a sequence and says what it costs and whether it is one. It shares no code with
 * the planners (they keep profiles in typed arrays, this keeps a set of live values); every published figure is its.
 *
 * A first pass from the back finds, for each step, which values are read again before they are written again; a second
 * from the front keeps the live set.
 */
import { at } from "../../base/invariant.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";

/** What a sequence costs, as {@link simulate} counts it. */
export interface Simulation {
  readonly peakBytes: number;
  /** The step of the sequence at which the peak is reached first. */
  readonly peakStep: number;
  readonly cost: number;
  /** Sentences; empty for a valid sequence. */
  readonly violations: readonly string[];
}

/** `dies[step]`: values that no later step reads before writing them. */
function deaths(problem: RecomputeProblem, sequence: Sequence): readonly (readonly number[])[] {
  const needed = new Set(problem.results);
  const dies: number[][] = sequence.map(() => []);
  for (let step = sequence.length - 1; step >= 0; step--) {
    const op = problem.ops[at(sequence, step)];
    if (!op) continue;
    const touched = [...op.inputs, ...op.outputs];
    dies[step] = touched.filter((value) => !needed.has(value));
    for (const value of op.outputs) needed.delete(value);
    for (const value of op.inputs) needed.add(value);
  }
  return dies;
}

/**
 * Runs `sequence`; `problem` is taken as checked.
 *
 * @example
 * import { baseSequence, readGraph, simulate } from "tidemark/plan";
 *
 * const nodes = [0, 1].map((id) => ({ id, cost_cpu: 1, cost_ram: 1 }));
 * const problem = readGraph(JSON.stringify({ graph: {}, nodes, links: [{ source: 0, target: 1 }] }));
 * console.log(simulate(problem, baseSequence(problem)).peakBytes); // → 2
 */
export function simulate(problem: RecomputeProblem, sequence: Sequence): Simulation {
  const violations: string[] = [];
  const dies = deaths(problem, sequence);
  const live = new Set<number>();
  let liveBytes = 0;
  let [peakBytes, peakStep, cost, started] = [0, 0, 0, 0];
  sequence.forEach((index, step) => {
    const op = problem.ops[index];
    if (!op) {
      violations.push(`step ${step}: there is no operation ${index}`);
      return;
    }
    const again = index < started;
    if (index > started) violations.push(`step ${step}: ${op.name} runs before the operation that precedes it`);
    if (again && op.once) violations.push(`step ${step}: ${op.name} may run only once`);
    for (const value of op.inputs) {
      if (!live.has(value)) violations.push(`step ${step}: ${op.name} reads value ${value}, which is not present`);
    }
    for (const value of op.outputs) {
      if (live.has(value)) continue;
      live.add(value);
      liveBytes += at(problem.bytes, value);
    }
    const total = liveBytes + (op.scratchBytes ?? 0) + at(problem.pinnedBytes, started);
    if (total > peakBytes) [peakBytes, peakStep] = [total, step];
    cost += op.cost;
    if (!again) started = Math.max(started, index + 1);
    for (const value of at(dies, step)) {
      if (live.delete(value)) liveBytes -= at(problem.bytes, value);
    }
  });
  const missing = problem.ops.length - started;
  if (missing > 0) violations.push(`${missing} operations never run`);
  for (const value of problem.results) {
    if (!live.has(value)) violations.push(`result ${value} is not present at the end`);
  }
  return { peakBytes, peakStep, cost, violations };
}
