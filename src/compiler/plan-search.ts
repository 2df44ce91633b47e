/**
 * @file Which plan of a program is the answer to a request: the fastest within a budget or the smallest, among plans that recompute,
 * that reverse loops in other ways, that fuse otherwise, and that run parts in strips.
 *
 *   first good plan → a strategy's own plans → strips → other fusion (wide-search.ts) → the smallest
 *
 * Each is searched only where the ones before it do not fit, or are slow. Every plan is made once, when it is first asked for.
 */
import type { Graph } from "../ir/graph.ts";
import { loopGroups, withSchedules } from "../loops/groups.ts";
import { LoopLevels, openCheckpoints } from "../loops/strategies.ts";
import { endsBytes } from "../plan/bound.ts";
import { type Candidate, UNREACHED } from "../plan/budget/budget-levels.ts";
import { isSmaller, PlanFamily } from "../plan/budget/family.ts";
import type { Level } from "../plan/recompute/levels.ts";
import { auto, binomial, strategyNamed } from "../plan/recompute/strategies.ts";
import type { Strategy, StrategyName } from "../plan/recompute/strategy.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import { familyKey, GraphPlans } from "./graph-plans.ts";
import { LoopForms, SMALL } from "./loop-forms.ts";
import { type LosslessPlans, LossyForms } from "./lossy-forms.ts";
import { asksNothing, isQuick, type LossyRequest, type MemoryRequest } from "./request.ts";
import { type StoredPlans, storedPlans } from "./stored.ts";
import { batchPlans, cutFurther, stripForm } from "./strip-forms.ts";
import { fastestOf, WideSearch } from "./wide-search.ts";

/** Where the quick search answers with a plan that takes so many times as long as storing everything, others are tried. */
const SLOW = 1.5;

/** Where plans without strips take so many times as long as storing everything, strips are tried. */
const SLOW_WHOLE = 1.02;

/** Where the first good plan takes so many times as long as storing everything, the whole search is worth its time. */
const SLOW_QUICK = 1.2;

const smallestKey = ({ strategy, segments = "operation" }: MemoryRequest): string =>
  familyKey(strategyNamed(strategy), segments);

/** The plans of a program, and the search among them. */
export class PlanSearch {
  readonly #graph: Graph;
  readonly #tools: PlanTools;
  #common: (StoredPlans & { readonly stored: GraphPlans }) | undefined;
  #forms: LoopForms | null | undefined;
  readonly #rules = new Map<string, PlanFamily<PlannedProgram>>();
  #wide: WideSearch | undefined;
  #inStrips: GraphPlans | null | undefined;
  readonly #rounded = new Map<string, LossyForms>();
  #inBatches: readonly Candidate<PlannedProgram>[] | undefined;
  readonly #cutLeast = new Map<Level, Candidate<PlannedProgram> | null>();
  /** The smallest plans that are known without a search. */
  readonly #smallest = new Map<string, Candidate<PlannedProgram>>();
  #hasLeast = false;

  constructor(graph: Graph, tools: PlanTools) {
    this.#graph = graph;
    this.#tools = tools;
  }

  /** Whether anything was planned. */
  get hasPlans(): boolean {
    return this.#common !== undefined;
  }

  /** Whether the smallest plan of all was looked for. */
  get hasLeast(): boolean {
    return this.#hasLeast;
  }

  /** Whether the program has so few steps that everything is soon tried. */
  get isSmall(): boolean {
    return this.#commonPlans().stored.steps <= SMALL;
  }

  /** Everything stored, loops too: what plans are compared with. */
  get baseline(): Candidate<PlannedProgram> {
    return this.#commonPlans().baseline;
  }

  /** Takes a plan as the smallest for requests of this strategy, unless it rounds residuals. */
  setSmallest(request: MemoryRequest, smallest: Candidate<PlannedProgram>): void {
    if (!request.lossy) this.#smallest.set(smallestKey(request), smallest);
  }

  /** After passes and fusion: the plans with everything stored. */
  #commonPlans(): StoredPlans & { readonly stored: GraphPlans } {
    if (!this.#common) {
      const plans = storedPlans(this.#graph, this.#tools);
      this.#common = { ...plans, stored: new GraphPlans(plans.graph, plans.storeAll, this.#tools) };
    }
    return this.#common;
  }

  get storeAll(): Candidate<PlannedProgram> {
    return this.#commonPlans().storeAll;
  }

  /** Everything stored, before fusion. */
  get storedGraph(): Graph {
    return this.#commonPlans().graph;
  }

  /** The plan that is asked for; where there is none, the smallest. */
  choose(request: MemoryRequest): Candidate<PlannedProgram> {
    if (asksNothing(request)) return this.#commonPlans().asWritten;
    if (request.lossy) return this.lossyForms(request.lossy).choose(request);
    return this.#find(request) ?? this.smallest(request);
  }

  /** The forms of the program in which residuals are rounded. */
  lossyForms(lossy: LossyRequest): LossyForms {
    const key = JSON.stringify(lossy);
    const { graph, stored } = this.#commonPlans();
    const plans: LosslessPlans = {
      ...{ graph, stored },
      within: (request) =>
        isQuick(request) ? this.#firstWithin(request.budgetBytes ?? 0, request.segments) : this.#find(request),
      underMs: (limitMs, request) => this.#underMs(limitMs, request),
      least: (request) => this.least(request),
    };
    const forms = this.#rounded.get(key) ?? new LossyForms(plans, lossy, this.#tools);
    this.#rounded.set(key, forms);
    return forms;
  }

  /** A plan within a budget that is found with little work; null where there is none. */
  quick(request: MemoryRequest): Candidate<PlannedProgram> | null {
    const { budgetBytes = 0, lossy, strategy, segments } = request;
    if (strategy !== undefined) return this.#quickWithin(budgetBytes, strategyNamed(strategy), segments);
    if (!lossy) return this.#firstWithin(budgetBytes, segments);
    const rounded = this.lossyForms(lossy).choose({ ...request, quick: true });
    return rounded.arenaBytes <= budgetBytes ? rounded : null;
  }

  #find(request: MemoryRequest): Candidate<PlannedProgram> | null {
    const { budgetBytes, least, maxSlowdown, segments } = request;
    const strategy = strategyNamed(request.strategy);
    if (least) return this.least(request);
    if (maxSlowdown !== undefined) return this.#underMs(this.baseline.predictedMs * maxSlowdown, request);
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
  smallest(request: MemoryRequest): Candidate<PlannedProgram> {
    const { strategy, segments, lossy } = request;
    if (lossy) return this.lossyForms(lossy).smallest({ strategy, segments });
    const known = this.#smallest.get(smallestKey(request));
    if (known) return known;
    const forms = this.#loopForms(strategyNamed(strategy));
    const [least, tight] = [this.least({ strategy, segments }), forms?.smallest(segments)];
    return tight && isSmaller(tight, least) ? tight : least;
  }

  #leastOf(quick: Candidate<PlannedProgram>, segments: Level | undefined): Candidate<PlannedProgram> {
    this.#hasLeast = true;
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
