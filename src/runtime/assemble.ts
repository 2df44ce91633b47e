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
import { planConflicts } from "../plan/budget/conflicts.ts";
import { PlanFamily } from "../plan/budget/family.ts";
import { replayGraph } from "../plan/budget/replay.ts";
import { type Candidate, type FamilyOptions, Front, Ladder, type Realise } from "../plan/budget/rungs.ts";
import { type SlicedProgram, sliceProgram } from "../plan/budget/slices.ts";
import { type CostModel, DEFAULT_MODELS, planMs } from "../plan/cost/model.ts";
import { planInfeasible } from "../plan/infeasible.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import { Assembler, type AssemblerOptions, type Made, type PlacedProgram, placedProgram } from "./assembler.ts";

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

/** Strategies that aim at a number of bytes; the others are rules that do not know it. */
const AIMING: ReadonlySet<string> = new Set(["auto", "look-ahead", "chain", "optimal"]);

/** Work of a plan of recomputation: about as long as fusing and placing the program takes. */
const effortFor = (ops: number): number => Math.min(0.025, 8 / Math.max(1, ops));

/** All plans of a program. */
export class ProgramPlans {
  readonly storeAll: Candidate<Made>;
  /** Time spent on what all plans share. */
  readonly baseMs: number;
  readonly #asWritten: Candidate<Made>;
  readonly #families = new Map<string, PlanFamily<Made>>();
  readonly #merged: Graph;
  #sliced: SlicedProgram | undefined;
  readonly #assembler: Assembler;
  readonly #model: CostModel;
  readonly #solver: IntegerSolver | undefined;

  constructor(graph: Graph, traits: LowerTraits, options: AssembleOptions) {
    const started = performance.now();
    this.#assembler = new Assembler(traits, options);
    this.#model = options.costs ?? DEFAULT_MODELS.wasm;
    this.#solver = options.solver;
    const { verify = false, passes } = options;
    const written = runPasses(graph, passes ?? pipeline, verify ? { verify } : {});
    this.#merged = passes ? written : mergeReplays.run(written);
    const asked = this.#merged === written ? "store-all" : "checkpoint";
    this.#asWritten = this.#candidate(this.#assembler.make(written, passes ? [] : [fuse]), asked);
    this.storeAll =
      this.#merged === written
        ? this.#asWritten
        : this.#candidate(this.#assembler.make(this.#merged, [fuse]), "store-all");
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
    const { plan } = this.family(strategy ?? "auto", request.segments).least().result;
    const limited = { ...plan, problem: { ...plan.problem, capacity: budget } };
    throw planInfeasible(limited, (strategy ?? "auto") !== "store-all");
  }

  #find({ budgetBytes, least, maxSlowdown, strategy = "auto", segments }: MemoryRequest): Candidate<Made> | null {
    const family = this.family(strategy, segments);
    if (least) return family.least();
    if (maxSlowdown !== undefined) return family.slowedBy(maxSlowdown);
    if (budgetBytes !== undefined) return family.within(budgetBytes);
    // Without a number of bytes to aim at, a rule does the most that it can.
    return AIMING.has(strategy) ? family.base : family.least();
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

  /** What the operation with the largest operands needs: no plan is smaller. */
  floorBytes(): number {
    return this.#slices().floorBytes;
  }

  #slices(): SlicedProgram {
    this.#sliced ??= sliceProgram(this.#merged, this.storeAll.result.plan, this.#model);
    return this.#sliced;
  }

  /** The plans of one strategy. */
  family(strategy: string, segments: Level = "operation"): PlanFamily<Made> {
    const key = `${strategy} of ${segments}s`;
    const known = this.#families.get(key);
    if (known) return known;
    const sliced = this.#slices();
    const { problem } = sliced;
    const realise: Realise<Made> = (sequence, target) => {
      const replayed = replayGraph(sliced, sequence);
      const made = this.#assembler.make(replayed.graph, [fuse], target);
      const result = this.#candidate(made, strategy);
      return { arenaBytes: result.arenaBytes, result, conflicts: planConflicts(made.plan, target, sliced, replayed) };
    };
    const options: FamilyOptions = {
      floorBytes: sliced.floorBytes,
      strategy,
      effort: effortFor(problem.ops.length),
      solver: this.#solver,
      level: segments,
    };
    const Rungs = AIMING.has(strategy) ? Ladder : Front;
    const family = new PlanFamily(this.storeAll, new Rungs(problem, this.storeAll, realise, options));
    this.#families.set(key, family);
    return family;
  }

  #candidate(result: Made, strategy: string): Candidate<Made> {
    return {
      strategy,
      arenaBytes: result.plan.height,
      predictedMs: planMs(result.plan, this.#model, result.lowered),
      result,
    };
  }
}

/** A traced graph, planned as asked. */
export function assemble(graph: Graph, traits: LowerTraits, options: AssembleOptions = {}): ChosenProgram {
  const started = performance.now();
  const plans = new ProgramPlans(graph, traits, options);
  const chosen = plans.choose(options.memory ?? {});
  return plans.placed(chosen, performance.now() - started);
}
