/** @file Which passes run, in which order and why; and the runner. */
import { invariant } from "../base/invariant.ts";
import type { Graph } from "../ir/graph.ts";
import { violations, violationText } from "../ir/verify.ts";
import { canonicalize, canonicalizing } from "./canonicalize.ts";
import { cse } from "./cse.ts";
import { dce } from "./dce.ts";
import { eraseVariance } from "./erase-variance.ts";
import { fold } from "./fold.ts";
import { fuse } from "./fuse.ts";
import { hoist } from "./hoist.ts";
import { inferZeroRegions } from "./infer-zero-regions.ts";
import { inline } from "./inline.ts";
import { mergeReplays } from "./merge-replays.ts";
import type { Pass } from "./pass.ts";
import { sink } from "./sink.ts";
import { smallerResiduals } from "./smaller-residuals.ts";

/** Every pass on a joint program before the planner sees it. */
export const pipeline: readonly Pass[] = [
  // Derivatives are taken, and nothing else asks over which axes values vary.
  eraseVariance,
  // Everything below looks at neighbours; a call hides them.
  inline,
  // Derivative rules write x * 1 and reshapes of reshapes freely: fewer, plainer nodes for what follows.
  canonicalize,
  // After broadcasts of constants have become constants of their shape.
  fold,
  // Loops and branches read memory: constants move inside, loop-invariant values move out.
  sink,
  hoist,
  // Folded constants may be neutral now (x * (2 - 1)), and constants have moved to their uses.
  canonicalize,
  // After the plainer form has made equal nodes look equal.
  cse,
  // Merging gives operands that are the same value (where(c, a, a)).
  canonicalize,
  // All of the above leave unused nodes behind.
  dce,
  // Last: rewriting a value loses the facts about it.
  inferZeroRegions,
];

/** For targets that carry collectives out on the only device of a group. */
const keepingCollectives = canonicalizing(({ op }) => {
  const what = op.facts?.collective?.what;
  return what !== undefined && what !== "mark";
});

/** The same for a target; most have no wishes. */
export function pipelineFor({ collectivesAlone }: { readonly collectivesAlone?: true }): readonly Pass[] {
  return collectivesAlone ? pipeline.map((pass) => (pass === canonicalize ? keepingCollectives : pass)) : pipeline;
}

export interface RunOptions {
  /** Check the graph after every pass; a violation is a defect of that pass. */
  readonly verify?: boolean;
  /** Told about the graph after every pass. */
  observe?(pass: Pass, graph: Graph): void;
}

/** Order violations: a pass whose `after` names one that first runs later. */
export function orderProblems(passes: readonly Pass[]): readonly string[] {
  const first = new Map<string, number>();
  passes.forEach((pass, i) => {
    if (!first.has(pass.name)) first.set(pass.name, i);
  });
  const problems = new Set<string>();
  passes.forEach((pass, i) => {
    for (const name of pass.after ?? []) {
      const position = first.get(name);
      if (position !== undefined && position > i) problems.add(`${pass.name} must run after ${name}`);
    }
  });
  return [...problems];
}

/** Runs passes one after the other. Passes are idempotent, so one is not run again on its own result. */
export function runPasses(graph: Graph, passes: readonly Pass[], options: RunOptions = {}): Graph {
  const problems = orderProblems(passes);
  invariant(problems.length === 0, () => `order of passes: ${problems.join("; ")}`);
  const outcomes = new Map<Pass, Graph>();
  let current = graph;
  for (const pass of passes) {
    if (outcomes.get(pass) !== current) current = pass.run(current);
    outcomes.set(pass, current);
    if (options.verify) {
      const found = violations(current);
      invariant(found.length === 0, () => `${pass.name} broke ${graph.name}: ${violationText(current, found)}`);
    }
    options.observe?.(pass, current);
  }
  return current;
}

/** Everything that happens to a graph before it is planned and lowered. */
export const fusedPipeline: readonly Pass[] = [
  ...pipeline,
  // On the simplified graph: the values that backward reads are final now. Equal nodes are separate on purpose from here on.
  smallerResiduals,
  // On the smallest graph; after it nodes are kernels, so no pass that looks at operations may follow.
  fuse,
];

/** Every pass once; `merge-replays` runs when there is a budget, in front of the planner. */
export const allPasses: readonly Pass[] = [...new Set([...fusedPipeline, mergeReplays])];
