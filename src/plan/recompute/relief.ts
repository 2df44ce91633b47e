/**
 * @file A plan by relief: starts with every operation once and, as long as a step is above the budget, computes one of
 * the values that are held across the fullest step again just before its next use.
 *
 * ```
 *   bytes   budget ┄┄┄┄┄▟█▙┄┄┄┄        v is held across the peak and read at r. Computing it again before r frees its
 *                  ▁▂▄▆█████▆▄▂▁       bytes from its last use to there, and holds its operands longer, or computes
 *                   v━━━━━━━━━r        those again too.
 * ```
 *
 * Of all values the one is taken that frees bytes above the budget at the least cost per byte. Where eviction in order
 * of time gets stuck (graphs in which all is read soon, and computing again needs much), this finds a plan.
 */
import type { FlatGraph } from "./flat-graph.ts";
import { Timeline } from "./timeline.ts";

/** Values to try at a step: first those with the most bytes for the cost of their operation, more if none of them helps. */
const CANDIDATES = 24;
/** Operations to compute again for one value, at most: at first, and where nothing else helps. */
const LONGEST = 12;
const LONGER = 60;

interface Trial {
  readonly value: number;
  readonly before: number;
  /** Operations that it may add. */
  readonly most: number;
}

/** The step with the most bytes above the budget that is not yet given up. */
function fullest(line: Timeline, givenUp: ReadonlySet<number>): number {
  let [worst, most] = [-1, line.budget];
  for (let step = 0; step !== line.end; step = line.next[step] as number) {
    const bytes = line.bytesAt(step);
    if (bytes > most && !givenUp.has(step)) [worst, most] = [step, bytes];
  }
  return worst;
}

function candidates(line: Timeline, step: number): readonly (readonly [number, number])[] {
  const { graph } = line;
  const found: (readonly [number, number, number])[] = [];
  for (let v = 0; v < graph.values; v++) {
    const op = graph.producer[v] as number;
    if (op < 0 || graph.once[op] || graph.bytes[v] === 0) continue;
    const read = line.readAfter(v, step);
    if (read >= 0) found.push([v, read, (graph.cost[op] as number) / (graph.bytes[v] as number)]);
  }
  found.sort((p, q) => p[2] - q[2] || p[0] - q[0]);
  return found.map(([v, read]) => [v, read]);
}

/** Computes `value` again before `before`, and up to `most` operations also what it reads and is not held there, and so on. */
function apply(line: Timeline, { value, before, most }: Trial): number[] {
  const { graph } = line;
  const added: number[] = [];
  const visit = (v: number, step: number): void => {
    const op = graph.producer[v] as number;
    const absent: number[] = [];
    for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number); i++) {
      const input = graph.inputs[i] as number;
      const maker = graph.producer[input] as number;
      if (!graph.once[maker] && !line.heldInto(input, step)) absent.push(input);
    }
    const at = line.insert(op, step);
    added.push(at);
    for (const input of absent) {
      // an operand of two of them is there by now
      if (added.length < most && line.op[line.touchBefore(input, at)] !== graph.producer[input]) visit(input, at);
    }
  };
  visit(value, before);
  return added;
}

/** The trial of some values that frees the most for its cost, or null if none frees anything. */
function bestOf(
  line: Timeline,
  values: readonly (readonly [number, number])[],
  lengths: readonly number[],
): Trial | null {
  const { cost, over } = line;
  let [best, least]: [Trial | null, number] = [null, Number.POSITIVE_INFINITY];
  for (const [value, before] of values) {
    let longest = 0;
    for (const most of lengths) {
      const trial = { value, before, most };
      const added = apply(line, trial);
      const freed = over - line.over;
      const price = (line.cost - cost) / freed;
      if (freed > 0 && price < least) [best, least] = [trial, price];
      const { length } = added;
      for (const inserted of added.reverse()) line.remove(inserted);
      if (length < most || length === longest) break;
      longest = length;
    }
  }
  return best;
}

function bestTrial(line: Timeline, step: number): Trial | null {
  const values = candidates(line, step);
  for (let from = 0; from < values.length; from += CANDIDATES) {
    const found = bestOf(line, values.slice(from, from + CANDIDATES), [1, LONGEST]);
    if (found) return found;
  }
  return bestOf(line, values.slice(0, 3 * CANDIDATES), [LONGER]);
}

/** The sequence that relief ends with, from `start` or every operation once; it may still be above the budget. */
export function relieve(
  graph: FlatGraph,
  budget: number,
  deadline = Number.POSITIVE_INFINITY,
  start: readonly number[] = Array.from({ length: graph.ops }, (_, op) => op),
): number[] {
  const line = new Timeline(graph, budget, start);
  const givenUp = new Set<number>();
  while (line.over > 0 && performance.now() < deadline) {
    const step = fullest(line, givenUp);
    if (step < 0) break;
    const trial = bestTrial(line, step);
    if (trial) apply(line, trial);
    else givenUp.add(step);
  }
  return line.sequence();
}
