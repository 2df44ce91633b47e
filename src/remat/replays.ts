/**
 * @file The lowest peak by replays (replay.ts) and orders (reorder.ts) in turn, with some relief (relief.ts) where those get
 * no lower: replays free many values for much cost, relief one for little.
 */

import { type FlatGraph, flatGraph } from "../plan/recompute/flat-graph.ts";
import { isSpent, unlimited } from "../plan/recompute/meter.ts";
import { baseSequence, type RecomputeProblem } from "../plan/recompute/problem.ts";
import { profiler } from "../plan/recompute/profile.ts";
import { seededRandom } from "../plan/recompute/random.ts";
import { relieve } from "../plan/recompute/relief.ts";
import { hasFreeOrder, type Numbered, renumbered, reordered } from "./reorder.ts";
import { replayed } from "./replay.ts";
import type { StageOptions } from "./stages.ts";

/** How much more fuller steps count, in turn: with a low power much is freed everywhere, with a high one at the fullest step. */
const POWERS = [24, 60, 12] as const;
/** Replays from one order to the next. */
const REPLAYS = 4;
/** Rounds without a lower peak before relief is tried: one with each power. */
const PATIENCE = POWERS.length;
/** A peak is lower if by more than this part. */
const LOWER = 0.002;
/** How much lower relief is to get. */
const STAGE = 0.03;

interface Reached {
  readonly numbered: Numbered;
  readonly graph: FlatGraph;
  readonly bytes: number;
}

function measured(numbered: Numbered, graph: FlatGraph = flatGraph(numbered.problem)): Reached {
  const { sequence } = numbered;
  const { peakBytes } = profiler(graph, 0, sequence.length).profile(Int32Array.from(sequence), sequence.length);
  return { numbered, graph, bytes: peakBytes };
}

/** Ends with the lowest peak that it reached; operations are numbered by their first executions. A round is a few replays. */
export function lowerByReplays(problem: RecomputeProblem, budget: number, options: StageOptions = {}): Numbered {
  const { meter = unlimited(), rounds = Number.POSITIVE_INFINITY, order = "given" } = options;
  const isFree = order === "any" && hasFreeOrder(problem);
  const random = seededRandom(0);
  const inOrder = (from: Reached): Reached => {
    const next = isFree ? measured(reordered(from.numbered)) : from;
    return next.bytes < from.bytes ? next : from;
  };
  const relieved = ({ numbered, graph, bytes }: Reached): Reached => {
    const target = Math.max(budget, Math.floor(bytes * (1 - STAGE)));
    const sequence = relieve(graph, target, { meter, start: numbered.sequence });
    return measured({ ...numbered, sequence }, graph);
  };
  let now = inOrder(measured(renumbered(problem, baseSequence(problem))));
  let [best, since] = [now, 0];
  for (let round = 0; best.bytes > budget && round < rounds && !isSpent(meter); round++) {
    const power = POWERS[round % POWERS.length] as number;
    let { sequence } = now.numbered;
    for (let k = 0; k < REPLAYS && !isSpent(meter); k++)
      sequence = replayed(now.graph, budget, sequence, { random, power }) ?? sequence;
    now = inOrder(measured({ ...now.numbered, sequence }, now.graph));
    since = now.bytes < best.bytes * (1 - LOWER) ? 0 : since + 1;
    if (now.bytes < best.bytes) best = now;
    if (since < PATIENCE) continue;
    now = relieved(best);
    if (now.bytes < best.bytes) best = now;
    else now = best;
    since = 0;
  }
  return best.numbered;
}
