/**
 * @file The portfolio for a graph alone, of which a plan may take seconds (`tidemark remat`, the strategy `optimal`): that
 * of the compiler with more annealing, and searches that prove an answer, cut windows out of it, or get lower where no plan
 * is found.
 */

import { runScorings } from "../plan/recompute/look-ahead-runs.ts";
import {
  type AnnealRound,
  annealRounds,
  early,
  LOOK_AHEAD,
  late,
  RELIEF,
  REPAIR,
  TIDY,
  VARIATIONS,
} from "../plan/recompute/members.ts";
import { isSpent, type Meter } from "../plan/recompute/meter.ts";
import type { Sequence } from "../plan/recompute/problem.ts";
import { type Member, offer, type PlanSearch } from "../plan/recompute/search.ts";
import { simulate } from "../plan/recompute/simulate.ts";
import type { IntegerSolver } from "../plan/recompute/solver.ts";
import { solveOptimal } from "./optimal.ts";
import { relieveInStages } from "./stages.ts";
import { fitsBits } from "./state-bounds.ts";
import { searchStates } from "./state-search.ts";
import { improveByStates } from "./state-windows.ts";
import { improveWindows } from "./windows.ts";

/** Largest graphs that are solved exactly; windows of larger ones are. */
const EXACT_OPS = 130;
/** Widths of the search over states: where it starts, where the first search ends, the widest, and the factor between. */
const [NARROW, MIDDLE, WIDEST, WIDER] = [10, 40, 30_000, 4];
/** Stages of windows that are searched over states, and the width of the search. */
const STATE_WINDOWS: readonly (readonly [stages: number, width: number])[] = [
  [6, 20],
  [10, 20],
  [16, 40],
];
/** Plans other than the best whose windows are searched. */
const POLISHED = 4;
/** Stages of a window that is solved, and seconds for one of them. */
const SOLVED_WINDOW = { stages: 60, seconds: 0.7 };
/** Budgets above the given one that look-ahead tries where it has no plan: annealing starts from those. */
const [ABOVE, FURTHER, FURTHEST] = [1.05, 1.1, 2];

const ROUNDS: readonly AnnealRound[] = [
  { hot: 0.3, from: "best" },
  { hot: 1, from: "other" },
  { hot: 1, from: "best" },
  { hot: 1, from: "nothing" },
  { hot: 0.3, from: "other" },
  { hot: 3, from: "best" },
];
/** On larger graphs annealing gets nowhere from nothing. */
const LARGE_ROUNDS = ROUNDS.map(({ hot, from }): AnnealRound => ({ hot, from: from === "nothing" ? "best" : from }));

const isSmall = ({ graph }: PlanSearch): boolean => fitsBits(graph);
const hasPlan = ({ best }: PlanSearch): boolean => best !== null;
/** The solver knows seconds alone. */
const hasClock = ({ options }: PlanSearch): boolean => options.effort === undefined;

/** The search over states, wider and wider until it is complete. */
function widen(search: PlanSearch, meter: Meter, [from, to]: readonly [number, number]): void {
  const { graph, budget } = search;
  for (let width = from; width <= to && !isSpent(meter); width *= WIDER) {
    const cutoff = (search.cost - graph.baseCost) * (1 - 1e-12);
    const { sequence, complete } = searchStates(graph, budget, { width, cutoff, meter });
    offer(search, sequence, "states");
    if (!complete) continue;
    // nothing is cheaper, whatever is computed how often; or there is no plan at all
    search.bound = search.cost;
    search.isProven = true;
    return;
  }
}

/** Windows searched over states, of the best plan and of some others. */
function polish(search: PlanSearch, meter: Meter, count: number): void {
  const { graph, budget, problem, others, runs } = search;
  const starts: readonly Sequence[] = [...others, ...runs.map(({ sequence }) => sequence)].slice(0, count);
  for (const start of [search.best, ...starts]) {
    if (start === null || simulate(problem, start).peakBytes > budget) continue;
    let polished: Sequence = start;
    for (const [stages, width] of STATE_WINDOWS) {
      polished = improveByStates(graph, budget, polished, { stages, width, meter });
    }
    offer(search, polished, "states");
  }
}

function lookAbove(search: PlanSearch, meter: Meter): void {
  const { graph, budget, others } = search;
  for (let factor = ABOVE; factor < FURTHEST && !isSpent(meter); factor *= FURTHER) {
    const runs = runScorings(graph, Math.floor(budget * factor), { meter });
    others.push(...runs.map(({ sequence }) => sequence));
    if (runs.length > 0) return;
  }
}

function solve(search: PlanSearch, meter: Meter, solver: IntegerSolver): void {
  const { graph, budget, cost } = search;
  const limits = { deadline: meter.deadline, gap: 1e-6, known: cost };
  const answer = solveOptimal(graph, { budget, solver }, limits);
  offer(search, answer.sequence, "optimal");
  search.bound = Math.max(search.bound, answer.bound);
  search.isProven = answer.proven;
}

function solveWindows(search: PlanSearch, meter: Meter, solver: IntegerSolver): void {
  const { graph, budget, best } = search;
  if (!best) return;
  const options = { ...SOLVED_WINDOW, deadline: meter.deadline };
  const improved = improveWindows(graph, { budget, solver }, best, options);
  if (improved !== best) offer(search, improved, "windows");
}

function annealing(share: number, when: Member["when"] = () => true): Member {
  const run: Member["run"] = (search, meter) => annealRounds(search, meter, isSmall(search) ? ROUNDS : LARGE_ROUNDS);
  return { name: "annealing", when, share, run, improves: true };
}

function states(share: number, widths: readonly [number, number], when: Member["when"] = isSmall): Member {
  return { name: "states", when, share, run: (search, meter) => widen(search, meter, widths) };
}

function windowsOfStates(share: number, count: number, when: Member["when"] = isSmall): Member {
  return { name: "windows of states", when, share, run: (search, meter) => polish(search, meter, count) };
}

/** With a solver: an exact answer for small graphs, in half of the time. */
function exactMembers(solver: IntegerSolver): readonly Member[] {
  const isExact = (search: PlanSearch): boolean => hasClock(search) && search.graph.ops <= EXACT_OPS;
  const isSmallToo = (search: PlanSearch): boolean => isExact(search) && isSmall(search);
  return [
    annealing(0.05, isExact),
    windowsOfStates(0.05, POLISHED, isSmallToo),
    states(0.1, [MIDDLE, WIDEST], isSmallToo),
    { name: "integer program", when: isExact, share: 0.5, run: (search, meter) => solve(search, meter, solver) },
  ];
}

function windowMembers(solver: IntegerSolver): readonly Member[] {
  const when = (search: PlanSearch): boolean => hasClock(search) && hasPlan(search) && search.graph.ops > EXACT_OPS;
  return [{ name: "windows", when, share: 0.1, run: (search, meter) => solveWindows(search, meter, solver) }];
}

function onlyIf(condition: Member["when"], member: Member): Member {
  return { ...member, when: (search) => condition(search) && member.when(search) };
}

const STAGES: Member = {
  name: "relief in stages",
  when: (search) => !hasPlan(search),
  share: 0.5,
  run: (search, meter) => offer(search, relieveInStages(search.problem, search.budget, { meter }).sequence, "relief"),
};

/** Where another order may have a plan, the time is better spent on that. */
const END_WITHOUT_PLAN: Member = {
  name: "end without a plan",
  when: (search) => !hasPlan(search),
  share: 0,
  run: (search) => {
    search.isEnded = true;
  },
};

export interface PortfolioOptions {
  readonly solver?: IntegerSolver | undefined;
  /** Whether the search ends early where the given order of first executions has no plan. */
  readonly endsEarly?: boolean;
}

export function graphPortfolio({ solver, endsEarly = false }: PortfolioOptions): readonly Member[] {
  const above = (search: PlanSearch): boolean => !hasPlan(search) && search.runs.length === 0;
  return [
    REPAIR,
    early(LOOK_AHEAD),
    { ...RELIEF, share: endsEarly ? 0.1 : 0.25 },
    states(0.1, [NARROW, MIDDLE]),
    { ...late(LOOK_AHEAD), share: endsEarly ? 0.03 : 0.1 },
    ...(endsEarly ? [END_WITHOUT_PLAN] : [STAGES]),
    { name: "look-ahead above the budget", when: above, share: 0.05, run: lookAbove },
    ...(solver ? exactMembers(solver) : []),
    onlyIf(isSmall, { ...VARIATIONS, share: 0.02 }),
    onlyIf((search) => !isSmall(search), { ...VARIATIONS, share: 0.35 }),
    TIDY,
    annealing(0.1, isSmall),
    annealing(0.25, (search) => !isSmall(search)),
    windowsOfStates(0.1, POLISHED),
    states(0.4, [MIDDLE, WIDEST]),
    windowsOfStates(0.05, 0),
    ...(solver ? windowMembers(solver) : []),
    annealing(1, hasClock),
  ];
}
