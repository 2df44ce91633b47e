/**
 * @file Plans a program under a budget and reports the figures, for `plan` and `bench`. A budget that is too small has
 * figures too: those of the smallest plan.
 */

import { planningShare } from "../api/compile-progress.ts";
import { currentHost } from "../api/host.ts";
import { type LossyOptions, lossyOptions, lossyRequest } from "../api/lossy-options.ts";
import { plansOf } from "../api/plan.ts";
import type { PlanningOptions } from "../api/request.ts";
import { pathsOf } from "../api/traced-program.ts";
import { formatBytes } from "../base/bytes.ts";
import { counted, TidemarkError } from "../base/errors.ts";
import { at } from "../base/invariant.ts";
import { type MinimumSearch, ProgramPlans } from "../compiler/assemble.ts";
import type { TargetCosts } from "../compiler/node-costs.ts";
import { type MemoryRequest, PLAIN_REQUEST, type PlanProgress } from "../compiler/request.ts";
import type { RoundedReport } from "../ir/facts.ts";
import type { Graph, Node } from "../ir/graph.ts";
import { byteLength } from "../ir/type.ts";
import { allNodes } from "../ir/walk.ts";
import { graphCost } from "../ops/control.ts";
import type { Proof } from "../plan/budget/budget-levels.ts";
import { gradientBytes } from "../plan/gradients.ts";
import { type Plan, withCapacity } from "../plan/problem.ts";
import { LEVELS } from "../plan/recompute/levels.ts";
import { auto } from "../plan/recompute/strategies.ts";
import { STRATEGY_NAMES } from "../plan/recompute/strategy.ts";
import { roundedReports } from "../plan/rounded.ts";
import { spaceOf } from "../plan/space.ts";
import { type StripReport, stripReports } from "../plan/strips.ts";
import { chooseTarget, type NamedTarget } from "../runtime/choose-target.ts";
import { secondMemoryOf } from "../runtime/device.ts";
import type { AnyFunction } from "../trace/function.ts";
import { type Arguments, choice, type Io, type OptionSpec, sizeOf, usageError } from "./command.ts";
import type { Loaded } from "./load.ts";
import type { MachineModel } from "./machine.ts";
import { lowerBoundMs, planTraffic, type Traffic } from "./plan-traffic.ts";
import { PRODUCTS_OPTIONS } from "./products-option.ts";
import { SPILL_OPTION, type SpillSettings, spillOf, withLink } from "./spill.ts";
import { argumentsOf, TARGET_OPTIONS, type TargetSettings, targetFor, targetSettings } from "./target-settings.ts";

export const LOSSY_OPTION: OptionSpec = {
  value: "SPEC",
  help: "what may be kept in fewer bits: auto, or linear=4,rest=8; also bf16, sparse:0.1, rank:16, seed=N. Results change (docs/lossy.md)",
};

export const MEMORY_OPTIONS = {
  budget: { value: "SIZE", help: "limit on the arena: 64MiB, 1.5GB, 4096; or min, the smallest arena" },
  "max-slowdown": { value: "X", help: "the smallest arena at X times the predicted time: 1.3" },
  strategy: { value: "NAME", help: `how to choose what to recompute: ${STRATEGY_NAMES.join(", ")}; default: auto` },
  lossy: LOSSY_OPTION,
  segments: { value: "LEVEL", help: `where segments may be cut: ${LEVELS.join(", ")}; default: operation` },
} as const satisfies Record<string, OptionSpec>;

export const PLAN_OPTIONS = {
  ...MEMORY_OPTIONS,
  ...SPILL_OPTION,
  ...TARGET_OPTIONS,
  ...PRODUCTS_OPTIONS,
} as const satisfies Record<string, OptionSpec>;

export interface PlanSettings extends TargetSettings {
  readonly memory: MemoryRequest;
  readonly spill?: SpillSettings | undefined;
  readonly progress?: ((event: PlanProgress) => void) | undefined;
  /** With `auto`: the settings for WebAssembly, used if programs cannot be loaded for the chosen target. */
  readonly instead?: (why: string) => PlanSettings;
}

/** What the options ask of memory. */
export function memoryOf(args: Arguments): MemoryRequest {
  const strategy =
    args.value("strategy") === undefined ? undefined : choice(args, "strategy", [auto.name, ...STRATEGY_NAMES]);
  const least = args.value("budget") === "min";
  const slowdown = args.value("max-slowdown");
  const maxSlowdown = slowdown === undefined ? undefined : Number(slowdown);
  if (maxSlowdown !== undefined && !(maxSlowdown >= 1)) {
    throw usageError(`--max-slowdown ${slowdown}`, "give a factor of the time without recomputation, at least 1");
  }
  if (maxSlowdown !== undefined && least) {
    throw usageError("--budget min with --max-slowdown", "give one of them: both ask for few bytes");
  }
  const budgetBytes = least ? undefined : (sizeOf(args, "budget") ?? undefined);
  const lossy = lossyRequest("--lossy", lossyOf(args));
  return { budgetBytes, least, maxSlowdown, strategy, segments: choice(args, "segments", LEVELS), lossy };
}

/** `4`, `bf16`, `sparse:0.1`, `rank:16`; what is none of them is refused where the option is read. */
function formNamed(text: string): unknown {
  const [name = "", amount] = text.split(":");
  if (amount !== undefined) return { [name]: Number(amount) };
  return Number.isNaN(Number(text)) ? text : Number(text);
}

/** `auto`, or bits by kind: `linear=4,rest=8`. */
export function lossyOf(args: Arguments): LossyOptions | undefined {
  const text = args.value("lossy");
  if (text === undefined) return undefined;
  const parts = text.split(",").map((part) => part.split("="));
  const known = ["auto", "linear", "rest", "seed"];
  const wrong = parts.find(
    ([name = "", value]) => !known.includes(name) || (name !== "auto") !== (value !== undefined && value !== ""),
  );
  if (wrong)
    throw usageError(`--lossy ${text}: ${wrong.join("=")}`, "give auto, or linear=4,rest=8; seed=N beside them");
  const { seed, ...bits } = Object.fromEntries(parts.map(([name = "", value = ""]) => [name, formNamed(value)]));
  const residuals = "auto" in bits ? "auto" : bits;
  return { residuals, ...(seed === undefined ? {} : { seed }) } as LossyOptions;
}

/** `runs`: the program is run and not only planned, so that its target must be here. */
export async function planSettings(args: Arguments, io: Io, loaded: Loaded, runs = false): Promise<PlanSettings> {
  const asked = memoryOf(args);
  const spill = spillOf(args);
  if (spill && asked.budgetBytes === undefined) {
    throw usageError("--spill without a budget in bytes", "give one: --budget 64MiB --spill /tmp");
  }
  const memory = spill ? { ...asked, spill } : asked;
  const progress = progressTo(io, () => "planning", !args.has("html"));
  const settingsFor = (chosen: NamedTarget): PlanSettings => {
    const { instead } = chosen;
    const own = targetSettings(chosen, args, io);
    const machine = { ...own.machine, costs: withLink(own.machine.costs, spill) };
    const settings = { ...own, machine, memory, spill, progress };
    return instead ? { ...settings, instead: (why) => settingsFor(instead(why)) } : settings;
  };
  return settingsFor(await targetFor(args, loaded, { runs, second: spill && secondMemoryOf(spill.options) }));
}

/** Counts plans; of one search the share is estimated, of a curve it is not known. */
export function progressTo({ progress }: Io, doing: () => string, isSearch: boolean): PlanSettings["progress"] {
  if (!progress) return undefined;
  let [plans, least] = [0, Number.POSITIVE_INFINITY];
  return ({ arenaBytes }) => {
    plans += 1;
    least = Math.min(least, arenaBytes);
    const count = `${doing()}: ${counted(plans, "plan")}, the smallest takes ${formatBytes(least)}`;
    progress({ doing: count, ...(isSearch ? { share: planningShare(plans) } : {}) });
  };
}

/** A request as options of `compile`. */
export function memoryOptions(request: MemoryRequest): PlanningOptions {
  const { budgetBytes, least, maxSlowdown, strategy, segments, lossy } = request;
  const bytes = least ? "min" : budgetBytes;
  return {
    ...(bytes === undefined ? {} : { memory: bytes }),
    ...(maxSlowdown === undefined ? {} : { maxSlowdown }),
    ...(strategy === undefined ? {} : { strategy }),
    ...(segments === undefined ? {} : { segments }),
    ...(lossy === undefined ? {} : { lossy: lossyOptions(lossy) }),
  };
}

/** The settings as options of `compile`. */
export function compileOptions(settings: PlanSettings): PlanningOptions {
  const { target, products, threads = 1, memory, machine, spill } = settings;
  const chosen = { ...(products === undefined ? {} : { products }), ...(spill ? { spill: spill.options } : {}) };
  return { target, threads, effort: "full", costs: machine.costs, ...chosen, ...memoryOptions(memory) };
}

/** Bytes that stay between steps: in the arena and in the file (--spill), and by kind in both. */
export interface PersistentFigures {
  readonly persistentBytes: number;
  readonly spillPersistentBytes: number;
  readonly parameterBytes: number;
  readonly optimizerBytes: number;
  readonly constantBytes: number;
}

/** The numbers of a plan; sizes are plain bytes. */
export interface PlanFigures extends PersistentFigures, Traffic {
  readonly program: string;
  readonly target: string;
  readonly strategy: string;
  readonly budgetBytes: number | null;
  readonly arenaBytes: number;
  readonly lowerBoundBytes: number;
  /** The rest of the arena. */
  readonly ephemeralBytes: number;
  /** Of the plan that keeps everything. */
  readonly storeAllArenaBytes: number;
  /** Of the file that values are moved to (--spill). */
  readonly spillBytes: number;
  /** Steps of the schedule. */
  readonly nodes: number;
  readonly recomputedNodes: number;
  readonly recomputedFlops: number;
  /** Recomputation included. */
  readonly totalFlops: number;
  readonly predictedMs: number;
  /** No plan of the program takes less by the same rates: products once at their full rate, or inputs and results moved once. */
  readonly lowerBoundMs: number;
  readonly storeAllPredictedMs: number;
  /** The most bytes of gradients that are live at one step. */
  readonly gradientBytes: number;
  /** Parts that run in strips of rows. */
  readonly strips: readonly StripReport[];
  /** Values that the backward pass reads rounded, under --lossy. */
  readonly lossy: readonly RoundedReport[];
  /** For the strategy `optimal`: the cost of recomputation over the solver's bound, minus 1; null for others. */
  readonly gap: number | null;
  /** Whether the solver proved optimality. */
  readonly proven: boolean;
  /** Whether predictions use this machine's measured speed (`tidemark calibrate`). */
  readonly costModel: MachineModel["costModel"];
  readonly traceMs: number;
  /** Time of passes, lowering and planning. */
  readonly planMs: number;
  /** Whether the plan was read from the cache and checked. */
  readonly planCached: boolean;
  readonly feasible: boolean;
  /** The smallest budget with a plan of the strategy, as a refusal says it; null where it was not looked for. */
  readonly minimumBudgetBytes: number | null;
}

/** A planned program, with the path of each parameter in the arguments. */
export interface Planned {
  readonly graph: Graph;
  /** The costs of its nodes. */
  readonly costs: TargetCosts;
  readonly plan: Plan;
  readonly paths: readonly string[];
  readonly predictedMs: number;
  readonly strategy: string;
  readonly proof: Proof | undefined;
}

/** All plans of a program. */
export interface LoadedPlans {
  readonly plans: ProgramPlans;
  readonly paths: readonly string[];
  readonly traceMs: number;
  /** The graph before all passes. */
  readonly traced: Graph;
}

export interface PlanOutcome extends LoadedPlans {
  /** The plan within the budget; the smallest one if the budget is too small. */
  readonly planned: Planned;
  /** All figures; the smallest budget takes a search of its own. */
  figures(search?: MinimumSearch): PlanFigures;
  /** Why the budget is too small. */
  readonly refusal: TidemarkError | null;
}

/** The plans of a loaded program; nothing is allocated. */
export function plansOfLoaded(loaded: Loaded, settings: PlanSettings): LoadedPlans {
  const { machine, target, products, threads, progress } = settings;
  const { costs } = machine;
  if (loaded.kind === "graph") {
    const host = currentHost();
    const { description } = chooseTarget(host, target, { threads, products, isPlanned: true }).target;
    const plans = new ProgramPlans(loaded, description, { ...PLAIN_REQUEST, costs, progress }, host);
    return { plans, traceMs: 0, traced: loaded.graph, paths: loaded.graph.params.map((param) => param.name ?? "") };
  }
  const { program } = loaded;
  const args = argumentsOf(program);
  const options = {
    ...{ donate: [0], name: program.name, target, costs },
    ...(products === undefined ? {} : { products }),
    ...(progress === undefined ? {} : { progress }),
    ...(threads === undefined ? {} : { threads }),
  };
  const { plans, source } = plansOf(program.step as AnyFunction, args, options);
  return { plans, traceMs: source.traceMs, traced: source.graph, paths: pathsOf(source) };
}

/** Plans a loaded program. */
export function planLoaded(loaded: Loaded, settings: PlanSettings): PlanOutcome {
  const { heap } = currentHost();
  const loadedPlans = heap.keptSmall(() => plansOfLoaded(loaded, settings));
  const { plans, paths } = loadedPlans;
  const { memory } = settings;
  const started = performance.now();
  const chosen = planOrError(() => heap.keptSmall(() => plans.choose(memory)));
  const planMs = performance.now() - started;
  const refusal = chosen instanceof TidemarkError ? chosen : null;
  const best = chosen instanceof TidemarkError ? plans.smallest(memory) : chosen;
  const { result, predictedMs, strategy, proof } = best;
  const capacity = refusal ? Number.POSITIVE_INFINITY : (memory.budgetBytes ?? Number.POSITIVE_INFINITY);
  const plan = withCapacity(result.plan, capacity);
  const planned = { graph: result.graph, costs: plans.costs, plan, paths, predictedMs, strategy, proof };
  const figures = (search?: MinimumSearch): PlanFigures =>
    figuresOf(settings, planned, loadedPlans, {
      ...{ program: loaded.name, planMs, planCached: plans.isCached(best), feasible: refusal === null },
      minimumBudgetBytes: heap.keptSmall(() => plans.minimumBudgetBytes(memory, search)),
    });
  return { ...loadedPlans, planned, figures, refusal };
}

function planOrError<T>(make: () => T): T | TidemarkError {
  try {
    return make();
  } catch (error) {
    if (error instanceof TidemarkError && error.code === "PlanInfeasible") return error;
    throw error;
  }
}

/** Nodes and work due to recomputation. */
export function recomputed(graph: Graph): { readonly nodes: number; readonly flops: number } {
  const replayed = graph.nodes.filter((node) => [...withInner(node)].some((inner) => inner.replay > 0));
  const operations = [...allNodes(graph)].filter((node) => node.replay > 0 && node.regions.length === 0);
  return { nodes: replayed.length, flops: graphCost({ ...graph, nodes: operations }).flops };
}

function figuresOf(
  { target, memory, machine }: PlanSettings,
  { graph, plan: made, paths, predictedMs, strategy, proof }: Planned,
  { plans, traceMs }: LoadedPlans,
  { program, ...outcome }: Pick<PlanFigures, "program" | "planMs" | "planCached" | "feasible" | "minimumBudgetBytes">,
): PlanFigures {
  const again = recomputed(graph);
  const traffic = planTraffic(made, plans.costs);
  const persistent = persistentFigures(made, paths);
  return {
    ...{ program, target, strategy },
    budgetBytes: memory.budgetBytes ?? null,
    arenaBytes: made.height,
    lowerBoundBytes: made.bound.bytes,
    ...persistent,
    ephemeralBytes: made.height - persistent.persistentBytes,
    storeAllArenaBytes: plans.storeAllFigures.arenaBytes,
    spillBytes: made.others[0]?.height ?? 0,
    nodes: graph.nodes.length,
    recomputedNodes: again.nodes,
    recomputedFlops: again.flops,
    totalFlops: graphCost(graph).flops,
    ...traffic,
    predictedMs,
    lowerBoundMs: Math.min(predictedMs, lowerBoundMs(graph, traffic.leastBytes, plans.costs)),
    storeAllPredictedMs: plans.storeAllFigures.predictedMs,
    gradientBytes: gradientBytes(made),
    strips: stripReports(made),
    lossy: roundedReports(graph),
    gap: proof?.gap ?? null,
    proven: proof?.proven ?? false,
    costModel: machine.costModel,
    traceMs,
    ...outcome,
  };
}

/**
 * Persistent bytes by kind: `state.params` and the rest of the state, or the whole state if it has no member of that
 * name; constants are captured tensors.
 */
export function persistentFigures(plan: Plan, paths: readonly string[]): PersistentFigures {
  const { params, persistent, donated } = plan.program;
  const isParameter = (path: string): boolean => /^\w+\.params\b/.test(path);
  const named = paths.some(isParameter);
  const bytes = { parameterBytes: 0, optimizerBytes: 0, constantBytes: 0 };
  let spillPersistentBytes = 0;
  params.forEach((param, i) => {
    if (!persistent.has(param)) return;
    const ofState = !named || isParameter(at(paths, i)) ? "parameterBytes" : "optimizerBytes";
    bytes[donated.has(param) ? ofState : "constantBytes"] += byteLength(param.type);
    if (spaceOf(plan.program, param) > 0) spillPersistentBytes += byteLength(param.type);
  });
  const persistentBytes = bytes.parameterBytes + bytes.optimizerBytes + bytes.constantBytes - spillPersistentBytes;
  return { persistentBytes, spillPersistentBytes, ...bytes };
}

function* withInner(node: Node): Generator<Node> {
  yield node;
  for (const region of node.regions) yield* allNodes(region);
}
