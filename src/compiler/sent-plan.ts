/**
 * @file Planning in another thread, as data: the traced graph and the request go there, the plan comes back in the form in which
 * plans are kept (plan-cache.ts), so that graph and plan can be restored from it where they are asked for.
 *
 *   here    planTask ── graph, settings, request, a plan that was kept ──→ there    planSent ── placed program, plan to keep
 */
import { isPackable, type PackedGraph, packGraph, unpackGraph } from "../ir/pack.ts";
import { strategyNamed } from "../plan/recompute/strategies.ts";
import type { Rebuild, TargetDescription } from "../target/description.ts";
import { assemble } from "./assemble.ts";
import { NO_HOST, type PlannerHost } from "./host.ts";
import { isWorthKeeping } from "./kept-plans.ts";
import { OPS } from "./known-ops.ts";
import { PlanCache, type PlanSettings, type PlanStore, settingsOf } from "./plan-cache.ts";
import { type MemoryRequest, memoryKey, type PlanProgress, type PlanRequest, type SourceProgram } from "./request.ts";
import type { ChosenProgram } from "./stored.ts";

/** A plan that is asked for, as data. */
export interface SentTask {
  readonly graph: PackedGraph;
  readonly rebuild: Rebuild;
  readonly settings: PlanSettings;
  readonly memory: MemoryRequest;
  readonly validate: boolean;
  /** A plan that was kept for the same request. */
  readonly kept: string | null;
}

/** What planning a program elsewhere takes; one line where it cannot be sent. */
export function planTask(
  source: SourceProgram,
  target: TargetDescription,
  request: PlanRequest,
): Omit<SentTask, "kept"> | string {
  const { memory, validate, costs, solver, passes } = request;
  const { key, rebuild } = target;
  if (key === undefined || !rebuild) return `${target.name} is a target of the user's`;
  if (memory.spill) return "values are moved to a file";
  if (passes) return "the program is checked for NaN";
  if (solver || strategyNamed(memory.strategy).solver === "required") return "the solver is on this thread";
  if (!isPackable(source.graph, OPS)) return "the program has operations of the user's";
  const settings = settingsOf(source, key, costs ?? target.rates);
  return { graph: packGraph(source.graph), rebuild, settings, memory, validate };
}

/** Under which the plan is kept in a store; null where it is not worth it, or not wanted. */
export function storeKey(
  store: Pick<PlanStore, "planner" | "digest">,
  source: SourceProgram,
  task: Omit<SentTask, "kept">,
): string | null {
  const { settings, memory, validate } = task;
  if (validate || !isWorthKeeping(source.graph, memory)) return null;
  const { planner, digest } = store;
  const keys = { ...oneText(null), planner, ...(digest ? { digest } : {}) };
  const cache = PlanCache.of(keys, source.graph, settings);
  return cache?.keyOf(memoryKey(memory)) ?? null;
}

interface TextStore extends PlanStore {
  /** The last text that was written to it. */
  readonly written: string | null;
}

/** A store of one text for whatever is asked. */
function oneText(text: string | null): TextStore {
  let written: string | null = null;
  return {
    ops: OPS,
    planner: "",
    leastMs: 0,
    read: () => text,
    write(_, next) {
      written = next;
    },
    get written() {
      return written;
    },
  };
}

/** A host that has a plan which was made elsewhere: it is restored and checked, not made again. */
export const withPlan = <H extends PlannerHost>(host: H, kept: string | null): H =>
  kept === null ? host : { ...host, planStore: oneText(kept) };

/** Does what was sent; the plan to keep is null where it is the one that was sent along, or not worth keeping. */
export function planSent(
  { graph, settings, memory, validate, kept }: SentTask,
  target: TargetDescription,
  progress: (plan: PlanProgress) => void,
): { readonly placed: ChosenProgram; readonly kept: string | null } {
  const { donated, persistent, rates } = settings;
  const source = {
    graph: unpackGraph(graph, OPS),
    donated: new Map(donated),
    persistent: new Set(persistent),
  };
  const planStore = oneText(kept);
  const placed = assemble(source, target, { memory, validate, costs: rates, progress }, { ...NO_HOST, planStore });
  return { placed, kept: planStore.written };
}
