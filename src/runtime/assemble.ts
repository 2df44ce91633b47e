/**
 * @file From a traced graph to the plan that was asked for: everything stored, or what fits a budget, or the smallest.
 *
 * ```
 *   graph ─ passes ─→ before fusion ─ fuse, lower, plan ─→ everything stored ─ fits ─────────────────→ done
 *                          ▲                                     │ does not
 *                          │                                 slices: what can be computed again, at what cost
 *                    a graph with replays ←─ sequence ←─ planner of recomputation ←─╮
 *                          │                                                        │ where the arena is above the target
 *                          ╰──────── fuse, lower, plan ─→ a real plan ──────────────╯
 * ```
 *
 * The budget is on the arena of the real plan: after fusion, order and placement, with workspace and what persists.
 */
import type { Graph } from "../ir/graph.ts";
import type { LowerTraits } from "../lower/lower.ts";
import { fuse } from "../passes/fuse.ts";
import { mergeReplays } from "../passes/merge-replays.ts";
import type { Pass } from "../passes/pass.ts";
import { pipeline, runPasses } from "../passes/pipeline.ts";
import type { PlanFamily } from "../plan/budget/family.ts";
import { loopGroups, withoutChoice } from "../plan/budget/loop-groups.ts";
import { asAsked, rewindLoops } from "../plan/budget/rewind.ts";
import type { Candidate } from "../plan/budget/rungs.ts";
import { type CostModel, DEFAULT_MODELS } from "../plan/cost/model.ts";
import { planInfeasible } from "../plan/infeasible.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import { Assembler, type AssemblerOptions, type Made, type PlacedProgram, placedProgram } from "./assembler.ts";
import { AIMING, candidateOf, GraphPlans, type PlanTools } from "./graph-plans.ts";
import { LoopForms } from "./loop-forms.ts";

/** What a user may ask of memory. */
export interface MemoryRequest {
  /** The arena may not be larger. */
  readonly budgetBytes?: number | undefined;
  /** As small as possible. */
  readonly least?: boolean | undefined;
  /** As small as possible at this multiple of the predicted time of storing everything. */
  readonly maxSlowdown?: number | undefined;
  /** Who decides what is computed again; default: `auto`. */
  readonly strategy?: string | undefined;
  /** What segments are made of, for strategies that have segments; default: operations. */
  readonly segments?: Level | undefined;
}

export interface AssembleOptions extends AssemblerOptions {
  readonly memory?: MemoryRequest | undefined;
  readonly costs?: CostModel | undefined;
  /** For the strategy `optimal`. */
  readonly solver?: IntegerSolver | undefined;
  /** What happens to the graph instead of the usual passes; then everything is stored. */
  readonly passes?: readonly Pass[];
}

/** A placed program and what it was chosen from. */
export interface ChosenProgram extends PlacedProgram {
  readonly strategy: string;
  readonly predictedMs: number;
  readonly storeAll: { readonly arenaBytes: number; readonly predictedMs: number };
}

/** All plans of a program. */
export class ProgramPlans {
  readonly storeAll: Candidate<Made>;
  /** Time spent on what all plans share. */
  readonly baseMs: number;
  readonly #asWritten: Candidate<Made>;
  readonly #stored: GraphPlans;
  readonly #merged: Graph;
  readonly #tools: PlanTools;
  #forms: LoopForms | null | undefined;

  constructor(graph: Graph, traits: LowerTraits, options: AssembleOptions) {
    const started = performance.now();
    const assembler = new Assembler(traits, options);
    this.#tools = { assembler, model: options.costs ?? DEFAULT_MODELS.wasm, solver: options.solver };
    const { verify = false, passes } = options;
    const cleaned = runPasses(graph, passes ?? pipeline, verify ? { verify } : {});
    const written = passes ? cleaned : rewindLoops(cleaned, asAsked);
    this.#merged = passes ? written : mergeReplays.run(written);
    const asked = this.#merged === written ? "store-all" : "checkpoint";
    const decided = passes ? written : withoutChoice(written, this.#tools.model);
    this.#asWritten = candidateOf(assembler.make(decided, passes ? [] : [fuse]), asked, this.#tools);
    const stored = this.#merged === written ? decided : withoutChoice(this.#merged, this.#tools.model);
    this.storeAll =
      stored === decided ? this.#asWritten : candidateOf(assembler.make(stored, [fuse]), "store-all", this.#tools);
    this.#stored = new GraphPlans(stored, this.storeAll, this.#tools);
    this.baseMs = performance.now() - started;
  }

  /** What is asked for; throws `PlanInfeasible` where there is no such plan. */
  choose(request: MemoryRequest): Candidate<Made> {
    const { budgetBytes, least = false, maxSlowdown, strategy } = request;
    const budget = budgetBytes ?? Number.POSITIVE_INFINITY;
    if (strategy === undefined && budgetBytes === undefined && !least && maxSlowdown === undefined)
      return this.#asWritten;
    const found = this.#find(request);
    // With a free hand, what the user's checkpoints ask for is one more plan.
    const written =
      strategy === undefined && !least && maxSlowdown === undefined && this.#asWritten.arenaBytes <= budget;
    if (written && !(found && found.predictedMs <= this.#asWritten.predictedMs)) return this.#asWritten;
    if (found && found.arenaBytes <= budget) return found;
    const forms = this.#loopForms(strategy ?? "auto");
    const { plan } = (forms ? forms.smallest(request.segments) : this.least(request)).result;
    const limited = { ...plan, problem: { ...plan.problem, capacity: budget } };
    throw planInfeasible(limited, (strategy ?? "auto") !== "store-all");
  }

  #find(request: MemoryRequest): Candidate<Made> | null {
    const { budgetBytes, least, maxSlowdown, strategy = "auto", segments } = request;
    if (least) return this.least(request);
    const family = this.family(strategy, segments);
    const forms = this.#loopForms(strategy);
    if (maxSlowdown !== undefined) {
      const found = forms?.underMs(this.storeAll.predictedMs * maxSlowdown, segments);
      return found ?? family.slowedBy(maxSlowdown);
    }
    if (budgetBytes !== undefined) return forms ? forms.within(budgetBytes, segments) : family.within(budgetBytes);
    // Without a number of bytes to aim at, a rule does the most that it can.
    return AIMING.has(strategy) ? family.base : family.least();
  }

  /** The smallest plan. */
  least({ strategy = "auto", segments }: MemoryRequest): Candidate<Made> {
    return this.#loopForms(strategy)?.least(segments) ?? this.family(strategy, segments).least();
  }

  /** The smallest plan; of a large program the smallest of those that were made so far. */
  leastKnown({ strategy = "auto", segments }: MemoryRequest): Candidate<Made> {
    return this.#loopForms(strategy)?.least(segments) ?? this.#stored.leastKnown(strategy, segments);
  }

  /** With loops that the planner may decide about: their forms. Strategies by name are about operations alone. */
  #loopForms(strategy: string): LoopForms | null {
    if (strategy !== "auto") return null;
    if (this.#forms === undefined) {
      const groups = loopGroups(this.#merged, this.#tools.model);
      this.#forms = groups.length === 0 ? null : new LoopForms(this.#merged, this.#stored, groups, this.#tools);
    }
    return this.#forms;
  }

  /** A plan with its kernels bound to addresses. */
  placed(chosen: Candidate<Made>, planMs: number): ChosenProgram {
    const { arenaBytes, predictedMs } = this.storeAll;
    return {
      ...placedProgram(chosen.result, planMs),
      strategy: chosen.strategy,
      predictedMs: chosen.predictedMs,
      storeAll: { arenaBytes, predictedMs },
    };
  }

  /** What the operation with the largest operands needs, loops holding as little as they can: no plan is smaller. */
  floorBytes(): number {
    const stored = this.#stored.floorBytes();
    return Math.min(stored, this.#loopForms("auto")?.floorBytes() ?? stored);
  }

  /** The plans of one strategy, from everything stored to the smallest; loops are as they are stored unless it is `auto`. */
  curve(strategy: string, points: number): ReturnType<PlanFamily<Made>["curve"]> {
    return this.#loopForms(strategy)?.curve(points) ?? this.family(strategy).curve(points);
  }

  /** The plans of one strategy, loops as they are stored. */
  family(strategy: string, segments: Level = "operation"): PlanFamily<Made> {
    return this.#stored.family(strategy, segments);
  }
}

/** A traced graph, planned as asked. */
export function assemble(graph: Graph, traits: LowerTraits, options: AssembleOptions = {}): ChosenProgram {
  const started = performance.now();
  const plans = new ProgramPlans(graph, traits, options);
  const chosen = plans.choose(options.memory ?? {});
  return plans.placed(chosen, performance.now() - started);
}
