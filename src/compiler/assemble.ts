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

import type { PlacedProgram } from "../codegen/placed.ts";
import type { Graph } from "../ir/graph.ts";
import { loopGroups, withoutChoice, withSchedules } from "../loops/groups.ts";
import { rewindLoops, userDecisions } from "../loops/rewrite.ts";
import { LoopRungs, openCheckpoints } from "../loops/strategies.ts";
import { mergeReplays } from "../passes/merge-replays.ts";
import type { Pass } from "../passes/pass.ts";
import { pipeline, runPasses } from "../passes/pipeline.ts";
import { smallerResiduals } from "../passes/smaller-residuals.ts";
import { endsBytes } from "../plan/bound.ts";
import { isSmaller, PlanFamily } from "../plan/budget/family.ts";
import { type Candidate, type Proof, UNREACHED } from "../plan/budget/rungs.ts";
import { planInfeasible } from "../plan/infeasible.ts";
import { withinBudget } from "../plan/plan.ts";
import { withCapacity } from "../plan/problem.ts";
import type { Level } from "../plan/recompute/levels.ts";
import type { IntegerSolver } from "../plan/recompute/optimal.ts";
import { STRATEGY, type StrategyName } from "../plan/recompute/strategies.ts";
import { arenaSpace, type TargetDescription } from "../target/description.ts";
import type { CostModel } from "../target/work.ts";
import { Assembler, type AssemblerOptions, type Made } from "./assembler.ts";
import { placedProgram } from "./bind.ts";
import { candidateOf, GraphPlans, type PlanTools } from "./graph-plans.ts";
import { LoopForms, SMALL } from "./loop-forms.ts";
import type { MemoryRequest } from "./memory-request.ts";
import { TargetCosts } from "./node-costs.ts";
import { fitted } from "./offload.ts";
import { type ChosenPlan, PlanCache } from "./plan-cache.ts";
import { requireTypes } from "./types.ts";
import { fastestOf, WideSearch } from "./wide-search.ts";

export type { MemoryRequest } from "./memory-request.ts";

export interface AssembleOptions extends AssemblerOptions {
  readonly memory?: MemoryRequest | undefined;
  readonly costs?: CostModel | undefined;
  /** For the strategy `optimal`. */
  readonly solver?: IntegerSolver | undefined;
  /** Is told of every plan that is made on the way. */
  readonly progress?: PlanTools["progress"];
  /** Whether the plan may come from a cache, and go into it; default: true. */
  readonly cache?: boolean | undefined;
  /** Where an arena of so many bytes goes in its memory; default: at the start, which it has for itself. */
  readonly baseFor?: ((bytes: number) => number) | undefined;
  /** What happens to the graph instead of the usual passes; then everything is stored. */
  readonly passes?: readonly Pass[];
}

/** A placed program and what it was chosen from. */
export interface ChosenProgram extends PlacedProgram {
  readonly strategy: string;
  readonly predictedMs: number;
  readonly storeAll: { readonly arenaBytes: number; readonly predictedMs: number };
  /** Where a solver was asked: how far the plan is from the cheapest. */
  readonly proof?: Proof | undefined;
  /** Whether the plan came from a cache. */
  readonly planCached: boolean;
}

/** What all plans of a program share. */
interface Base {
  /** Everything stored but what loops do that users named a reversal for. */
  readonly storeAll: Candidate<Made>;
  /** That is stored too: what plans are compared with. */
  readonly baseline: Candidate<Made>;
  readonly asWritten: Candidate<Made>;
  readonly stored: GraphPlans;
  readonly merged: Graph;
}

function baseOf(graph: Graph, tools: PlanTools, { verify = false, passes }: AssembleOptions): Base {
  const { assembler, costs } = tools;
  const cleaned = runPasses(graph, passes ?? pipeline, verify ? { verify } : {});
  requireTypes(cleaned, assembler.target, assembler.lower);
  let named = 0;
  const rewound = passes ? cleaned : rewindLoops(cleaned, userDecisions, () => named++);
  const written = passes ? cleaned : smallerResiduals.run(rewound);
  const bare = passes ? cleaned : mergeReplays.run(rewound);
  const merged = bare === rewound ? written : smallerResiduals.run(bare);
  const asked = merged === written ? "store-all" : "checkpoint";
  const decided = passes ? written : withoutChoice(written, costs);
  const asWritten = candidateOf(assembler.make(decided, passes ? [] : [assembler.fuse]), asked, tools);
  const stored = merged === written ? decided : withoutChoice(merged, costs);
  const storeAll =
    stored === decided ? asWritten : candidateOf(assembler.make(stored, [assembler.fuse]), "store-all", tools);
  const baseline = named === 0 ? storeAll : loopsStored(cleaned, tools);
  return { storeAll, baseline, asWritten, stored: new GraphPlans(stored, storeAll, tools), merged };
}

/** The program whose loops keep what their reverses read, whatever reversal was named for them. */
function loopsStored(cleaned: Graph, tools: PlanTools): Candidate<Made> {
  const bare = mergeReplays.run(rewindLoops(cleaned, { ...userDecisions, counted: () => null }));
  const merged = smallerResiduals.run(bare);
  return candidateOf(
    tools.assembler.make(withoutChoice(merged, tools.costs), [tools.assembler.fuse]),
    "store-all",
    tools,
  );
}

/** Programs of fewer nodes are planned about as fast as a plan is read, unless something is asked of their memory. */
const LEAST_NODES = 256;

/** Nodes from which on the search for a plan within a budget takes more memory than another process is worth. */
const LEAST_SEARCHED = 64;

/** What was kept of a program's plans; null where it would not be worth it, or says nothing about these options. */
function cacheOf(
  graph: Graph,
  { key }: TargetDescription,
  options: AssembleOptions,
  rates: CostModel,
): PlanCache | null {
  const { cache = true, verify = false, passes, solver, donated = [], persistent = [] } = options;
  if (!cache || verify || passes || solver || key === undefined) return null;
  return PlanCache.of(graph, { target: key, rates, donated: [...donated], persistent: [...persistent] });
}

/** Where the quick search answers with a plan that takes so many times as long as storing everything, others are tried. */
const SLOW = 1.5;

const isPlain = ({ budgetBytes, least = false, maxSlowdown, strategy }: MemoryRequest): boolean =>
  strategy === undefined && budgetBytes === undefined && !least && maxSlowdown === undefined;

/** The same for requests that mean the same. */
function asData({ budgetBytes, least, maxSlowdown, strategy, segments }: MemoryRequest): readonly unknown[] {
  return [budgetBytes ?? null, least ?? false, maxSlowdown ?? null, strategy ?? null, segments ?? "operation"];
}

/** All plans of a program. Each is made when it is first asked for, and may come from a cache (plan-cache.ts). */
export class ProgramPlans {
  readonly #graph: Graph;
  readonly #options: AssembleOptions;
  readonly #tools: PlanTools;
  readonly #cache: PlanCache | null;
  #base: Base | undefined;
  #forms: LoopForms | null | undefined;
  readonly #rules = new Map<string, PlanFamily<Made>>();
  #wide: WideSearch | undefined;
  /** Whether the smallest plan of all was looked for. */
  #lookedFurther = false;
  /** The last one that came from the cache, and what it was asked for with. */
  #restored: (ChosenPlan & { readonly request: MemoryRequest }) | null = null;
  /** Whether plans of this program are in the cache. */
  #isKept = false;
  /** Whether the one that came from there was made for this request, by another process. */
  #isNew = false;

  constructor(graph: Graph, target: TargetDescription, options: AssembleOptions) {
    const rates = options.costs ?? target.rates;
    this.#graph = graph;
    this.#options = options;
    const { solver, progress } = options;
    const assembler = new Assembler(target, options);
    const costs = new TargetCosts(target, { rates, lower: assembler.lower });
    this.#tools = { assembler, costs, solver, progress };
    this.#cache = cacheOf(graph, target, options, rates);
  }

  /** What all plans share: passes, fusion, and the plan in which everything is stored. */
  #made(): Base {
    this.#base ??= baseOf(this.#graph, this.#tools, this.#options);
    return this.#base;
  }

  /** What nodes take on the target. */
  get costs(): TargetCosts {
    return this.#tools.costs;
  }

  get storeAll(): Candidate<Made> {
    return this.#made().storeAll;
  }

  /** The numbers of everything stored, loops too, which a plan from the cache comes with. */
  get storeAllFigures(): ChosenPlan["storeAll"] {
    const { arenaBytes, predictedMs } = this.#base?.baseline ?? this.#restored?.storeAll ?? this.#made().baseline;
    return { arenaBytes, predictedMs };
  }

  /**
   * What is asked for; throws `PlanInfeasible` where there is no such plan. What the target's memory cannot hold is moved to
   * its other memory where it has one, and else computed again.
   */
  choose(request: MemoryRequest): Candidate<Made> {
    const { capacity } = arenaSpace(this.#tools.assembler.target);
    const limit = Math.min(request.budgetBytes ?? capacity, capacity);
    const within = (asked: MemoryRequest): Candidate<Made> | null => fitted(this.#search(asked), limit, this.#tools);
    const limited = { ...request, budgetBytes: limit };
    const chosen = within(request.budgetBytes === undefined ? request : limited);
    const found = chosen ?? (isPlain(request) ? within(limited) : null);
    if (!found) throw planInfeasible(withCapacity(this.#smallest(request).result.plan, limit), true);
    withinBudget(found.result.plan, Number.POSITIVE_INFINITY);
    return found;
  }

  #search(request: MemoryRequest): Candidate<Made> {
    const worth = !isPlain(request) || this.#graph.nodes.length >= LEAST_NODES;
    // what a solver has proven cannot be checked when it is read
    const isProven = STRATEGY[request.strategy ?? "auto"].solver === "required";
    const cache = worth && !isProven ? this.#cache : null;
    let found = cache?.plan(asData(request), this.#tools, request.budgetBytes);
    this.#isNew = false;
    const isSearched = !found && !isPlain(request) && this.#graph.nodes.length >= LEAST_SEARCHED;
    // who wants to be told of plans gets them made here
    if (cache?.hasElsewhere && isSearched && !this.#tools.progress) {
      cache.makeElsewhere(request, asData(request));
      found = cache.plan(asData(request), this.#tools, request.budgetBytes);
      this.#isNew = true;
    }
    if (found) {
      this.#restored = { ...found, request };
      this.#isKept = true;
      return found.chosen;
    }
    const started = performance.now();
    const chosen = this.#choose(request);
    if (cache?.wants(performance.now() - started)) {
      this.#isKept = true;
      cache.keepPlan(asData(request), { chosen, storeAll: this.#made().baseline });
    }
    return chosen;
  }

  /** Whether a plan that was chosen came from the cache. */
  isCached(chosen: Candidate<Made>): boolean {
    return this.#restored?.chosen === chosen && !this.#isNew;
  }

  #choose(request: MemoryRequest): Candidate<Made> {
    const { budgetBytes, strategy } = request;
    if (isPlain(request)) return this.#made().asWritten;
    const found = this.#find(request);
    if (found) return found;
    const smallest = this.#smallest(request);
    const { plan } = smallest.result;
    if (plan.program.spaces.length > 1) return smallest;
    const limited = withCapacity(plan, budgetBytes ?? Number.POSITIVE_INFINITY);
    throw planInfeasible(limited, (strategy ?? "auto") !== "store-all");
  }

  #find(request: MemoryRequest): Candidate<Made> | null {
    const { budgetBytes, least, maxSlowdown, strategy = "auto", segments } = request;
    if (least) return this.least(request);
    if (maxSlowdown !== undefined) return this.#underMs(this.storeAllFigures.predictedMs * maxSlowdown, request);
    if (budgetBytes !== undefined) return this.#within(budgetBytes, request);
    // Without a number of bytes to aim at, a rule does the most that it can.
    const family = this.family(strategy, segments);
    return STRATEGY[strategy].aims ? family.base : family.least();
  }

  #within(budgetBytes: number, { strategy, segments }: MemoryRequest): Candidate<Made> | null {
    const quick = this.#quickWithin(budgetBytes, strategy, segments);
    if (this.#isEnough(quick) || (strategy ?? "auto") !== "auto") return quick;
    const ofLoops = this.#loopRule("binomial")?.within(budgetBytes) ?? null;
    const found = fastestOf([quick, this.#wideSearch().within(budgetBytes, segments), ofLoops]);
    return found ?? fastestOf(this.#lastResorts(budgetBytes, segments));
  }

  /**
   * Whether what the quick search found is the answer; in small programs, for which all is soon tried, only the fastest. With
   * loops it has looked at many forms already, and most of them take longer.
   */
  #isEnough(quick: Candidate<Made> | null): boolean {
    const { stored } = this.#made();
    if (quick === null) return false;
    if (quick === this.#quickWithin(Number.POSITIVE_INFINITY)) return true;
    return stored.steps > SMALL && quick.predictedMs <= SLOW * stored.base.predictedMs;
  }

  #quickWithin(
    budgetBytes: number,
    strategy: StrategyName = "auto",
    segments: Level = "operation",
  ): Candidate<Made> | null {
    const forms = this.#loopForms(strategy);
    const found = forms ? forms.within(budgetBytes, segments) : this.family(strategy, segments).within(budgetBytes);
    const { asWritten } = this.#made();
    if (strategy !== "auto") return found;
    // With a free hand, what the user's checkpoints ask for is one more plan, and so are other kernels.
    const written = asWritten.arenaBytes <= budgetBytes ? asWritten : null;
    return fastestOf([found, written, this.#wideSearch().storedWithin(budgetBytes)]);
  }

  /** The smallest plans, where they are within a budget: loops may be reversed in ways that no step of a search comes to. */
  #lastResorts(budgetBytes: number, segments: Level | undefined): readonly Candidate<Made>[] {
    const plans = [this.least({ segments }), this.#smallest({ segments })];
    return plans.filter(({ arenaBytes }) => arenaBytes <= budgetBytes);
  }

  #underMs(limitMs: number, { strategy = "auto", segments }: MemoryRequest): Candidate<Made> {
    const found = this.#loopForms(strategy)?.underMs(limitMs, segments);
    const family = this.family(strategy, segments);
    // loops with a named reversal are as they are, whatever that takes
    const quick = found ?? family.slowedBy(Math.max(1, limitMs / family.base.predictedMs));
    if (strategy !== "auto" || limitMs <= SLOW * this.storeAll.predictedMs) return quick;
    const wide = this.#wideSearch().underMs(limitMs, segments);
    return wide && isSmaller(wide, quick) ? wide : quick;
  }

  /** The smallest plan; loops do not run hundreds of times for the last few bytes. */
  least({ strategy = "auto", segments }: MemoryRequest): Candidate<Made> {
    const quick = this.#loopForms(strategy)?.least(segments) ?? this.family(strategy, segments).least();
    return strategy === "auto" ? this.#leastOf(quick, segments) : quick;
  }

  /** The smallest plan there is, however long it takes. */
  #smallest({ strategy = "auto", segments }: MemoryRequest): Candidate<Made> {
    const [least, tight] = [this.least({ strategy, segments }), this.#loopForms(strategy)?.smallest(segments)];
    return tight && isSmaller(tight, least) ? tight : least;
  }

  #leastOf(quick: Candidate<Made>, segments: Level | undefined): Candidate<Made> {
    this.#lookedFurther = true;
    const others = [this.#wideSearch().least(segments), this.#loopRule("binomial")?.least()];
    const plans = [quick, this.#made().asWritten, ...others.filter((plan) => plan !== null && plan !== undefined)];
    return plans.reduce((a, b) => (isSmaller(b, a) ? b : a));
  }

  #wideSearch(): WideSearch {
    this.#wide ??= new WideSearch(this.#made().stored, this.#loopForms("auto")?.small ?? []);
    return this.#wide;
  }

  /**
   * Bytes of the smallest plan that is known without looking further than the request did: of a large program, the smallest
   * of those that were made so far.
   */
  leastKnownBytes(request: MemoryRequest): number {
    const { chosen } = this.#restored ?? {};
    const known = chosen && this.#cache?.bytes("least", asData(request), chosen.arenaBytes);
    if (typeof known === "number") return known;
    // what a plan from the cache was chosen from
    if (this.#restored && !this.#base) this.#choose(this.#restored.request);
    const isLooked = request.least || this.#lookedFurther || this.#made().stored.steps <= SMALL;
    const least = isLooked ? this.#smallest(request) : this.#leastKnown(request);
    if (this.#isKept) this.#cache?.keepBytes("least", asData(request), least.arenaBytes);
    return least.arenaBytes;
  }

  #leastKnown({ strategy = "auto", segments }: MemoryRequest): Candidate<Made> {
    const ofLoops = this.#loopForms(strategy)?.smallest(segments) ?? this.#loopRule(strategy, segments)?.leastKnown();
    return ofLoops ?? this.#made().stored.leastKnown(strategy, segments);
  }

  /** With loops that the planner may decide about: their forms. Strategies by name are about operations alone. */
  #loopForms(strategy: StrategyName): LoopForms | null {
    if (strategy !== "auto") return null;
    if (this.#forms === undefined) {
      const { merged, stored } = this.#made();
      const groups = loopGroups(merged, this.#tools.costs);
      this.#forms = groups.length === 0 ? null : new LoopForms(merged, stored, groups, this.#tools);
    }
    return this.#forms;
  }

  /** A plan with its kernels bound to addresses. */
  placed(chosen: Candidate<Made>, planMs: number, base = 0): ChosenProgram {
    const { strategy, predictedMs, proof } = chosen;
    const about = { strategy, predictedMs, proof, storeAll: this.storeAllFigures, planCached: this.isCached(chosen) };
    return { ...placedProgram(chosen.result, planMs, base), ...about };
  }

  /** What arguments, or results and what persists, take together: no plan is smaller. */
  floorBytes(): number {
    return endsBytes(this.storeAll.result.plan.program);
  }

  /** The plans of one strategy, from everything stored to the smallest; loops are as they are stored unless it is `auto`. */
  curve(strategy: StrategyName, points: number): ReturnType<PlanFamily<Made>["curve"]> {
    return this.#loopForms(strategy)?.curve(points) ?? this.family(strategy).curve(points);
  }

  /** The plans of one strategy, loops as they are stored. */
  family(strategy: StrategyName, segments: Level = "operation"): PlanFamily<Made> {
    return this.#loopRule(strategy, segments) ?? this.#made().stored.family(strategy, segments);
  }

  /** The plans of a rule about loops; null for strategies about operations. */
  #loopRule(strategy: StrategyName, segments: Level = "operation"): PlanFamily<Made> | null {
    const key = `${strategy} of ${segments}s`;
    const known = this.#rules.get(key);
    if (known) return known;
    const { costs, assembler } = this.#tools;
    const { merged, storeAll } = this.#made();
    const rungs = LoopRungs.of<Made>(
      [strategy, segments],
      () => loopGroups(merged, costs),
      () => storeAll,
      (scheduleOf) => {
        const graph = withSchedules(merged, scheduleOf, openCheckpoints(scheduleOf));
        return candidateOf(assembler.make(graph, [assembler.fuse], UNREACHED), strategy, this.#tools);
      },
    );
    if (!rungs) return null;
    const family = new PlanFamily(storeAll, rungs);
    this.#rules.set(key, family);
    return family;
  }
}

/** A traced graph, planned as asked. */
export function assemble(graph: Graph, target: TargetDescription, options: AssembleOptions = {}): ChosenProgram {
  const started = performance.now();
  const plans = new ProgramPlans(graph, target, options);
  const chosen = plans.choose(options.memory ?? {});
  const base = options.baseFor?.(chosen.result.plan.height) ?? 0;
  return plans.placed(chosen, performance.now() - started, base);
}
