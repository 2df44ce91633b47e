/**
 * @file Search over sequences. Adding a computation anywhere after the first, or taking away one that is not the first,
 * always leaves a valid sequence: only its time and bytes change. So simulated annealing works on sequences directly,
 * with bytes above the budget as a penalty whose price adapts until about a third of what is visited fits.
 *
 * Moves: take one repetition away; compute a value again just before one of its uses, alone or with ancestors that are
 * not held there; shift a repetition; take one away and repair the step that this hurts most by computing something else
 * again. Kirkpatrick et al., "Optimization by simulated annealing", 1983.
 */
import type { FlatGraph } from "./flat-graph.ts";
import { Timeline } from "./timeline.ts";

export interface AnnealOptions {
  readonly seed: number;
  /** Edits to try. */
  readonly moves: number;
  /** Steps to walk over, at most. */
  readonly work?: number;
  /** The time by the clock at which to stop early. */
  readonly deadline: number;
  /** First and last temperature, in costs of an average operation. */
  readonly hot: number;
  readonly cold: number;
}

/** An edit that was made: a step added, or an operation taken away from before a step. */
interface Edit {
  readonly step: number;
  /** -1 for a step that was added. */
  readonly op: number;
  readonly before: number;
}

interface Walk {
  readonly line: Timeline;
  readonly below: (count: number) => number;
  readonly edits: Edit[];
}

function mixed(x: number): number {
  let z = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return z ^ (z >>> 15);
}

/**
 * Uniform in [0, 1): two multiplicative mixes of a counter (splitmix32); several draws a move, so cheaper than
 * `hostRandom`. The counter starts at a mix of the seed: were the starts of two seeds a few draws apart, two walks would
 * sooner or later meet at the same place of the same stream and be one walk from there on.
 */
export function dice(seed: number): () => number {
  let x = mixed(Math.imul(seed + 1, 0x85ebca6b) ^ 0x3c6ef372);
  return () => {
    x = (x + 0x9e3779b9) | 0;
    return (mixed(x) >>> 0) / 2 ** 32;
  };
}

/** The best sequence within `budget` found from `initial`, which may itself be above it; null if none was met. */
export function anneal(
  graph: FlatGraph,
  budget: number,
  initial: readonly number[],
  options: AnnealOptions,
): number[] | null {
  const random = dice(options.seed);
  const line = new Timeline(graph, budget, initial);
  const walk: Walk = { line, below: (count) => Math.floor(random() * count), edits: [] };
  let best: number[] | null = line.over > 0 ? null : [...initial];
  let bestCost = line.over > 0 ? Number.POSITIVE_INFINITY : line.cost;
  const mean = graph.baseCost / graph.ops;
  let price = graph.baseCost / budget;
  let [fitting, temperature] = [0, mean * options.hot];
  const began = performance.now();
  const { work = Number.POSITIVE_INFINITY, moves, deadline } = options;
  for (let move = 0; move < moves; move++) {
    if (move % 256 === 0) {
      const now = performance.now();
      if (now > deadline || line.work > work) break;
      // whichever ends first, moves, work or time, is cold at its end
      const part = Math.max(move / moves, line.work / work, (now - began) / Math.max(1, deadline - began));
      temperature = mean * options.hot * (options.cold / options.hot) ** part;
      price *= fitting > 100 ? 0.9 : 1.1;
      fitting = 0;
    }
    const { cost, over } = line;
    walk.edits.length = 0;
    const made = propose(walk, random());
    const worse = line.cost - cost + price * (line.over - over);
    if (!made || (worse > 0 && random() >= Math.exp(-worse / temperature))) undo(walk);
    if (line.over > 0) continue;
    fitting++;
    if (line.cost >= bestCost * (1 - 1e-12)) continue;
    bestCost = line.cost;
    best = line.sequence();
    line.work += best.length;
  }
  return best;
}

function undo({ line, edits }: Walk): void {
  const renamed = new Map<number, number>();
  const current = (step: number): number => renamed.get(step) ?? step;
  for (let edit = edits.pop(); edit; edit = edits.pop()) {
    if (edit.op < 0) line.remove(current(edit.step));
    else renamed.set(edit.step, line.insert(edit.op, current(edit.before)));
  }
}

function add(walk: Walk, op: number, before: number): number {
  const step = walk.line.insert(op, before);
  walk.edits.push({ step, op: -1, before });
  return step;
}

function propose(walk: Walk, roll: number): boolean {
  if (roll < 0.25) return takeAway(walk) >= 0;
  if (roll < 0.5) return repeat(walk);
  if (roll < 0.75) return shift(walk);
  if (roll < 0.88) return takeAway(walk) >= 0 && repeat(walk);
  return exchange(walk);
}

/** Takes a random repetition away and returns the step that came after it, or -1. */
function takeAway(walk: Walk): number {
  const { line, below, edits } = walk;
  if (line.repetitions.length === 0) return -1;
  const step = line.repetitions[below(line.repetitions.length)] as number;
  const before = line.next[step] as number;
  edits.push({ step, op: line.op[step] as number, before });
  line.remove(step);
  return before;
}

function randomStep({ line, below }: Walk): number {
  const k = below(line.end + 1 + line.repetitions.length);
  return k <= line.end ? k : (line.repetitions[k - line.end - 1] as number);
}

/** Computes something that a random step reads again just before it. */
function repeat(walk: Walk): boolean {
  const step = randomStep(walk);
  const value = randomInput(walk, step);
  return value >= 0 && repeatBefore(walk, value, step);
}

function randomInput({ line, below }: Walk, step: number): number {
  const { graph } = line;
  if (step === line.end)
    return graph.results.length === 0 ? -1 : (graph.results[below(graph.results.length)] as number);
  const op = line.op[step] as number;
  const from = graph.inputStart[op] as number;
  const count = (graph.inputStart[op + 1] as number) - from;
  return count === 0 ? -1 : (graph.inputs[from + below(count)] as number);
}

/** Adds the operation that makes `value` before `step`, and some of the ancestors that are not held there. */
function repeatBefore(walk: Walk, value: number, step: number): boolean {
  const { line, below } = walk;
  const maker = line.graph.producer[value] as number;
  if (line.graph.once[maker] || line.op[line.previous[step] as number] === maker) return false;
  const added = add(walk, maker, step);
  if (below(2) === 0) ancestors(walk, added, 12);
  return true;
}

function ancestors(walk: Walk, step: number, most: number): number {
  const { line, below } = walk;
  const { graph } = line;
  const op = line.op[step] as number;
  let left = most;
  for (let i = graph.inputStart[op] as number; i < (graph.inputStart[op + 1] as number) && left > 0; i++) {
    const v = graph.inputs[i] as number;
    const maker = graph.producer[v] as number;
    if (graph.once[maker] || below(2) === 0) continue;
    if (line.op[line.previous[step] as number] === maker) continue;
    left = ancestors(walk, add(walk, maker, step), left - 1);
  }
  return left;
}

/** Moves a repetition by some steps, either way. */
function shift(walk: Walk): boolean {
  const { line, below } = walk;
  let at = takeAway(walk);
  if (at < 0) return false;
  const { op } = walk.edits.at(-1) as Edit;
  const far = 1 + below(8);
  if (below(3) === 0) {
    at = randomStep(walk);
    if ((line.label[at] as number) <= (line.label[op] as number)) return false;
  } else if (below(2) === 0) {
    for (let k = 0; k < far && at !== line.end; k++) at = line.next[at] as number;
  } else {
    for (let k = 0; k < far && line.previous[at] !== op; k++) at = line.previous[at] as number;
  }
  add(walk, op, at);
  return true;
}

/** Takes one away and, where that is above the budget, computes another value again that is held there unused. */
function exchange(walk: Walk): boolean {
  const { line, below } = walk;
  if (takeAway(walk) < 0) return false;
  const { worst } = line;
  if (worst < 0) return true;
  for (let attempt = 0; attempt < 12; attempt++) {
    // a later step that reads something held since before the worst one
    let at = worst;
    if (below(2) === 0) for (let k = 1 + below(40); k > 0 && at !== line.end; k--) at = line.next[at] as number;
    else at = randomStep(walk);
    if ((line.label[at] as number) <= (line.label[worst] as number)) continue;
    const value = randomInput(walk, at);
    if (value < 0 || (line.label[line.touchBefore(value, at)] as number) >= (line.label[worst] as number)) continue;
    return repeatBefore(walk, value, at);
  }
  return true;
}
