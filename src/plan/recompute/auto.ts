/**
 * @file The planner to use when nothing is known: everything here, in an order that gives a plan early and spends the
 * rest of the time where it helps. Nothing to do if all fits; a proof if one operation alone does not. Then look-ahead
 * with a portfolio of scorings, a search around the best, annealing of the sequences, and with a solver: exact answers
 * and bounds for small graphs, windows of large ones.
 *
 * With `effort` the amount of work is counted in steps of the searches and the plan depends on its arguments alone;
 * otherwise the clock ends it.
 */
import { at, invariant } from "../../base/invariant.ts";
import { anneal } from "./anneal.ts";
import { dropBound } from "./drop-bound.ts";
import { type FlatGraph, flatGraph } from "./flat-graph.ts";
import type { Level } from "./levels.ts";
import { allowanceOf, type Meter } from "./meter.ts";
import { type IntegerSolver, solveOptimal } from "./optimal.ts";
import { type Found, portfolio, tournament } from "./portfolio.ts";
import { baseSequence, type RecomputeProblem, type Sequence } from "./problem.ts";
import { relieve } from "./relief.ts";
import { hasFreeOrder, type Numbered } from "./reorder.ts";
import { lowerByReplays } from "./replays.ts";
import { segmentPlans, selectivePlans } from "./rules.ts";
import { cheapest } from "./segments.ts";
import { simulate } from "./simulate.ts";
import { relieveInStages } from "./stages.ts";
import { fitsBits } from "./state-bounds.ts";
import { searchStates } from "./state-search.ts";
import { improveByStates } from "./state-windows.ts";
import { improveWindows } from "./windows.ts";

export interface AutoOptions {
  /** Time for all of it. */
  readonly seconds?: number;
  /** Instead of time: 1 is about a second for a hundred operations. */
  readonly effort?: number;
  readonly solver?: IntegerSolver | undefined;
  /** What segments are made of; default: operations. */
  readonly level?: Level | undefined;
  /** A sequence to start from, within the budget or not. */
  readonly start?: Sequence | undefined;
  /** Factors of what values are worth to look-ahead: those below 1 are dropped sooner. */
  readonly worth?: Float64Array | undefined;
  /** Where no plan is found with the given order of first executions and time is left: whether another may do; default: not. */
  readonly order?: "given" | "any" | undefined;
}

export interface Answer {
  readonly feasible: boolean;
  /** The plan; where none fits, the one with the least bytes that was met. */
  readonly sequence: Sequence;
  readonly peakBytes: number;
  readonly cost: number;
  readonly baseCost: number;
  /** No plan with this order of first executions costs less. */
  readonly boundCost: number;
  /** No plan that computes a value at most once between two first executions costs less (or, if infeasible, fits). */
  readonly proven: boolean;
  readonly strategy: string;
}

/** Of the time, what relief from nothing may take; on large graphs it is the most likely to find a plan at all. */
const RELIEF = 0.25;
const LARGE_RELIEF = 0.7;
const LARGE = 1000;
/** Graphs for which little effort is too little for relief, while a run of look-ahead is not. */
const HUGE = 3000;
/** Of the time on large graphs: when look-ahead ends, which comes first there, relief after it, and the search around both. */
const [EARLY, LATE_RELIEF, LATE_TOURNAMENT] = [0.35, 0.5, 0.7];
/** When relief from nothing ends, and the given order is given up, where no plan is found with it and another may do. */
const [SHORT_RELIEF, UNPLANNED] = [0.1, 0.12];
/** When relief in stages ends, where nothing else has found a plan; replays too. */
const STAGES_UNTIL = 0.9;
/** Of what is left until then, the part for relief in stages before replays, which are slow on large graphs. */
const [STAGES_PART, LARGE_STAGES_PART] = [0.15, 0.6];
/** Largest graphs that are solved exactly, and those whose relaxation is. */
const EXACT_OPS = 130;
/** Widths of the search over states, and by how much it gets wider each time. */
const NARROW = 10;
const WIDEST = 30_000;
const WIDER = 4;
/** Its work for an effort of 1, the same for all graphs: how hard one is has little to do with its operations. */
const STATE_WORK = 1e8;
/** The least effort for which it is used. */
const STATE_EFFORT = 0.2;
/** Stages of windows that are searched over states, and the width of the search. */
const WINDOWS: readonly (readonly [number, number])[] = [
  [6, 20],
  [10, 20],
  [16, 40],
];

/** Bytes that the operation with the largest operands needs; no order and no recomputation goes lower. */
export function leastBytes(problem: RecomputeProblem): number {
  return Math.max(
    0,
    ...problem.ops.map(({ inputs, outputs, scratchBytes = 0 }, k) => {
      const operands = [...inputs, ...outputs].reduce((sum, v) => sum + at(problem.bytes, v), 0);
      return operands + scratchBytes + at(problem.pinnedBytes, k);
    }),
  );
}

interface Search {
  readonly problem: RecomputeProblem;
  readonly graph: FlatGraph;
  readonly budget: number;
  readonly began: number;
  readonly options: AutoOptions;
  best: Sequence | null;
  cost: number;
  strategy: string;
  bound: number;
  proven: boolean;
}

/** The time by the clock at which `part` of the whole is spent; a little is kept for checking. */
function until(search: Search, part: number): number {
  if (search.options.effort !== undefined) return Number.POSITIVE_INFINITY;
  return search.began + (search.options.seconds ?? 10) * 970 * part;
}

/** A part of the work that `effort` stands for; with the clock running, all of it that there is time for. */
function share(search: Search, part: number): Meter {
  return { left: part * allowanceOf(search.graph.ops, search.options.effort), deadline: until(search, 0.9) };
}

function offer(search: Search, sequence: Sequence | null, strategy: string): void {
  if (sequence === null) return;
  const { cost, peakBytes, violations } = simulate(search.problem, sequence);
  if (violations.length > 0 || peakBytes > search.budget || cost >= search.cost) return;
  search.best = sequence;
  search.cost = cost;
  search.strategy = strategy;
}

export function auto(problem: RecomputeProblem, budget: number, options: AutoOptions = {}): Answer {
  const graph = flatGraph(problem);
  const base = baseSequence(problem);
  const search: Search = {
    problem,
    graph,
    budget: Math.floor(budget),
    began: performance.now(),
    options,
    best: null,
    cost: Number.POSITIVE_INFINITY,
    strategy: "none",
    bound: graph.baseCost,
    proven: false,
  };
  offer(search, base, "store-all");
  offer(search, options.start ?? null, "start");
  if (search.strategy === "store-all") search.proven = true;
  else search.bound = isImpossible(search) ? Number.POSITIVE_INFINITY : dropBound(graph, search.budget);
  if (search.bound === Number.POSITIVE_INFINITY) search.proven = true;
  else if (!search.proven) improve(search);
  if (search.best === null && mayReorder(search)) return inAnotherOrder(search);
  const sequence = search.best ?? base;
  const { cost, peakBytes } = simulate(problem, sequence);
  const feasible = search.best !== null;
  return {
    feasible,
    sequence,
    peakBytes,
    cost,
    baseCost: graph.baseCost,
    boundCost: feasible ? Math.min(search.bound, cost) : search.bound,
    proven: search.proven || (feasible && search.cost <= search.bound * (1 + 1e-9)),
    strategy: search.strategy,
  };
}

/** Whether there may be a plan with another order; what was proven about the given one does not hold for it. */
function mayReorder(search: Search): boolean {
  const { problem, options } = search;
  return options.order === "any" && options.effort === undefined && hasFreeOrder(problem) && !isImpossible(search);
}

/** Whether one operation or the results alone are too much, in whatever order. */
function isImpossible({ problem, graph, budget }: Search): boolean {
  const results = graph.results.reduce((sum, value) => sum + at(graph.bytes, value), 0);
  return Math.max(leastBytes(problem), results) > budget;
}

/** The lowest peak in another order: relief in stages has the cheaper plan where it has one, replays get lower. */
function lowest(search: Search): Numbered {
  const { problem, budget, graph } = search;
  const [now, deadline] = [performance.now(), until(search, STAGES_UNTIL)];
  const part = graph.ops > LARGE ? LARGE_STAGES_PART : STAGES_PART;
  const staged = relieveInStages(problem, budget, { deadline: now + part * (deadline - now), order: "any" });
  if (simulate(staged.problem, staged.sequence).peakBytes <= budget) return staged;
  return lowerByReplays(problem, budget, { deadline, order: "any" });
}

/** A plan with another order of first executions, made cheaper like any other in the time that is left. */
function inAnotherOrder(search: Search): Answer {
  const { problem, budget, options, began } = search;
  const staged = lowest(search);
  const { peakBytes, cost } = simulate(staged.problem, staged.sequence);
  if (peakBytes > budget) {
    const { baseCost } = search.graph;
    const sequence = baseSequence(problem);
    const base = { sequence, peakBytes: simulate(problem, sequence).peakBytes, cost: baseCost, baseCost };
    return { ...base, feasible: false, boundCost: baseCost, proven: false, strategy: "none" };
  }
  const seconds = Math.max(0.01, (options.seconds ?? 10) - (performance.now() - began) / 1000);
  const answer = auto(staged.problem, budget, { ...options, seconds, order: "given", start: staged.sequence });
  invariant(answer.cost <= cost, () => `a plan of cost ${cost} became one of ${answer.cost}`);
  return { ...answer, sequence: answer.sequence.map((op) => at(staged.given, op)) };
}

/** Where look-ahead comes before relief: one run of it is quick, whatever the size, and in most graphs finds a plan. */
function isHuge({ graph, options }: Search): boolean {
  return graph.ops > (options.effort === undefined ? LARGE : HUGE);
}

/** Look-ahead's plans, the cheapest first; above the budget if there are none within it, for annealing to start from. */
function firstPlans(search: Search): readonly Found[] {
  const { graph, budget, options } = search;
  const huge = isHuge(search);
  // where there is no plan yet, relief in stages comes next, and is the one that gets furthest in time
  const unplanned = mayReorder(search) ? UNPLANNED : 0.35;
  const part = search.best ? 0.3 : unplanned;
  const deadline = until(search, huge ? EARLY : part);
  const limited = (work: number): Meter => ({ ...share(search, work), ...(huge ? { deadline } : {}) });
  const found = [...portfolio(graph, budget, deadline, options.worth, limited(huge ? 1 : 0.4))];
  const meter = limited(0.4);
  for (let more = 1.05; !search.best && found.length === 0 && more < 2 && meter.left > 0; more *= 1.1) {
    if (performance.now() > deadline) break;
    found.push(...portfolio(graph, Math.floor(budget * more), deadline, undefined, meter));
  }
  offer(search, found[0]?.sequence ?? null, "look-ahead");
  return found;
}

/** A sequence that is a little above the budget, repaired: by relief, else by annealing so cold that it changes little. */
function repairStart(search: Search, start: Sequence): void {
  const { graph, budget, options } = search;
  const moves = options.effort === undefined ? 2e6 : options.effort * 2e4;
  const work = share(search, 0.4).left;
  offer(search, relieve(graph, budget, { deadline: until(search, 0.3), work, start }), "relief");
  for (let round = 0; round < 4 && !search.best; round++) {
    const limits = { moves, work: work / 4, deadline: until(search, 0.1 * (round + 1)) };
    offer(search, anneal(graph, budget, start, { seed: round, ...limits, hot: 0.1, cold: 0.01 }), "anneal");
  }
}

/** Before it takes its first step, the search over states looks at every stage: not worth it where little is asked. */
function hasStates({ options }: Search): boolean {
  return options.effort === undefined || options.effort >= STATE_EFFORT;
}

/** The search over states, wider and wider until it is complete, on graphs that are small enough for it. */
function widen(search: Search, from: number, to: number, part: number, work: number): void {
  const { graph, budget } = search;
  if (!fitsBits(graph) || !hasStates(search)) return;
  const meter = { left: work * STATE_WORK * (search.options.effort ?? Number.POSITIVE_INFINITY) };
  const deadline = until(search, part);
  for (let width = from; width <= to && meter.left > 0 && performance.now() < deadline; width *= WIDER) {
    const cutoff = (search.cost - graph.baseCost) * (1 - 1e-12);
    const { sequence, complete } = searchStates(graph, budget, { width, cutoff, deadline, meter });
    offer(search, sequence, "states");
    if (!complete) continue;
    // nothing is cheaper, whatever is computed how often; or there is no plan at all
    search.bound = search.cost;
    search.proven = true;
    return;
  }
}

/** Windows of plans searched over states, on graphs that are small enough for it: of the best and of other starts. */
function polish(search: Search, starts: readonly Sequence[], part: number, work: number): void {
  const { graph, budget, problem } = search;
  if (!fitsBits(graph) || !hasStates(search)) return;
  const meter = { left: work * STATE_WORK * (search.options.effort ?? Number.POSITIVE_INFINITY) };
  const deadline = until(search, part);
  for (const start of [search.best, ...starts]) {
    if (start === null || simulate(problem, start).peakBytes > budget) continue;
    let polished: Sequence = start;
    for (const [stages, width] of WINDOWS) {
      polished = improveByStates(graph, budget, polished, stages, { width, deadline, meter });
    }
    offer(search, polished, "states");
  }
}

/** What the rules have within the budget, the cheapest of each kind: on deep and regular graphs they are hard to beat. */
function byRules(search: Search): readonly Sequence[] {
  const { problem, budget, graph } = search;
  const large = graph.ops > LARGE;
  const kinds = [segmentPlans(problem, "operation", large ? 1.5 : 1.2)];
  if (!large) kinds.push(selectivePlans(problem));
  if (problem.ops.some(({ scope }) => scope !== undefined)) kinds.push(segmentPlans(problem, "layer", 1.5));
  return kinds.flatMap((plans) => {
    const found = cheapest(problem, budget, plans);
    offer(search, found, "rule");
    return found ? [found] : [];
  });
}

function improve(search: Search): void {
  const { graph, budget } = search;
  const { solver, effort, start } = search.options;
  if (start) repairStart(search, start);
  const fresh = !(start && search.best);
  const early = fresh && isHuge(search) ? firstPlans(search) : [];
  // with little effort on a huge graph, relief gets nowhere, and to count what rules need takes longer than look-ahead
  const tired = effort !== undefined && search.best !== null && isHuge(search);
  const large = search.best || mayReorder(search) ? LATE_RELIEF : LARGE_RELIEF;
  const small = mayReorder(search) ? SHORT_RELIEF : RELIEF;
  const limits = { deadline: until(search, graph.ops > LARGE ? large : small), work: share(search, 1).left };
  const relieved: Sequence[] = fresh && !tired ? [relieve(graph, budget, limits)] : [];
  for (const sequence of relieved) offer(search, sequence, "relief");
  if (fresh && !tired) relieved.push(...byRules(search));
  if (fresh) widen(search, NARROW, NARROW * WIDER, 0.15, 0.2);
  if (search.proven) return;
  const found = fresh && !isHuge(search) ? firstPlans(search) : early;
  if (!search.best && mayReorder(search)) return;
  if (!search.best && effort === undefined) {
    const { sequence } = relieveInStages(search.problem, budget, { deadline: until(search, STAGES_UNTIL) });
    offer(search, sequence, "relief");
  }
  const exact = solver !== undefined && graph.ops <= EXACT_OPS;
  const starts = [...relieved, ...found.map(({ sequence }) => sequence)];
  if (exact) {
    annealFrom(search, starts, 0.15);
    polish(search, starts.slice(0, 4), 0.2, 0.4);
    widen(search, NARROW * WIDER, WIDEST, 0.3, 1);
    if (!search.proven) solve(search, 0.85);
    if (search.proven) return;
  }
  const rounds = (effort ?? Number.POSITIVE_INFINITY) * 300 * Math.min(1, 300 / graph.ops);
  const deadline = until(search, isHuge(search) ? LATE_TOURNAMENT : 0.42);
  // where relief is far ahead, variations of look-ahead are no match for it
  const excess = (found[0]?.cost ?? Number.POSITIVE_INFINITY) - graph.baseCost;
  if (search.best && excess < 1.5 * (search.cost - graph.baseCost)) {
    const meter = share(search, 0.4);
    const around = tournament(graph, budget, found.slice(0, 6), { seed: 1, rounds, deadline, meter });
    offer(search, around[0]?.sequence ?? null, "look-ahead");
    // relief of a plan that fits takes away what is needless in it
    const tidy = {
      deadline: until(search, isHuge(search) ? LATE_TOURNAMENT + 0.08 : 0.5),
      work: share(search, 0.1).left,
    };
    const tidied = around.map(({ sequence: start }) => relieve(graph, budget, { ...tidy, start }));
    starts.splice(relieved.length, starts.length, ...tidied);
    offer(search, tidied[0] ?? null, "look-ahead");
  }
  const widened = fitsBits(graph) && !exact;
  const whole = exact ? 1 : 0.85;
  annealFrom(search, starts, widened ? 0.5 : whole);
  if (widened) {
    polish(search, starts.slice(0, 4), 0.6, 0.4);
    widen(search, NARROW * WIDER, WIDEST, 0.8, 1);
    if (search.proven) return;
    polish(search, [], 0.85, 0.2);
  }
  windows(search);
  annealFrom(search, starts, 1);
}

/** First temperatures of the rounds, and where each starts. */
const ROUNDS = [
  { hot: 0.3, from: "best" },
  { hot: 1, from: "other" },
  { hot: 1, from: "best" },
  { hot: 1, from: "nothing" },
  { hot: 0.3, from: "other" },
  { hot: 3, from: "best" },
] as const;

/** Rounds of annealing from the best, from other plans and from none, until `part` of the time is spent. */
function annealFrom(search: Search, starts: readonly Sequence[], part: number): void {
  const { graph, budget, options, problem } = search;
  const deadline = until(search, part);
  // with little to search, more and shorter rounds
  const small = fitsBits(graph);
  const counted = small ? 6 : 3;
  const rounds = options.effort === undefined ? 1000 : counted;
  const moves = options.effort === undefined ? 2e6 : (options.effort * 1.5e5) / counted;
  const work = share(search, 1 / counted).left;
  const left = deadline - performance.now();
  for (let round = 0; round < rounds && performance.now() < deadline - 5; round++) {
    const { hot, from } = ROUNDS[round % ROUNDS.length] as (typeof ROUNDS)[number];
    const nothing = baseSequence(problem);
    const other = starts[(round >> 1) % Math.max(1, starts.length)] ?? nothing;
    const start = { best: search.best ?? other, other, nothing: small ? nothing : (search.best ?? other) }[from];
    const slice = options.effort === undefined ? performance.now() + Math.max(300, left / 4) : deadline;
    const limits = { moves, work, deadline: Math.min(slice, deadline) };
    offer(search, anneal(graph, budget, start, { seed: round, ...limits, hot, cold: 0.01 }), "anneal");
  }
}

function solve(search: Search, part: number): void {
  const { graph, budget, options, cost } = search;
  if (!options.solver) return;
  const deadline = options.effort === undefined ? until(search, part) : performance.now() + options.effort * 1e4;
  const answer = solveOptimal(graph, budget, options.solver, { deadline, gap: 1e-6, known: cost });
  offer(search, answer.sequence, "optimal");
  search.bound = Math.max(search.bound, answer.bound);
  search.proven = answer.proven;
}

function windows(search: Search): void {
  const { graph, budget, options, best } = search;
  if (!options.solver || !best || options.effort !== undefined || graph.ops <= EXACT_OPS) return;
  const deadline = until(search, 0.92);
  const improved = improveWindows(graph, budget, best, options.solver, { stages: 60, seconds: 0.7, deadline });
  if (improved !== best) offer(search, improved, "windows");
}
