/**
 * @file Simulated annealing of sequences. Adding a computation anywhere after the first, or removing one that is not the
 * first, always leaves a valid sequence: only its time and bytes change. So annealing works on sequences directly, with
 * bytes above the budget as a penalty whose price adapts until about a third of the visited sequences fit.
 *
 * Moves: remove a repetition; recompute a value just before one of its uses, alone or with ancestors that are not held there;
 * shift a repetition; remove one and repair the step that exceeds the budget most by recomputing another value. Kirkpatrick et al., "Optimization by simulated annealing", 1983.
 */
import type { FlatGraph } from "./flat-graph.ts";
import { isLate, type Meter } from "./meter.ts";
import { seededRandom } from "./random.ts";
import { Timeline } from "./timeline.ts";

export interface AnnealOptions {
  readonly seed: number;
  readonly meter: Meter;
  /** First and last temperature, in costs of an average operation. */
  readonly hot: number;
  readonly cold: number;
}

/** Moves from one check of the limits to the next, and the work of one besides its edits. */
const [CHECKED, MOVE] = [256, 4];

/** An edit: a step that was added, or an operation that was removed from before a step. */
interface Edit {
  readonly step: number;
  /** -1 for a step that was added. */
  readonly op: number;
  readonly before: number;
}

interface Annealing {
  readonly line: Timeline;
  readonly below: (count: number) => number;
  readonly edits: Edit[];
}

/** The best sequence within `budget` found from `initial`, which may itself be above it; null if none was met. */
export function anneal(
  graph: FlatGraph,
  budget: number,
  initial: readonly number[],
  options: AnnealOptions,
): number[] | null {
  const { seed, meter, hot, cold } = options;
  const random = seededRandom(seed);
  const line = new Timeline(graph, budget, initial);
  const state: Annealing = { line, below: (count) => Math.floor(random() * count), edits: [] };
  let best: number[] | null = line.over > 0 ? null : [...initial];
  let bestCost = line.over > 0 ? Number.POSITIVE_INFINITY : line.cost;
  const mean = graph.baseCost / graph.ops;
  let price = graph.baseCost / budget;
  let [fitting, temperature] = [0, mean * hot];
  const began = performance.now();
  for (let move = 0; ; move++) {
    if (move % CHECKED === 0) {
      if (line.work > meter.left || isLate(meter.deadline)) break;
      // whichever ends first, work or time, is cold at its end
      const time = (performance.now() - began) / Math.max(1, meter.deadline - began);
      temperature = mean * hot * (cold / hot) ** Math.max(line.work / Math.max(1, meter.left), time);
      price *= fitting > 100 ? 0.9 : 1.1;
      fitting = 0;
    }
    const { cost, over } = line;
    state.edits.length = 0;
    line.work += MOVE;
    const isMade = propose(state, random());
    const worse = line.cost - cost + price * (line.over - over);
    if (!isMade || (worse > 0 && random() >= Math.exp(-worse / temperature))) undo(state);
    if (line.over > 0) continue;
    fitting++;
    if (line.cost >= bestCost * (1 - 1e-12)) continue;
    bestCost = line.cost;
    best = line.sequence();
    line.work += best.length;
  }
  meter.left -= line.work;
  return best;
}

function undo({ line, edits }: Annealing): void {
  const renamed = new Map<number, number>();
  const current = (step: number): number => renamed.get(step) ?? step;
  for (let edit = edits.pop(); edit; edit = edits.pop()) {
    if (edit.op < 0) line.remove(current(edit.step));
    else renamed.set(edit.step, line.insert(edit.op, current(edit.before)));
  }
}

function add(state: Annealing, op: number, before: number): number {
  const step = state.line.insert(op, before);
  state.edits.push({ step, op: -1, before });
  return step;
}

function propose(state: Annealing, roll: number): boolean {
  if (roll < 0.25) return takeAway(state) >= 0;
  if (roll < 0.5) return repeat(state);
  if (roll < 0.75) return shift(state);
  if (roll < 0.88) return takeAway(state) >= 0 && repeat(state);
  return exchange(state);
}

/** Removes a random repetition and returns the step that came after it, or -1. */
function takeAway(state: Annealing): number {
  const { line, below, edits } = state;
  if (line.repetitions.length === 0) return -1;
  const step = line.repetitions[below(line.repetitions.length)] as number;
  const before = line.next[step] as number;
  edits.push({ step, op: line.op[step] as number, before });
  line.remove(step);
  return before;
}

function randomStep({ line, below }: Annealing): number {
  const k = below(line.end + 1 + line.repetitions.length);
  return k <= line.end ? k : (line.repetitions[k - line.end - 1] as number);
}

/** Recomputes an operand of a random step just before it. */
function repeat(state: Annealing): boolean {
  const step = randomStep(state);
  const value = randomInput(state, step);
  return value >= 0 && repeatBefore(state, value, step);
}

function randomInput({ line, below }: Annealing, step: number): number {
  const { graph } = line;
  if (step === line.end)
    return graph.results.length === 0 ? -1 : (graph.results[below(graph.results.length)] as number);
  const op = line.op[step] as number;
  const from = graph.inputStart[op] as number;
  const count = (graph.inputStart[op + 1] as number) - from;
  return count === 0 ? -1 : (graph.inputs[from + below(count)] as number);
}

/** Adds the operation that makes `value` before `step`, and some of the ancestors that are not held there. */
function repeatBefore(state: Annealing, value: number, step: number): boolean {
  const { line, below } = state;
  const maker = line.graph.producer[value] as number;
  if (line.graph.once[maker] || line.op[line.previous[step] as number] === maker) return false;
  const added = add(state, maker, step);
  if (below(2) === 0) ancestors(state, added, 12);
  return true;
}

function ancestors(state: Annealing, step: number, most: number): number {
  const { line, below } = state;
  const { graph } = line;
  const op = line.op[step] as number;
  let left = most;
  for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number) && left > 0; i++) {
    const v = graph.inputs[i] as number;
    const maker = graph.producer[v] as number;
    if (graph.once[maker] || below(2) === 0) continue;
    if (line.op[line.previous[step] as number] === maker) continue;
    left = ancestors(state, add(state, maker, step), left - 1);
  }
  return left;
}

/** Moves a repetition by some steps, either way. */
function shift(state: Annealing): boolean {
  const { line, below } = state;
  let at = takeAway(state);
  if (at < 0) return false;
  const { op } = state.edits.at(-1) as Edit;
  const far = 1 + below(8);
  if (below(3) === 0) {
    at = randomStep(state);
    if ((line.label[at] as number) <= (line.label[op] as number)) return false;
  } else if (below(2) === 0) {
    for (let k = 0; k < far && at !== line.end; k++) at = line.next[at] as number;
  } else {
    for (let k = 0; k < far && line.previous[at] !== op; k++) at = line.previous[at] as number;
  }
  add(state, op, at);
  return true;
}

/** Removes a repetition and, where that exceeds the budget, recomputes another value that is held there unused. */
function exchange(state: Annealing): boolean {
  const { line, below } = state;
  if (takeAway(state) < 0) return false;
  const { worst } = line;
  if (worst < 0) return true;
  for (let attempt = 0; attempt < 12; attempt++) {
    // a later step that reads something held since before the worst one
    let at = worst;
    if (below(2) === 0) for (let k = 1 + below(40); k > 0 && at !== line.end; k--) at = line.next[at] as number;
    else at = randomStep(state);
    if ((line.label[at] as number) <= (line.label[worst] as number)) continue;
    const value = randomInput(state, at);
    if (value < 0 || (line.label[line.touchBefore(value, at)] as number) >= (line.label[worst] as number)) continue;
    return repeatBefore(state, value, at);
  }
  return true;
}
