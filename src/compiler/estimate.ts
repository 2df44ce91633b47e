/** @file How long a program takes on a target, before it is planned: everything is stored, and kernels run one after the other. */
import type { Graph } from "../ir/graph.ts";
import { fuseWithin } from "../passes/fuse.ts";
import { pipeline, runPasses } from "../passes/pipeline.ts";
import { nodeMs } from "../plan/cost/model.ts";
import type { TargetDescription } from "../target/description.ts";
import { TargetCosts } from "./node-costs.ts";

/** Milliseconds, by the rates of the description. */
export function estimatedMs(graph: Graph, description: TargetDescription): number {
  const costs = new TargetCosts(description, { rates: description.rates });
  const fused = fuseWithin(description.fusion).run(runPasses(graph, pipeline));
  return fused.nodes.reduce((ms, node) => ms + nodeMs(node, costs), 0);
}
