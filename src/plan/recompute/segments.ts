/**
 * @file Recomputation by rule: which forward values are kept for the backward half; the rest is recomputed where
 * backward first reads it.
 *
 * ```
 *   forward    1  2  3 | 4  5  6 | 7  8  9      | ends a segment; what crosses a bar is kept: 3, 6
 *   backward   (7 8) 9' 8' 7'  (4 5) 6' 5' 4'  …   a segment is recomputed as a whole, once
 * ```
 *
 * With n operations and segments of √n, about 2√n values are held at a time and one more forward pass is paid: Chen et
 * al., "Training deep nets with sublinear memory cost", 2016.
 */
import { at } from "../../base/invariant.ts";
import { type Level, unitsOf } from "./levels.ts";
import { baseSequence, type RecomputeProblem, type Sequence } from "./problem.ts";
import { simulate } from "./simulate.ts";

/**
 * Where forward ends: marked by the graph, else at the peak without recomputation. An order for the peak may run a few
 * marked operations on the other side; the bar stands where the fewest do.
 */
export function forwardOps(problem: RecomputeProblem): number {
  if (!problem.ops.some((op) => op.backward)) return simulate(problem, baseSequence(problem)).peakStep + 1;
  let [best, at, right] = [0, 0, 0];
  problem.ops.forEach((op, index) => {
    right += op.backward ? -1 : 1;
    if (right >= best) [best, at] = [right, index + 1];
  });
  return at;
}

function makers(problem: RecomputeProblem): ReadonlyMap<number, number> {
  return new Map(problem.ops.flatMap((op, index) => op.outputs.map((value) => [value, index] as const)));
}

/**
 * The sequence that holds the values of `kept` from forward to backward and recomputes others at their first use there.
 * `retain`: recomputed values stay until their last use; otherwise each backward operation recomputes all that it reads.
 */
export function keepOnly(problem: RecomputeProblem, kept: ReadonlySet<number>, retain = true): Sequence {
  const forward = forwardOps(problem);
  const maker = makers(problem);
  const sequence: number[] = [];
  let present = new Set<number>(kept);
  // Inputs before what reads them, on a stack of its own: chains of thousands of operations are deeper than the engine's.
  const again = (value: number): void => {
    const stack: { readonly index: number; next: number }[] = [];
    const enter = (wanted: number): void => {
      const index = maker.get(wanted) ?? 0;
      const op = at(problem.ops, index);
      if (present.has(wanted) || op.once || index >= forward) return;
      for (const output of op.outputs) present.add(output);
      stack.push({ index, next: 0 });
    };
    enter(value);
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const input = at(problem.ops, top.index).inputs[top.next++];
      if (input !== undefined) enter(input);
      else sequence.push(stack.pop()?.index ?? 0);
    }
  };
  problem.ops.forEach((op, index) => {
    if (index >= forward) {
      if (!retain) present = new Set(kept);
      for (const value of op.inputs) again(value);
    }
    sequence.push(index);
  });
  return sequence;
}

/** Forward values that cross the bars set after every `length` units of forward operations. */
export function crossing(problem: RecomputeProblem, length: number, level: Level = "operation"): ReadonlySet<number> {
  const forward = forwardOps(problem);
  const maker = makers(problem);
  const units = unitsOf(problem, forward, level);
  const segment = (op: number): number => Math.floor(at(units, op) / length);
  const kept = new Set<number>();
  problem.ops.slice(0, forward).forEach((op, index) => {
    for (const value of op.inputs) if (segment(maker.get(value) ?? 0) < segment(index)) kept.add(value);
  });
  return kept;
}

export function everyK(problem: RecomputeProblem, length: number, level: Level = "operation"): Sequence {
  return keepOnly(problem, crossing(problem, Math.max(1, length), level));
}

/** Units of forward operations at a level. */
export function unitCount(problem: RecomputeProblem, level: Level = "operation"): number {
  return (unitsOf(problem, forwardOps(problem), level).at(-1) ?? -1) + 1;
}

export function squareRoot(problem: RecomputeProblem, level: Level = "operation"): Sequence {
  return everyK(problem, Math.ceil(Math.sqrt(unitCount(problem, level))), level);
}

/** Nothing is kept: every backward operation computes all that it reads from the constants. */
export function recomputeAll(problem: RecomputeProblem): Sequence {
  return keepOnly(problem, new Set(), false);
}

/** Keeps the values of operations for which `keep` says so: products and convolutions, say. */
export function selective(problem: RecomputeProblem, keep: (op: number) => boolean): Sequence {
  return keepOnly(problem, new Set(problem.ops.flatMap((op, index) => (keep(index) ? op.outputs : []))));
}

/** Cost per byte of what each operation writes: what is worth keeping. */
export function intensity(problem: RecomputeProblem): readonly number[] {
  return problem.ops.map(
    (op) =>
      op.cost /
      Math.max(
        1,
        op.outputs.reduce((sum, v) => sum + at(problem.bytes, v), 0),
      ),
  );
}

/** The cheapest of `sequences` within the budget, or null. */
export function cheapest(problem: RecomputeProblem, budget: number, sequences: Iterable<Sequence>): Sequence | null {
  let [best, least]: [Sequence | null, number] = [null, Number.POSITIVE_INFINITY];
  for (const sequence of sequences) {
    const { cost, peakBytes, violations } = simulate(problem, sequence);
    if (violations.length === 0 && peakBytes <= budget && cost < least) [best, least] = [sequence, cost];
  }
  return best;
}
