/**
 * @file From a traced graph to the plan that was asked for: everything stored, or what fits a budget, or the smallest.
 *
 * ```
 *   graph ─ passes ─→ before fusion ─ fuse, lower, plan ─→ everything stored ─ fits ─────────────────→ done
 *                          ▲                                     │ does not
 *                          │                                 slices: what can be recomputed, at what cost
 *                    a graph with replays ←─ sequence ←─ planner of recomputation ←─╮
 *                          │                                                        │ where the arena is above the target
 *                          ╰──────── fuse, lower, plan ─→ a real plan ──────────────╯
 * ```
 *
 * The budget is on the arena of the real plan: after fusion, order and placement, with workspace and what persists. Here a request is
 * answered, from the cache of plans, by another process or by a search in this one; which plans are tried is in plan-search.ts.
 */

import type { Graph } from "../ir/graph.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import type { PlanFamily } from "../plan/budget/family.ts";
import { planInfeasible } from "../plan/infeasible.ts";
import { withinBudget } from "../plan/plan.ts";
import { withCapacity } from "../plan/problem.ts";
import type { Level } from "../plan/recompute/levels.ts";
import { strategyNamed } from "../plan/recompute/strategies.ts";
import type { StrategyName } from "../plan/recompute/strategy.ts";
import { arenaSpace, type TargetDescription } from "../target/description.ts";
import type { PlannedProgram } from "./assembler.ts";
import type { PlanTools } from "./candidate.ts";
import { NO_HOST, type Planner, type PlannerHost } from "./host.ts";
import { cacheOf, isWorthKeeping, LEAST_SEARCHED } from "./kept-plans.ts";
import { loopSupport } from "./loops.ts";
import type { LossyForms } from "./lossy-forms.ts";
import type { TargetCosts } from "./node-costs.ts";
import { fitted } from "./offload.ts";
import type { ChosenPlan, KeptAnswer, PlanCache } from "./plan-cache.ts";
import { PlanSearch } from "./plan-search.ts";
import {
  asksNothing,
  type LossyRequest,
  type MemoryRequest,
  memoryKey,
  PLAIN_REQUEST,
  type PlanRequest,
  type SourceProgram,
} from "./request.ts";
import type { SpilledPlans } from "./spill.ts";
import { type ChosenProgram, placedPlan, planTools } from "./stored.ts";
import { requireValidPlan } from "./valid-plan.ts";

/** Of which programs the smallest budget is searched for, which takes seconds: those of a few steps take little. */
export type MinimumSearch = "none" | "small programs" | "all programs";

/** With a file: so near the time of storing everything that recomputing alone is not looked at. */
const NEARLY = 1.05;

/** All plans of a program. Each is made when it is first asked for, and may come from a cache (plan-cache.ts). */
export class ProgramPlans {
  readonly #graph: Graph;
  readonly #tools: PlanTools;
  readonly #cache: PlanCache | null;
  readonly #search: PlanSearch;
  /** The last one that came from the cache, and what it was asked for with. */
  #restored: (KeptAnswer & { readonly request: MemoryRequest }) | null = null;
  /** Whether plans of this program are in the cache. */
  #isKept = false;
  /** Whether the one that came from there was made for this request, by another process. */
  #isNew = false;
  /** Plans from the cache, with collectives in flight. */
  readonly #overlapped = new WeakSet<Candidate<PlannedProgram>>();

  constructor(
    source: SourceProgram,
    target: TargetDescription,
    request: PlanRequest = PLAIN_REQUEST,
    host: PlannerHost = NO_HOST,
  ) {
    this.#graph = source.graph;
    this.#tools = planTools(source, target, request, { ...host, loops: loopSupport });
    this.#cache = cacheOf(source, this.#tools);
    this.#search = new PlanSearch(source.graph, this.#tools);
  }

  /** Costs of nodes on the target. */
  get costs(): TargetCosts {
    return this.#tools.costs;
  }

  /** The numbers of everything stored, loops too, which a plan from the cache comes with. */
  get storeAllFigures(): ChosenPlan["storeAll"] {
    const restored = this.#search.hasPlans ? null : this.#restored?.storeAll;
    const { arenaBytes, predictedMs } = restored ?? this.#search.baseline;
    return { arenaBytes, predictedMs };
  }

  /**
   * The plan that is asked for; throws `PlanInfeasible` where there is none. Values that the target's memory cannot hold are
   * moved to its other memory where it has one, and recomputed otherwise.
   */
  choose(memory: MemoryRequest = this.#tools.request.memory): Candidate<PlannedProgram> {
    const chosen = this.#chosen(memory);
    const { capacity } = arenaSpace(this.#tools.assembler.target);
    const overlapped = this.#tools.host.overlappedPlan?.(chosen, memory.budgetBytes ?? capacity, this.#tools);
    if (!overlapped || overlapped === chosen) return chosen;
    if (this.isCached(chosen)) this.#overlapped.add(overlapped);
    return overlapped;
  }

  /** With every collective done when its step is. */
  #chosen(memory: MemoryRequest): Candidate<PlannedProgram> {
    if (memory.spill && memory.budgetBytes !== undefined) return this.#spilled(memory, memory.budgetBytes);
    const { capacity } = arenaSpace(this.#tools.assembler.target);
    const budgetBytes = Math.min(memory.budgetBytes ?? capacity, capacity);
    const within = (asked: MemoryRequest): Candidate<PlannedProgram> | null =>
      fitted(this.#answer(asked), budgetBytes, this.#tools);
    const budgeted = { ...memory, budgetBytes };
    const first = within(memory.budgetBytes === undefined ? memory : budgeted);
    const chosen = first ?? (asksNothing(memory) ? within(budgeted) : null);
    if (!chosen) throw planInfeasible(withCapacity(this.smallest(memory).result.plan, budgetBytes), true);
    withinBudget(chosen.result.plan, Number.POSITIVE_INFINITY);
    return chosen;
  }

  /** With a file as second memory. */
  #spilled(memory: MemoryRequest, budgetBytes: number): Candidate<PlannedProgram> {
    const { quick = true, spill } = memory;
    const plain = { ...memory, quick, spill: undefined };
    const search = (bytes: number): Candidate<PlannedProgram> | null => {
      const request = { ...plain, budgetBytes: bytes };
      // many budgets, of which the first good plan will do
      return quick ? this.#search.quick(request) : this.#found(request);
    };
    const chosen = this.#spilledPlans?.within(this.storeAll, budgetBytes, spill?.movesOnly ? null : search, {
      ...this.#tools,
      request: { ...this.#tools.request, memory },
    });
    if (spill?.movesOnly) return chosen ?? this.#notRefused(this.#leastSpilled(), memory);
    if (chosen && (!quick || chosen.predictedMs <= NEARLY * this.storeAll.predictedMs)) return chosen;
    // the first good plans for many budgets may all be slower than the plan that has no file
    const recomputed = this.#found(plain);
    const fits = recomputed.arenaBytes <= budgetBytes;
    if (fits && (!chosen || recomputed.predictedMs < chosen.predictedMs)) return recomputed;
    return chosen ?? this.#notRefused(this.#leastSpilled(), memory);
  }

  /** The smallest plan with all that can be moved in a file. */
  #leastSpilled(): Candidate<PlannedProgram> {
    return this.#spilledPlans?.least(this.storeAll, this.#tools) ?? this.storeAll;
  }

  get #spilledPlans(): SpilledPlans | undefined {
    const { host, request } = this.#tools;
    return request.memory.spill?.plans ?? host.spilledPlans;
  }

  /** The plan from the cache, or the one that a search finds; throws where it is refused. */
  #answer(request: MemoryRequest): Candidate<PlannedProgram> {
    return this.#notRefused(this.#found(request), request);
  }

  /** The same, with the smallest plan as the answer where none is within the budget. */
  #found(request: MemoryRequest): Candidate<PlannedProgram> {
    const worth = isWorthKeeping(this.#graph, request);
    // a proof cannot be checked when the plan is read
    const isProven = strategyNamed(request.strategy).solver === "required";
    const cache = worth && !isProven ? this.#cache : null;
    let restored = cache?.answer(memoryKey(request), this.#tools, request.budgetBytes);
    this.#isNew = false;
    const isSearched = !restored && !asksNothing(request) && this.#graph.nodes.length >= LEAST_SEARCHED;
    // progress can be reported from this process alone
    const { rebuild } = this.#tools.assembler.target;
    if (cache?.hasPlanProcess && rebuild && isSearched && !this.#tools.request.progress) {
      cache.planInProcess(rebuild, request, memoryKey(request));
      restored = cache.answer(memoryKey(request), this.#tools, request.budgetBytes);
      this.#isNew = true;
    }
    if (restored) {
      this.#restored = { ...restored, request };
      this.#isKept = true;
      if (restored.isRefused) this.#search.setSmallest(request, restored.chosen);
      return restored.chosen;
    }
    const started = performance.now();
    const chosen = this.#search.choose(request);
    if (cache?.wants(performance.now() - started)) {
      this.#isKept = true;
      const what = this.#isRefused(chosen, request) ? "refused" : "plan";
      cache.keepPlan(what, memoryKey(request), { chosen, storeAll: this.#search.baseline });
    }
    return chosen;
  }

  /** Whether a plan is above the budget, and there is no other memory that its values could be moved to. */
  #isRefused({ arenaBytes, result }: Candidate<PlannedProgram>, { budgetBytes, spill }: MemoryRequest): boolean {
    const isLast = spill !== undefined || result.program.spaces.length === 1;
    return budgetBytes !== undefined && arenaBytes > budgetBytes && isLast;
  }

  /** The smallest plan of a request that is refused becomes the error that says so. */
  #notRefused(chosen: Candidate<PlannedProgram>, request: MemoryRequest): Candidate<PlannedProgram> {
    if (!this.#isRefused(chosen, request)) return chosen;
    const budgeted = withCapacity(chosen.result.plan, request.budgetBytes ?? Number.POSITIVE_INFINITY);
    throw planInfeasible(budgeted, !strategyNamed(request.strategy).recomputesNothing);
  }

  /** Whether a plan that was chosen came from the cache. */
  isCached(chosen: Candidate<PlannedProgram>): boolean {
    return this.#overlapped.has(chosen) || (this.#restored?.chosen === chosen && !this.#isNew);
  }

  /**
   * Bytes of the smallest budget with a plan of the request's strategy: what a refusal says is needed. Null where it is not known,
   * and not searched for.
   */
  minimumBudgetBytes(
    request: MemoryRequest = this.#tools.request.memory,
    search: MinimumSearch = "small programs",
  ): number | null {
    if (request.spill) {
      const isLooked = search === "all programs" || (search === "small programs" && this.#search.isSmall);
      return isLooked ? this.#leastSpilled().arenaBytes : null;
    }
    const { chosen, isRefused = false } = this.#restored ?? {};
    const kept = chosen && this.#cache?.least(memoryKey(request), chosen.arenaBytes);
    if (typeof kept === "number") return kept;
    if (chosen && isRefused) return chosen.arenaBytes;
    const isLooked = request.least || this.#search.hasLeast;
    if (!isLooked && search === "none") return null;
    // the plans that a plan from the cache was chosen from
    if (this.#restored && !this.#search.hasPlans) this.#search.choose(this.#restored.request);
    if (!isLooked && search !== "all programs" && !this.#search.isSmall) return null;
    const { arenaBytes } = this.smallest(request);
    if (this.#isKept) this.#cache?.keepLeast(memoryKey(request), arenaBytes);
    return arenaBytes;
  }

  /** A plan with its kernels bound to addresses; throws when `validate` finds it broken. */
  placed(chosen: Candidate<PlannedProgram>, planMs: number, base = 0): ChosenProgram {
    if (this.#tools.request.validate) requireValidPlan(chosen.result.plan);
    const about = { storeAll: this.storeAllFigures, planCached: this.isCached(chosen), planMs };
    return placedPlan(chosen, about, base);
  }

  get storeAll(): Candidate<PlannedProgram> {
    return this.#search.storeAll;
  }

  /** Everything stored, before fusion. */
  get storedGraph(): Graph {
    return this.#search.storedGraph;
  }

  /** The forms of the program in which residuals are rounded. */
  lossyForms(lossy: LossyRequest): LossyForms {
    return this.#search.lossyForms(lossy);
  }

  /** The smallest plan; loops do not run hundreds of times for the last few bytes. */
  least(request: MemoryRequest): Candidate<PlannedProgram> {
    return this.#search.least(request);
  }

  /** The smallest plan there is, however long it takes. */
  smallest(request: MemoryRequest): Candidate<PlannedProgram> {
    return this.#search.smallest(request);
  }

  /** Bytes of the arguments, or of results and persistent values: no plan is smaller. */
  floorBytes(): number {
    return this.#search.floorBytes();
  }

  /** The plans of one strategy, from everything stored to the smallest; loops are as they are stored unless it is `auto`. */
  curve(name: StrategyName, points: number): ReturnType<PlanFamily<PlannedProgram>["curve"]> {
    return this.#search.curve(name, points);
  }

  /** The plans of one strategy, loops as they are stored. */
  family(name: StrategyName, segments?: Level): PlanFamily<PlannedProgram> {
    return this.#search.family(name, segments);
  }
}

/** Plans for whatever is asked of memory. */
export const budgetPlanner: Planner = { assemble };

/** A traced graph, planned as asked; what is not asked for is as in `PLAIN_REQUEST`. */
export function assemble(
  source: SourceProgram,
  target: TargetDescription,
  request: Partial<PlanRequest> = {},
  host: PlannerHost = NO_HOST,
): ChosenProgram {
  const started = performance.now();
  const plans = new ProgramPlans(source, target, { ...PLAIN_REQUEST, ...request }, host);
  const chosen = plans.choose();
  return plans.placed(chosen, performance.now() - started);
}
