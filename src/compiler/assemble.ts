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
 * The budget is on the arena of the real plan: after fusion, order and placement, with workspace and what persists.
 */

import type { Graph } from "../ir/graph.ts";
import { loopGroups, withSchedules } from "../loops/groups.ts";
import { LoopLevels, openCheckpoints } from "../loops/strategies.ts";
import { endsBytes } from "../plan/bound.ts";
import { type Candidate, UNREACHED } from "../plan/budget/budget-levels.ts";
import { isSmaller, PlanFamily } from "../plan/budget/family.ts";
import { planInfeasible } from "../plan/infeasible.ts";
import { withinBudget } from "../plan/plan.ts";
import { withCapacity } from "../plan/problem.ts";
import type { Level } from "../plan/recompute/levels.ts";
import { auto, binomial, strategyNamed } from "../plan/recompute/strategies.ts";
import type { Strategy, StrategyName } from "../plan/recompute/strategy.ts";
import { arenaSpace, type TargetDescription } from "../target/description.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import { familyKey, GraphPlans } from "./graph-plans.ts";
import { NO_HOST, type Planner, type PlannerHost } from "./host.ts";
import { LoopForms, SMALL } from "./loop-forms.ts";
import { loopSupport } from "./loops.ts";
import type { TargetCosts } from "./node-costs.ts";
import { fitted } from "./offload.ts";
import { type ChosenPlan, type KeptAnswer, PlanCache, settingsOf } from "./plan-cache.ts";
import {
  asksNothing,
  isQuick,
  type MemoryRequest,
  memoryKey,
  PLAIN_REQUEST,
  type PlanRequest,
  type SourceProgram,
} from "./request.ts";
import { requireValidPlan } from "./require-valid.ts";
import { type ChosenProgram, placedPlan, planTools, type StoredPlans, storedPlans } from "./stored.ts";
import { batchPlans, cutFurther, stripForm } from "./strip-forms.ts";
import { fastestOf, WideSearch } from "./wide-search.ts";

/** Programs of fewer nodes are planned about as fast as a plan is read, unless something is asked of their memory. */
const LEAST_NODES = 256;

/** Whether a program's plan is looked for in a cache. */
export const isWorthKeeping = ({ nodes }: Graph, request: MemoryRequest): boolean =>
  !asksNothing(request) || nodes.length >= LEAST_NODES;

/** Nodes from which on the search for a plan within a budget takes more memory than another process is worth. */
const LEAST_SEARCHED = 64;

/** The cache of a program's plans; null where the request rules it out, or the host has no store. */
function cacheOf(source: SourceProgram, { assembler, costs, request, host }: PlanTools): PlanCache | null {
  const { cache, validate, passes, solver } = request;
  const { key } = assembler.target;
  if (!cache || validate || passes || solver || key === undefined) return null;
  return PlanCache.of(host.planStore, source.graph, settingsOf(source, key, costs.rates));
}

/** Where the quick search answers with a plan that takes so many times as long as storing everything, others are tried. */
const SLOW = 1.5;

/** Where plans without strips take so many times as long as storing everything, strips are tried. */
const SLOW_WHOLE = 1.1;

/** Where the first good plan takes so many times as long as storing everything, the whole search is worth its time. */
const SLOW_QUICK = 1.2;

/** Of which programs the smallest budget is searched for, which takes seconds: those of a few steps take little. */
export type MinimumSearch = "none" | "small programs" | "all programs";

/** All plans of a program. Each is made when it is first asked for, and may come from a cache (plan-cache.ts). */
export class ProgramPlans {
  readonly #graph: Graph;
  readonly #tools: PlanTools;
  readonly #cache: PlanCache | null;
  #common: (StoredPlans & { readonly stored: GraphPlans }) | undefined;
  #forms: LoopForms | null | undefined;
  readonly #rules = new Map<string, PlanFamily<PlannedProgram>>();
  #wide: WideSearch | undefined;
  #inStrips: GraphPlans | null | undefined;
  #inBatches: readonly Candidate<PlannedProgram>[] | undefined;
  readonly #cutLeast = new Map<Level, Candidate<PlannedProgram> | null>();
  /** Whether the smallest plan of all was looked for. */
  #lookedFurther = false;
  /** The last one that came from the cache, and what it was asked for with. */
  #restored: (KeptAnswer & { readonly request: MemoryRequest }) | null = null;
  /** Whether plans of this program are in the cache. */
  #isKept = false;
  /** Whether the one that came from there was made for this request, by another process. */
  #isNew = false;

  constructor(
    source: SourceProgram,
    target: TargetDescription,
    request: PlanRequest = PLAIN_REQUEST,
    host: PlannerHost = NO_HOST,
  ) {
    this.#graph = source.graph;
    this.#tools = planTools(source, target, request, { ...host, loops: loopSupport });
    this.#cache = cacheOf(source, this.#tools);
  }

  /** After passes and fusion: the plans with everything stored. */
  #commonPlans(): StoredPlans & { readonly stored: GraphPlans } {
    if (!this.#common) {
      const plans = storedPlans(this.#graph, this.#tools);
      this.#common = { ...plans, stored: new GraphPlans(plans.graph, plans.storeAll, this.#tools) };
    }
    return this.#common;
  }

  /** Costs of nodes on the target. */
  get costs(): TargetCosts {
    return this.#tools.costs;
  }

  get storeAll(): Candidate<PlannedProgram> {
    return this.#commonPlans().storeAll;
  }

  /** The numbers of everything stored, loops too, which a plan from the cache comes with. */
  get storeAllFigures(): ChosenPlan["storeAll"] {
    const { arenaBytes, predictedMs } =
      this.#common?.baseline ?? this.#restored?.storeAll ?? this.#commonPlans().baseline;
    return { arenaBytes, predictedMs };
  }

  /**
   * The plan that is asked for; throws `PlanInfeasible` where there is none. Values that the target's memory cannot hold are
   * moved to its other memory where it has one, and recomputed otherwise.
   */
  choose(memory: MemoryRequest = this.#tools.request.memory): Candidate<PlannedProgram> {
    if (memory.spill && memory.budgetBytes !== undefined) return this.#spilled(memory, memory.budgetBytes);
    const { capacity } = arenaSpace(this.#tools.assembler.target);
    const budgetBytes = Math.min(memory.budgetBytes ?? capacity, capacity);
    const within = (asked: MemoryRequest): Candidate<PlannedProgram> | null =>
      fitted(this.#search(asked), budgetBytes, this.#tools);
    const budgeted = { ...memory, budgetBytes };
    const first = within(memory.budgetBytes === undefined ? memory : budgeted);
    const chosen = first ?? (asksNothing(memory) ? within(budgeted) : null);
    if (!chosen) throw planInfeasible(withCapacity(this.smallest(memory).result.plan, budgetBytes), true);
    withinBudget(chosen.result.plan, Number.POSITIVE_INFINITY);
    return chosen;
  }

  /** With a file as second memory. */
  #spilled(memory: MemoryRequest, budgetBytes: number): Candidate<PlannedProgram> {
    // many budgets, of which the first good plan will do
    const quick = memory.quick ?? true;
    const search = (bytes: number) => this.#search({ ...memory, budgetBytes: bytes, quick, spill: undefined }, false);
    const { spilledPlan } = this.#tools.host;
    const chosen = spilledPlan?.(this.storeAll, budgetBytes, memory.spill?.movesOnly ? null : search, this.#tools);
    return chosen ?? this.#notRefused(this.smallest(memory), memory);
  }

  /** `throwsRefusal`: else the smallest plan is the answer where none is within the budget. */
  #search(request: MemoryRequest, throwsRefusal = true): Candidate<PlannedProgram> {
    const worth = isWorthKeeping(this.#graph, request);
    // a proof cannot be checked when the plan is read
    const isProven = strategyNamed(request.strategy).solver === "required";
    const cache = worth && !isProven ? this.#cache : null;
    let restored = cache?.answer(memoryKey(request), this.#tools, request.budgetBytes);
    this.#isNew = false;
    const isSearched = !restored && !asksNothing(request) && this.#graph.nodes.length >= LEAST_SEARCHED;
    // progress can be reported from this process alone
    if (cache?.hasPlanProcess && isSearched && !this.#tools.request.progress) {
      cache.planInProcess(request, memoryKey(request));
      restored = cache.answer(memoryKey(request), this.#tools, request.budgetBytes);
      this.#isNew = true;
    }
    if (restored) {
      this.#restored = { ...restored, request };
      this.#isKept = true;
      return throwsRefusal ? this.#notRefused(restored.chosen, request) : restored.chosen;
    }
    const started = performance.now();
    const chosen = this.#choose(request);
    if (cache?.wants(performance.now() - started)) {
      this.#isKept = true;
      const what = this.#isRefused(chosen, request) ? "refused" : "plan";
      cache.keepPlan(what, memoryKey(request), { chosen, storeAll: this.#commonPlans().baseline });
    }
    return throwsRefusal ? this.#notRefused(chosen, request) : chosen;
  }

  /** Whether a plan is above the budget, and there is no other memory that its values could be moved to. */
  #isRefused({ arenaBytes, result }: Candidate<PlannedProgram>, { budgetBytes }: MemoryRequest): boolean {
    return budgetBytes !== undefined && arenaBytes > budgetBytes && result.program.spaces.length === 1;
  }

  /** The smallest plan of a request that is refused becomes the error that says so. */
  #notRefused(chosen: Candidate<PlannedProgram>, request: MemoryRequest): Candidate<PlannedProgram> {
    if (!this.#isRefused(chosen, request)) return chosen;
    const budgeted = withCapacity(chosen.result.plan, request.budgetBytes ?? Number.POSITIVE_INFINITY);
    throw planInfeasible(budgeted, !strategyNamed(request.strategy).recomputesNothing);
  }

  /** Whether a plan that was chosen came from the cache. */
  isCached(chosen: Candidate<PlannedProgram>): boolean {
    return this.#restored?.chosen === chosen && !this.#isNew;
  }

  /** The plan that is asked for; where there is none, the smallest. */
  #choose(request: MemoryRequest): Candidate<PlannedProgram> {
    if (asksNothing(request)) return this.#commonPlans().asWritten;
    return this.#find(request) ?? this.smallest(request);
  }

  #find(request: MemoryRequest): Candidate<PlannedProgram> | null {
    const { budgetBytes, least, maxSlowdown, segments } = request;
    const strategy = strategyNamed(request.strategy);
    if (least) return this.least(request);
    if (maxSlowdown !== undefined) return this.#underMs(this.storeAllFigures.predictedMs * maxSlowdown, request);
    if (budgetBytes !== undefined) {
      const quick = isQuick(request) ? this.#firstWithin(budgetBytes, segments) : null;
      return quick ?? this.#within(budgetBytes, request);
    }
    // Without a number of bytes to aim at, a rule does the most that it can.
    const family = this.#family(strategy, segments);
    return strategy.aims ? family.base : family.least();
  }

  /** The first good plan within a budget (docs/decisions/0037-planning-in-a-second.md); null where more has to be searched. */
  #firstWithin(budgetBytes: number, segments: Level = "operation"): Candidate<PlannedProgram> | null {
    const { asWritten, stored } = this.#commonPlans();
    const written = asWritten.arenaBytes <= budgetBytes ? asWritten : null;
    const ofLoops = this.#loopForms(auto)?.loopsWithin(budgetBytes) ?? null;
    // in small programs, which are soon fused in other ways, that alone may save enough
    const fused = stored.steps <= SMALL ? this.#wideSearch().storedWithin(budgetBytes) : null;
    const whole = fastestOf([stored.quickWithin(budgetBytes, segments), ofLoops, fused, written]);
    const batch = this.#isSlow(whole) ? fastestOf([whole, this.#batchWithin(budgetBytes)]) : whole;
    const strips = this.#isSlow(batch) ? this.#strips()?.quickWithin(budgetBytes, segments) : null;
    const first = fastestOf([batch, strips ?? null]);
    return first && first.predictedMs <= SLOW_QUICK * stored.base.predictedMs ? first : null;
  }

  #within(budgetBytes: number, { strategy: name, segments }: MemoryRequest): Candidate<PlannedProgram> | null {
    const strategy = strategyNamed(name);
    const quick = this.#quickWithin(budgetBytes, strategy, segments);
    if (this.#isEnough(quick) || !strategy.isFree) return quick;
    const ofLoops = this.#loopRule(binomial)?.within(budgetBytes) ?? null;
    const fastest = fastestOf([quick, this.#wideSearch().within(budgetBytes, segments), ofLoops]);
    return fastest ?? fastestOf(this.#lastResorts(budgetBytes, segments));
  }

  /**
   * Whether the plan of the quick search is the answer; in small programs, for which everything is soon tried, only the fastest
   * plan is. With loops the quick search has looked at many forms already, and most of them take longer.
   */
  #isEnough(quick: Candidate<PlannedProgram> | null): boolean {
    const { stored } = this.#commonPlans();
    if (quick === null) return false;
    if (quick === this.#quickWithin(Number.POSITIVE_INFINITY)) return true;
    return stored.steps > SMALL && quick.predictedMs <= SLOW * stored.base.predictedMs;
  }

  #quickWithin(
    budgetBytes: number,
    strategy: Strategy = auto,
    segments: Level = "operation",
  ): Candidate<PlannedProgram> | null {
    if (!strategy.isFree) return this.#family(strategy, segments).within(budgetBytes);
    const { asWritten, stored } = this.#commonPlans();
    const isBelow = stored.base.arenaBytes > budgetBytes && stored.floorBytes > budgetBytes;
    const first = isBelow ? this.#stripsWithin(budgetBytes, segments) : null;
    if (first && !this.#isSlow(first, SLOW)) return first;
    const forms = this.#loopForms(strategy);
    const searched = forms ? forms.within(budgetBytes, segments) : this.#family(strategy, segments).within(budgetBytes);
    // `auto` also considers the plan with the user's checkpoints, and plans with other kernels.
    const written = asWritten.arenaBytes <= budgetBytes ? asWritten : null;
    const whole = fastestOf([searched, written, this.#wideSearch().storedWithin(budgetBytes)]);
    return this.#isSlow(whole) ? fastestOf([whole, this.#stripsWithin(budgetBytes, segments)]) : whole;
  }

  #isSlow(plan: Candidate<PlannedProgram> | null, times = SLOW_WHOLE): boolean {
    return plan === null || plan.predictedMs > times * this.#commonPlans().stored.base.predictedMs;
  }

  #stripsWithin(budgetBytes: number, segments: Level): Candidate<PlannedProgram> | null {
    const batch = this.#batchWithin(budgetBytes);
    return this.#isSlow(batch)
      ? fastestOf([batch, this.#strips()?.family(auto, segments).within(budgetBytes) ?? null])
      : batch;
  }

  #batchWithin(budgetBytes: number): Candidate<PlannedProgram> | null {
    return fastestOf(this.#batchPlans().filter(({ arenaBytes }) => arenaBytes <= budgetBytes));
  }

  /** Plans with the program's batch in strips, and nothing recomputed. */
  #batchPlans(): readonly Candidate<PlannedProgram>[] {
    if (this.#inBatches === undefined) {
      const { graph, stored } = this.#commonPlans();
      this.#inBatches = this.#tools.request.passes ? [] : batchPlans(graph, stored, this.#tools);
    }
    return this.#inBatches;
  }

  /** The program with its tightest parts in strips; null where there are none, or passes were given. */
  #strips(): GraphPlans | null {
    if (this.#inStrips === undefined) this.#inStrips = this.#tools.request.passes ? null : this.#newStrips();
    return this.#inStrips;
  }

  /** Where loops are reversed they hold few states: what their bodies hold is the limit then, which strips lower. */
  #newStrips(): GraphPlans | null {
    const { graph, stored } = this.#commonPlans();
    const forms = this.#loopForms(auto)?.small.map((form) => form()) ?? [];
    for (const form of [...forms, stored]) {
      const source = form === stored ? graph : form.sourceOf(form.base);
      const cut = source && stripForm(source, form, this.#tools);
      if (cut) return cut;
    }
    return null;
  }

  /** The smallest plans, where they are within a budget: loops may be reversed in ways that no step of a search comes to. */
  #lastResorts(budgetBytes: number, segments: Level | undefined): readonly Candidate<PlannedProgram>[] {
    const plans = [this.least({ segments }), this.smallest({ segments })];
    return plans.filter(({ arenaBytes }) => arenaBytes <= budgetBytes);
  }

  #underMs(limitMs: number, { strategy: name, segments }: MemoryRequest): Candidate<PlannedProgram> {
    const strategy = strategyNamed(name);
    const ofLoops = this.#loopForms(strategy)?.underMs(limitMs, segments);
    const family = this.#family(strategy, segments);
    // a reversal that the user named is kept even where it takes longer
    const quick = ofLoops ?? family.slowedBy(Math.max(1, limitMs / family.base.predictedMs));
    if (!strategy.isFree) return quick;
    const strips = this.#strips();
    const isFast = strips !== null && strips.base.predictedMs <= limitMs;
    const cut = isFast ? strips.family(auto, segments).slowedBy(limitMs / strips.base.predictedMs) : quick;
    const batches = this.#batchPlans().filter(({ predictedMs }) => predictedMs <= limitMs);
    const first = [quick, cut, ...batches].reduce((a, b) => (isSmaller(b, a) ? b : a));
    if (limitMs <= SLOW * this.storeAll.predictedMs) return first;
    const wide = this.#wideSearch().underMs(limitMs, segments);
    return wide && isSmaller(wide, first) ? wide : first;
  }

  /** The smallest plan; loops do not run hundreds of times for the last few bytes. */
  least({ strategy: name, segments }: MemoryRequest): Candidate<PlannedProgram> {
    const strategy = strategyNamed(name);
    const strips = strategy.isFree ? this.#leastInStrips(segments) : null;
    // where no choice of what is recomputed could be smaller, none is searched for
    if (strips && strips.arenaBytes < this.#commonPlans().stored.floorBytes) return strips;
    const quick = this.#loopForms(strategy)?.least(segments) ?? this.#family(strategy, segments).least();
    return strategy.isFree ? this.#leastOf(strips && isSmaller(strips, quick) ? strips : quick, segments) : quick;
  }

  /** The smallest plan with strips; null where it has none. */
  #leastInStrips(segments: Level = "operation"): Candidate<PlannedProgram> | null {
    const earlier = this.#cutLeast.get(segments);
    if (earlier !== undefined || this.#tools.request.passes) return earlier ?? null;
    const { stored } = this.#commonPlans();
    const form = this.#strips() ?? stored;
    const least = form.family(auto, segments).least();
    const plans = [cutFurther(form, least, this.#tools), ...this.#batchPlans()];
    const smallest = plans.reduce((a, b) => (isSmaller(b, a) ? b : a));
    const own = form === stored && smallest === least ? null : smallest;
    this.#cutLeast.set(segments, own);
    return own;
  }

  /** The smallest plan there is, however long it takes. */
  smallest({ strategy, segments }: MemoryRequest): Candidate<PlannedProgram> {
    const { chosen, isRefused, request: asked } = this.#restored ?? {};
    if (chosen && isRefused && asked?.strategy === strategy && asked?.segments === segments) return chosen;
    const forms = this.#loopForms(strategyNamed(strategy));
    const [least, tight] = [this.least({ strategy, segments }), forms?.smallest(segments)];
    return tight && isSmaller(tight, least) ? tight : least;
  }

  #leastOf(quick: Candidate<PlannedProgram>, segments: Level | undefined): Candidate<PlannedProgram> {
    this.#lookedFurther = true;
    const others = [this.#wideSearch().least(segments), this.#loopRule(binomial)?.least()];
    const plans = [
      quick,
      this.#commonPlans().asWritten,
      ...others.filter((plan) => plan !== null && plan !== undefined),
    ];
    return plans.reduce((a, b) => (isSmaller(b, a) ? b : a));
  }

  #wideSearch(): WideSearch {
    this.#wide ??= new WideSearch(this.#commonPlans().stored, this.#loopForms(auto)?.small ?? []);
    return this.#wide;
  }

  /**
   * Bytes of the smallest budget with a plan of the request's strategy: what a refusal says is needed. Null where it is not known,
   * and not searched for.
   */
  minimumBudgetBytes(
    request: MemoryRequest = this.#tools.request.memory,
    search: MinimumSearch = "small programs",
  ): number | null {
    const { chosen, isRefused = false } = this.#restored ?? {};
    const kept = chosen && this.#cache?.least(memoryKey(request), chosen.arenaBytes);
    if (typeof kept === "number") return kept;
    if (chosen && isRefused) return chosen.arenaBytes;
    const isLooked = request.least || this.#lookedFurther;
    if (!isLooked && search === "none") return null;
    // the plans that a plan from the cache was chosen from
    if (this.#restored && !this.#common) this.#choose(this.#restored.request);
    if (!isLooked && search !== "all programs" && this.#commonPlans().stored.steps > SMALL) return null;
    const { arenaBytes } = this.smallest(request);
    if (this.#isKept) this.#cache?.keepLeast(memoryKey(request), arenaBytes);
    return arenaBytes;
  }

  /** With loops that the planner may decide about: their forms. Strategies by name are about operations alone. */
  #loopForms({ isFree }: Strategy): LoopForms | null {
    if (!isFree) return null;
    if (this.#forms === undefined) {
      const { merged, stored } = this.#commonPlans();
      const groups = loopGroups(merged, this.#tools.costs);
      this.#forms = groups.length === 0 ? null : new LoopForms(merged, stored, groups, this.#tools);
    }
    return this.#forms;
  }

  /** A plan with its kernels bound to addresses; throws when `validate` finds it broken. */
  placed(chosen: Candidate<PlannedProgram>, planMs: number, base = 0): ChosenProgram {
    if (this.#tools.request.validate) requireValidPlan(chosen.result.plan);
    const about = { storeAll: this.storeAllFigures, planCached: this.isCached(chosen), planMs };
    return placedPlan(chosen, about, base);
  }

  /** Bytes of the arguments, or of results and persistent values: no plan is smaller. */
  floorBytes(): number {
    return endsBytes(this.storeAll.result.plan.program);
  }

  /** The plans of one strategy, from everything stored to the smallest; loops are as they are stored unless it is `auto`. */
  curve(name: StrategyName, points: number): ReturnType<PlanFamily<PlannedProgram>["curve"]> {
    return this.#loopForms(strategyNamed(name))?.curve(points) ?? this.family(name).curve(points);
  }

  /** The plans of one strategy, loops as they are stored. */
  family(name: StrategyName, segments?: Level): PlanFamily<PlannedProgram> {
    return this.#family(strategyNamed(name), segments);
  }

  #family(strategy: Strategy, segments?: Level): PlanFamily<PlannedProgram> {
    return this.#loopRule(strategy, segments) ?? this.#commonPlans().stored.family(strategy, segments);
  }

  /** The plans of a rule about loops; null for strategies about operations. */
  #loopRule(strategy: Strategy, segments: Level = "operation"): PlanFamily<PlannedProgram> | null {
    const key = familyKey(strategy, segments);
    const earlier = this.#rules.get(key);
    if (earlier) return earlier;
    const { costs, assembler } = this.#tools;
    const { merged, storeAll } = this.#commonPlans();
    const levels = LoopLevels.of<PlannedProgram>(
      [strategy, segments],
      () => loopGroups(merged, costs),
      () => storeAll,
      (scheduleOf) => {
        const graph = withSchedules(merged, scheduleOf, openCheckpoints(scheduleOf));
        const made = assembler.make(graph, [assembler.fuse], { budgetBytes: UNREACHED });
        return candidateOf(made, strategy.name, this.#tools);
      },
    );
    if (!levels) return null;
    const family = new PlanFamily(storeAll, levels);
    this.#rules.set(key, family);
    return family;
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
