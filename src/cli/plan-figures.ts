/**
 * @file Planning a program under a budget and the numbers of the outcome, for `plan` and `bench` alike. A budget that is
 * too small has numbers too: those of the plan that would be needed.
 */
import { type CompileOptions, compile, type ProgramInfo } from "../api/compile.ts";
import { parseBytes } from "../base/bytes.ts";
import { TidemarkError } from "../base/errors.ts";
import { detectFeatures } from "../codegen/wasm/features.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { allNodes } from "../ir/walk.ts";
import { graphCost } from "../ops/control.ts";
import type { Plan } from "../plan/problem.ts";
import { assemble } from "../runtime/assemble.ts";
import { wasmTraits } from "../runtime/executable.ts";
import type { Tensor } from "../trace/tensor.ts";
import { type Arguments, choice, type OptionSpec, usageError } from "./command.ts";
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
  const budget = args.value("budget");
  return {
    target: choice(args, "target", ["wasm"]),
    strategy: choice(args, "strategy", ["store-all"]),
    budgetBytes: budget === undefined ? null : budgetOf(budget),
  };
}

function budgetOf(text: string): number {
  try {
    return parseBytes(text);
  } catch (error) {
    if (error instanceof TidemarkError) throw usageError(`--budget: ${error.summary}`, error.help ?? "");
    throw error;
  }
}

/** The numbers of a plan; sizes are plain bytes. */
export interface PlanFigures {
  readonly program: string;
  readonly target: string;
  readonly strategy: string;
  readonly budgetBytes: number | null;
  readonly arenaBytes: number;
  readonly lowerBoundBytes: number;
  readonly persistentBytes: number;
  /** Of the plan that keeps everything and has no budget. */
  readonly storeAllArenaBytes: number;
  /** Steps of the schedule. */
  readonly nodes: number;
  readonly recomputedNodes: number;
  readonly recomputedFlops: number;
  /** Recomputation included. */
  readonly totalFlops: number;
  readonly predictedMs: number;
  readonly planMs: number;
  readonly feasible: boolean;
  /** The smallest budget for which the strategy has a plan. */
  readonly minimumBudgetBytes: number;
}

/** A planned program. */
export interface Planned {
  readonly graph: Graph;
  readonly plan: Plan;
  readonly planMs: number;
}

export interface PlanOutcome {
  /** Within the budget; without one where the budget is too small. */
  readonly planned: Planned;
  readonly figures: PlanFigures;
  /** Why the budget is too small. */
  readonly refusal: TidemarkError | null;
}

/** Plans within the settings' budget; `make` plans within a given one, or throws `PlanInfeasible`. */
export function planWithin<T extends Planned>(
  name: string,
  settings: PlanSettings,
  make: (budgetBytes: number | undefined) => T,
): PlanOutcome & { readonly planned: T } {
  const { budgetBytes } = settings;
  const free = make(undefined);
  const within = budgetBytes === null ? free : orRefusal(() => make(budgetBytes));
  const refusal = within instanceof TidemarkError ? within : null;
  const planned = within instanceof TidemarkError ? free : within;
  return { planned, figures: figuresOf(name, settings, planned, free, refusal === null), refusal };
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
  { graph, plan, planMs }: Planned,
  free: Planned,
  feasible: boolean,
): PlanFigures {
  const rates = detectFeatures().relaxedMadd ? WASM_RATES.fused : WASM_RATES.plain;
  const replayed = graph.nodes.filter((node) => [...withInner(node)].some((inner) => inner.replay > 0));
  const operations = [...allNodes(graph)].filter((node) => node.replay > 0 && node.regions.length === 0);
  return {
    ...{ program, target, strategy, budgetBytes },
    arenaBytes: plan.height,
    lowerBoundBytes: plan.bound.bytes,
    persistentBytes: plan.problem.buffers.reduce((sum, b) => sum + (b.kind === "persistent" ? b.bytes : 0), 0),
    storeAllArenaBytes: free.plan.height,
    nodes: graph.nodes.length,
    recomputedNodes: replayed.length,
    recomputedFlops: graphCost({ ...graph, nodes: operations }).flops,
    totalFlops: graphCost(graph).flops,
    predictedMs: predictedMs(plan, rates),
    planMs,
    feasible,
    minimumBudgetBytes: free.plan.height,
  };
}

function* withInner(node: Node): Generator<Node> {
  yield node;
  for (const region of node.regions) yield* allNodes(region);
}

/** A program compiled within a budget, and what it takes to run it. */
export interface CompiledProgram extends ProgramInfo {
  step(state: object, batch: readonly Tensor[]): readonly [object, Tensor];
}

/** Compiles a training step for the shapes of its first arguments, its state donated. */
export function compileStep(
  program: AnyProgram,
  state: object,
  batch: readonly Tensor[],
  budgetBytes: number | undefined,
): CompiledProgram {
  const options: CompileOptions = {
    donate: [0],
    name: program.name,
    ...(budgetBytes === undefined ? {} : { memory: budgetBytes }),
  };
  const step = compile(program.step, options);
  return { ...step.program(state, ...batch), step: (current, args) => step(current, ...args) };
}

/** Plans what was named on the command line. */
export function planLoaded(loaded: Loaded, settings: PlanSettings): PlanOutcome {
  if (loaded.kind === "graph") {
    return planWithin(loaded.name, settings, (budgetBytes) => assemble(loaded.graph, wasmTraits(), { budgetBytes }));
  }
  const { program } = loaded;
  const [state, batch] = [program.init(), program.batch()];
  return planWithin(loaded.name, settings, (budgetBytes) => compileStep(program, state, batch, budgetBytes));
}
