/** @file Which programs' plans are looked for in a cache, and the cache of one. */
import type { Graph } from "../ir/graph.ts";
import type { PlanTools } from "./candidate.ts";
import { PlanCache, settingsOf } from "./plan-cache.ts";
import { asksNothing, type MemoryRequest, type SourceProgram } from "./request.ts";

/** Programs of fewer nodes are planned about as fast as a plan is read, unless something is asked of their memory. */
const LEAST_NODES = 256;

/** Whether a program's plan is looked for in a cache. */
export const isWorthKeeping = ({ nodes }: Graph, request: MemoryRequest): boolean =>
  !asksNothing(request) || nodes.length >= LEAST_NODES;

/** From so many nodes on, the search for a plan within a budget takes so much memory that another process is worth starting. */
export const LEAST_SEARCHED = 64;

/** The cache of a program's plans; null where the request rules it out, or the host has no store. */
export function cacheOf(source: SourceProgram, { assembler, costs, request, host }: PlanTools): PlanCache | null {
  const { cache, validate, passes, solver } = request;
  const { key } = assembler.target;
  if (!cache || validate || passes || solver || key === undefined) return null;
  return PlanCache.of(host.planStore, source.graph, settingsOf(source, key, costs.rates));
}
