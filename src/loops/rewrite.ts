/**
 * @file Rewrites loops whose stacks are not kept: states are kept instead, and the rows that the reverse reads are
 * recomputed from them. Rows come from the same states by the same operations, and the reverse adds in the same order,
 * so results do not change by a bit.
 *
 * ```
 *   forward ══ stacks ══> reverse        →        forward ── kept states ──> back(…forward body, reverse body…)
 * ```
 *
 * Outer loops are rewritten first. The reverse of an outer loop then contains its whole forward body, so an inner loop
 * and its reverse, which were in two bodies before, end up in one graph and are found there.
 */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { producersOf } from "../ir/walk.ts";
import type { Reversal, ScanAttrs } from "../ops/loops.ts";
import { controlRuns } from "../plan/cost/model.ts";
import { findPairs, type LoopPair } from "./pairs.ts";
import { backOf, inputsOf, stepOf, tailOf } from "./regions.ts";
import { type ReverseRegions, replacementOf } from "./replacement.ts";
import { type LoopSchedule, namedSchedule } from "./schedules.ts";
import { findOpenPairs, type OpenPair, recordOpen, withCheckpoints } from "./unbounded.ts";

/** A pair at the top level, or inside other loops that run it `runs` times. */
export interface LoopSite {
  readonly pair: LoopPair;
  readonly runs: number;
  readonly depth: number;
}

/** A loop that was rewritten, with its new parts. */
export interface RewrittenLoop extends LoopSite {
  readonly step: Graph;
  readonly back: Graph;
}

/** A loop without a bound, and how often it runs. */
export interface OpenLoopSite {
  readonly pair: OpenPair;
  readonly runs: number;
  readonly depth: number;
}

/** A pair, possibly with another selection of rows, and the schedule of its states; null: rows are kept. */
export interface PairForm {
  readonly pair: LoopPair;
  readonly schedule: LoopSchedule | null;
}

/** Decides the form of each loop. */
export interface LoopDecisions {
  /** Null: leave the loop unchanged. */
  counted(loop: LoopSite): PairForm | null;
  /** The number of states of a loop without a bound; 0 leaves it unchanged. */
  open(loop: OpenLoopSite): number;
}

/** The user's choice, for loops not left to the planner. */
export const userDecisions: LoopDecisions = {
  counted({ pair }) {
    const { reversal, snapshots } = pair.forward.attrs as Partial<ScanAttrs>;
    const schedule = namedSchedule((reversal ?? "auto") as Reversal, pair.length, snapshots ?? 0);
    return schedule && { pair, schedule };
  },
  open: ({ pair }) => pair.reversal.checkpoints,
};

/** Keyed by the reverse node of a pair. */
const regionsByReverse = new WeakMap<Node, { readonly stacks: readonly Value[]; readonly parts: ReverseRegions }>();

/** The regions, which do not depend on the number of states; cached so that each is planned only once. */
function regionsOfPair(pair: LoopPair): ReverseRegions {
  const { backward, stacks } = pair;
  const cached = regionsByReverse.get(backward);
  if (cached?.stacks.length === stacks.length && cached.stacks.every((stack, n) => stack === stacks[n])) {
    return cached.parts;
  }
  const inputs = inputsOf(pair);
  const regions = { step: stepOf(pair, inputs), back: backOf(pair, inputs), tail: tailOf(pair, inputs) };
  regionsByReverse.set(backward, { stacks, parts: { inputs, regions } });
  return { inputs, regions };
}

/** The graph with loops in the decided form, regions included. `seen` is called for each rewritten loop. */
export function rewindLoops(
  graph: Graph,
  decide: LoopDecisions,
  seen: (loop: RewrittenLoop) => void = () => {},
  { runs, depth }: Pick<LoopSite, "runs" | "depth"> = { runs: 1, depth: 0 },
): Graph {
  const within = (node: Node): Node => {
    if (node.op.lower.kind !== "control") return node;
    const often = controlRuns(node)?.runs ?? [];
    const regions = node.regions.map((region, n) =>
      rewindLoops(region, decide, seen, { runs: runs * (often[n] ?? 1), depth: depth + 1 }),
    );
    return regions.every((region, n) => region === node.regions[n]) ? node : { ...node, regions };
  };
  const replaced = new Map<Node, readonly Node[]>();
  const producer = producersOf(graph);
  for (const candidate of findPairs(graph)) {
    const loop = { pair: candidate, runs, depth };
    const treated = decide.counted(loop);
    if (!treated) continue;
    const { pair, schedule } = treated;
    if (!schedule) {
      replaced.set(candidate.forward, [pair.forward]);
      replaced.set(candidate.backward, [pair.backward]);
      continue;
    }
    const parts = regionsOfPair(pair);
    seen({ ...loop, ...parts.regions });
    const { forward, backward } = replacementOf(pair, schedule, parts, producer);
    replaced.set(candidate.forward, [forward]);
    replaced.set(candidate.backward, backward);
  }
  for (const pair of findOpenPairs(graph)) {
    const checkpoints = decide.open({ pair, runs, depth });
    if (checkpoints === 0) continue;
    const { forward, backward } = pair;
    const replacement = forward && recordOpen(graph, forward, pair, checkpoints);
    if (replacement && forward) replaced.set(forward, [replacement.forward]);
    replaced.set(backward, [replacement ? replacement.backward : withCheckpoints(backward, checkpoints)]);
  }
  const nodes = graph.nodes.flatMap((node) => replaced.get(node) ?? [node]).map(within);
  const same = nodes.length === graph.nodes.length && nodes.every((node, i) => node === graph.nodes[i]);
  return same ? graph : { ...graph, nodes };
}
