/**
 * @file Planning a program under a budget and the numbers of the outcome, for `plan` and `bench` alike. A budget that is
 * too small has numbers too: those of the plan that would be needed.
 */
import { type PlanInfo, plan } from "../api/plan.ts";
import { TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { allNodes } from "../ir/walk.ts";
import { graphCost } from "../ops/control.ts";
import { withinBudget } from "../plan/plan.ts";
import type { Plan } from "../plan/problem.ts";
import { assemble } from "../runtime/assemble.ts";
import { wasmTraits } from "../runtime/executable.ts";
import { type Arguments, choice, type OptionSpec, sizeOf } from "./command.ts";
import { predictedMs, WASM_RATES } from "./estimate.ts";
import type { Loaded } from "./load.ts";
import type { AnyProgram } from "./programs/built-in.ts";

export const PLAN_OPTIONS = {
  budget: { value: "SIZE", help: "the most bytes that the arena may take: 64MiB, 1.5GB, 4096" },
  strategy: { value: "NAME", help: "what is kept for the backward pass: store-all" },
  target: { value: "NAME", help: "what the program is compiled for: wasm" },
} as const satisfies Record<string, OptionSpec>;

export interface PlanSettings {
  readonly target: "wasm";
  readonly strategy: "store-all";
  readonly budgetBytes: number | null;
}

export function planSettings(args: Arguments): PlanSettings {
  return {
    target: choice(args, "target", ["wasm"]),
    strategy: choice(args, "strategy", ["store-all"]),
    budgetBytes: sizeOf(args, "budget"),
  };
}

/** What stays in the arena between steps. */
export interface PersistentFigures {
  readonly persistentBytes: number;
  readonly parameterBytes: number;
  readonly optimizerBytes: number;
  readonly constantBytes: number;
}

/** The numbers of a plan; sizes are plain bytes. */
export interface PlanFigures extends PersistentFigures {
  readonly program: string;
  readonly target: string;
  readonly strategy: string;
  readonly budgetBytes: number | null;
  readonly arenaBytes: number;
  readonly lowerBoundBytes: number;
  /** The rest of the arena. */
  readonly ephemeralBytes: number;
  /** Of the plan that keeps everything and has no budget. */
  readonly storeAllArenaBytes: number;
  /** Steps of the schedule. */
  readonly nodes: number;
  readonly recomputedNodes: number;
  readonly recomputedFlops: number;
  /** Recomputation included. */
  readonly totalFlops: number;
  readonly predictedMs: number;
  readonly traceMs: number;
  /** Passes, kernels and the plan. */
  readonly planMs: number;
  readonly feasible: boolean;
  /** The smallest budget for which the strategy has a plan. */
  readonly minimumBudgetBytes: number;
}

/** A planned program, with the place that each of its parameters has in the arguments. */
export type Planned = Pick<PlanInfo, "graph" | "plan" | "planMs" | "traceMs" | "paths">;

export interface PlanOutcome {
  /** Within the budget; without one where the budget is too small. */
  readonly planned: Planned;
  readonly figures: PlanFigures;
  /** Why the budget is too small. */
  readonly refusal: TidemarkError | null;
}

/** Plans what was named on the command line; nothing is allocated. */
export function planLoaded(loaded: Loaded, settings: PlanSettings): PlanOutcome {
  const free = loaded.kind === "graph" ? planGraph(loaded.graph) : planStep(loaded.program);
  // The budget refuses plans and does not change them: one plan answers for all budgets.
  const limited = orRefusal(() => withinBudget(free.plan, settings.budgetBytes ?? Number.POSITIVE_INFINITY));
  const refusal = limited instanceof TidemarkError ? limited : null;
  const planned = limited instanceof TidemarkError ? free : { ...free, plan: limited };
  return { planned, figures: figuresOf(loaded.name, settings, planned, free, refusal === null), refusal };
}

function planGraph(graph: Graph): Planned {
  return { ...assemble(graph, wasmTraits()), traceMs: 0, paths: graph.params.map((param) => param.name ?? "") };
}

/** A training step with its state donated. */
function planStep(program: AnyProgram): Planned {
  const args = program.specs?.() ?? ([program.init(), ...program.batch()] as const);
  return plan(program.step, { donate: [0], name: program.name })(...args);
}

function orRefusal<T>(make: () => T): T | TidemarkError {
  try {
    return make();
  } catch (error) {
    if (error instanceof TidemarkError && error.code === "PlanInfeasible") return error;
    throw error;
  }
}

function figuresOf(
  program: string,
  { target, strategy, budgetBytes }: PlanSettings,
  { graph, plan: made, planMs, traceMs, paths }: Planned,
  free: Planned,
  feasible: boolean,
): PlanFigures {
  const rates = detectFeatures().relaxedMadd ? WASM_RATES.fused : WASM_RATES.plain;
  const replayed = graph.nodes.filter((node) => [...withInner(node)].some((inner) => inner.replay > 0));
  const operations = [...allNodes(graph)].filter((node) => node.replay > 0 && node.regions.length === 0);
  const persistent = persistentFigures(made, paths);
  return {
    ...{ program, target, strategy, budgetBytes },
    arenaBytes: made.height,
    lowerBoundBytes: made.bound.bytes,
    ...persistent,
    ephemeralBytes: made.height - persistent.persistentBytes,
    storeAllArenaBytes: free.plan.height,
    nodes: graph.nodes.length,
    recomputedNodes: replayed.length,
    recomputedFlops: graphCost({ ...graph, nodes: operations }).flops,
    totalFlops: graphCost(graph).flops,
    predictedMs: predictedMs(made, rates),
    ...{ traceMs, planMs, feasible },
    minimumBudgetBytes: free.plan.height,
  };
}

/**
 * What stays between steps, by what it is: `state.params` and the rest of the state, or the whole state where it has no
 * member of that name; constants are what the step closes over.
 */
export function persistentFigures(made: Plan, paths: readonly string[]): PersistentFigures {
  const { params, persistent, donated } = made.program;
  const isParameter = (path: string): boolean => /^\w+\.params\b/.test(path);
  const named = paths.some(isParameter);
  const bytes = { parameterBytes: 0, optimizerBytes: 0, constantBytes: 0 };
  params.forEach((param, i) => {
    if (!persistent.has(param)) return;
    const ofState = !named || isParameter(at(paths, i)) ? "parameterBytes" : "optimizerBytes";
    bytes[donated.has(param) ? ofState : "constantBytes"] += byteLength(param.type);
  });
  return { persistentBytes: bytes.parameterBytes + bytes.optimizerBytes + bytes.constantBytes, ...bytes };
}

function* withInner(node: Node): Generator<Node> {
  yield node;
  for (const region of node.regions) yield* allNodes(region);
}
