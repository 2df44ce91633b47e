/**
 * @file Loops whose stacks are not kept: states are held instead, and what the reverse reads is computed again from those.
 * Nothing else changes: rows come from the same state by the same operations, and the reverse adds in the order that it
 * did, so every bit stays.
 *
 * ```
 *   forward ══ stacks ══> reverse        →        forward ── held states ──> back(…forward body, reverse body…)
 * ```
 *
 * Of nested loops the outer one is first. Its reverse then has the whole forward body in front of it, so that an inner
 * loop and its reverse, which were in two bodies before, are beside each other and are found there.
 */
import type { Graph, Node, Value } from "../ir/graph.ts";
import { producersOf } from "../ir/walk.ts";
import type { Reversal, ScanAttrs } from "../ops/loops.ts";
import { controlRuns } from "../plan/cost/model.ts";
import { findPairs, type LoopPair } from "./pairs.ts";
import { backOf, inputsOf, stepOf, tailOf } from "./regions.ts";
import { type Parts, replacementOf } from "./replacement.ts";
import { namedSchedule, type Schedule } from "./schedules.ts";
import { findOpenPairs, type OpenPair, recordOpen, withCheckpoints } from "./unbounded.ts";

/** A loop as it is found: alone in its graph, or inside of others that run it `runs` times. */
export interface FoundLoop {
  readonly pair: LoopPair;
  readonly runs: number;
  readonly depth: number;
}

/** A loop that was rewritten, with its new parts. */
export interface Rewound extends FoundLoop {
  readonly step: Graph;
  readonly back: Graph;
}

/** A loop without a bound, and how often it runs. */
export interface FoundOpen {
  readonly pair: OpenPair;
  readonly runs: number;
  readonly depth: number;
}

/** A pair, with other rows between the two where that was decided, and the states that it holds; null: rows are kept. */
export interface Treated {
  readonly pair: LoopPair;
  readonly schedule: Schedule | null;
}

/** What is to become of loops. */
export interface Decide {
  /** Null: nothing. */
  counted(loop: FoundLoop): Treated | null;
  /** How many states a loop without a bound holds; 0 leaves it as it is. */
  open(loop: FoundOpen): number;
}

/** What users asked for, of loops that they did not leave to the planner. */
export const asAsked: Decide = {
  counted({ pair }) {
    const { reversal, snapshots } = pair.forward.attrs as Partial<ScanAttrs>;
    const schedule = namedSchedule((reversal ?? "auto") as Reversal, pair.length, snapshots ?? 0);
    return schedule && { pair, schedule };
  },
  open: ({ pair }) => pair.reversal.checkpoints,
};

/** By the reverse of a pair. */
const known = new WeakMap<Node, { readonly stacks: readonly Value[]; readonly parts: Parts }>();

/** What does not depend on how many states are held: made once, so that whoever plans regions can plan them once. */
function partsOf(pair: LoopPair): Parts {
  const { backward, stacks } = pair;
  const found = known.get(backward);
  if (found?.stacks.length === stacks.length && found.stacks.every((stack, n) => stack === stacks[n])) {
    return found.parts;
  }
  const inputs = inputsOf(pair);
  const regions = { step: stepOf(pair, inputs), back: backOf(pair, inputs), tail: tailOf(pair, inputs) };
  known.set(backward, { stacks, parts: { inputs, regions } });
  return { inputs, regions };
}

/** A graph with loops in the form that was decided on, in regions too. `seen` is told about each that was rewritten. */
export function rewindLoops(
  graph: Graph,
  decide: Decide,
  seen: (loop: Rewound) => void = () => {},
  { runs, depth }: Pick<FoundLoop, "runs" | "depth"> = { runs: 1, depth: 0 },
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
  for (const found of findPairs(graph)) {
    const loop = { pair: found, runs, depth };
    const treated = decide.counted(loop);
    if (!treated) continue;
    const { pair, schedule } = treated;
    if (!schedule) {
      replaced.set(found.forward, [pair.forward]);
      replaced.set(found.backward, [pair.backward]);
      continue;
    }
    const parts = partsOf(pair);
    seen({ ...loop, ...parts.regions });
    const { forward, backward } = replacementOf(pair, schedule, parts, producer);
    replaced.set(found.forward, [forward]);
    replaced.set(found.backward, backward);
  }
  for (const pair of findOpenPairs(graph)) {
    const checkpoints = decide.open({ pair, runs, depth });
    if (checkpoints === 0) continue;
    const { forward, backward } = pair;
    const made = forward && recordOpen(graph, forward, pair, checkpoints);
    if (made && forward) replaced.set(forward, [made.forward]);
    replaced.set(backward, [made ? made.backward : withCheckpoints(backward, checkpoints)]);
  }
  const nodes = graph.nodes.flatMap((node) => replaced.get(node) ?? [node]).map(within);
  const same = nodes.length === graph.nodes.length && nodes.every((node, i) => node === graph.nodes[i]);
  return same ? graph : { ...graph, nodes };
}
