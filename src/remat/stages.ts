/**
 * @file Relief in stages, each with a budget a little below the peak of the one before. Against a budget far below the peak,
 * relief gives steps up that later moves would have made easy, and as nearly all steps are above the budget, it does not
 * favour the fullest. Where a stage gets no lower, half of the recomputations around the fullest step are removed, and
 * relief starts from there for a little less: iterated local search (Lourenço, Martin and Stützle, 2003).
 *
 * Where the order of first executions is free, all executions, repetitions too, are reordered between stages (reorder.ts):
 *
 * ```
 *   given ──order──▶ 0.87 of the peak ──two stages──▶ 0.82 ──order──▶ 0.81 ──two stages──▶ 0.76 …
 * ```
 */

import { type FlatGraph, flatGraph } from "../plan/recompute/flat-graph.ts";
import { isSpent, type Meter, unlimited } from "../plan/recompute/meter.ts";
import type { RecomputeProblem } from "../plan/recompute/problem.ts";
import { baseSequence } from "../plan/recompute/problem.ts";
import { seededRandom } from "../plan/recompute/random.ts";
import { LONGER, relieve } from "../plan/recompute/relief.ts";
import { Timeline } from "../plan/recompute/timeline.ts";
import { hasFreeOrder, type Numbered, renumbered, reordered } from "./reorder.ts";

/** Operations to recompute for one value, at most. */
const LONGEST = 400;
/** By how much the budget of a stage is below the peak of the one before: at first, and once one got no lower. */
const [STAGE, SMALL_STAGE] = [0.03, 0.01];
/** How far around the fullest step repetitions are removed then, as parts of the sequence. */
const [NEAR, FAR] = [0.05, 0.35];
/** Stages from one search for an order to the next. */
const STAGES_OF_AN_ORDER = 2;

export interface StageOptions {
  readonly meter?: Meter;
  /** Times that relief is tried, at most. */
  readonly rounds?: number;
  /** Whether operations may be executed first in another order than the given one; default: "given". */
  readonly order?: "given" | "any";
}

interface Reached {
  readonly numbered: Numbered;
  readonly graph: FlatGraph;
  readonly bytes: number;
  /** The position of the step that has them. */
  readonly at: number;
}

function measured(numbered: Numbered, graph: FlatGraph = flatGraph(numbered.problem)): Reached {
  const line = new Timeline(graph, 0, numbered.sequence);
  let [bytes, at, position] = [0, 0, 0];
  for (let step = 0; step !== line.end; step = line.next[step] as number, position++) {
    if (line.bytesAt(step) > bytes) [bytes, at] = [line.bytesAt(step), position];
  }
  return { numbered, graph, bytes, at };
}

/** A sequence without about half of the repetitions around a position: within a twentieth to a third of it, as drawn. */
function shaken({ numbered: { sequence }, at }: Reached, random: () => number): number[] {
  const reach = (NEAR + (FAR - NEAR) * random()) * sequence.length;
  const seen = new Set<number>();
  return sequence.filter((op, position) => {
    const isFirst = !seen.has(op);
    seen.add(op);
    return isFirst || Math.abs(position - at) > reach || random() < 0.5;
  });
}

/** The same executions in an order with a lower peak, if one is found. */
function lowered(reached: Reached): Reached {
  const next = measured(reordered(reached.numbered));
  return next.bytes < reached.bytes ? next : reached;
}

/** Ends with the lowest peak that it reached; operations are numbered by their first executions. */
export function relieveInStages(problem: RecomputeProblem, budget: number, options: StageOptions = {}): Numbered {
  const { meter = unlimited(), rounds = Number.POSITIVE_INFINITY, order = "given" } = options;
  const isFree = order === "any" && hasFreeOrder(problem);
  const random = seededRandom(0);
  let reached = measured(renumbered(problem, baseSequence(problem)));
  if (isFree) reached = lowered(reached);
  let [isStuck, since] = [false, 0];
  for (let round = 0; reached.bytes > budget && round < rounds && !isSpent(meter); round++) {
    const { numbered, graph, bytes } = reached;
    // the last stage has the given budget: a target below it would be missed without need
    const target = Math.max(budget, Math.floor(bytes * (1 - (isStuck ? SMALL_STAGE : STAGE))));
    const start = isStuck ? shaken(reached, random) : numbered.sequence;
    const longer = isStuck && random() < 0.5 ? LONGER : LONGEST;
    const next = measured({ ...numbered, sequence: relieve(graph, target, { meter, start, longer }) }, graph);
    const isLower = next.bytes < bytes;
    since += Number(isLower);
    if (isLower) reached = next;
    // an order is looked for when stages have changed enough, and once where they get no lower
    const reorders = isFree && reached.bytes > budget && (since >= STAGES_OF_AN_ORDER || (!isLower && since > 0));
    if (reorders) [reached, since] = [lowered(reached), 0];
    isStuck = reached.bytes === bytes || (isStuck && !isFree);
  }
  const { numbered, graph, bytes } = reached;
  if (bytes > budget) return numbered;
  return { ...numbered, sequence: relieve(graph, budget, { meter, start: numbered.sequence }) };
}
