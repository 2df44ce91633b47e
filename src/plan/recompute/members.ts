/**
 * @file The portfolio of `auto` in the compiler: what is tried, when, and for which part of the work. Measured one by one
 * (docs/lab/recompute.md); searches that take more time than a compiler has are in src/remat.
 */
import { anneal } from "./anneal.ts";
import { runScorings, tournament } from "./look-ahead-runs.ts";
import { Allowance, type Meter } from "./meter.ts";
import { baseSequence } from "./problem.ts";
import { relieve } from "./relief.ts";
import { type Member, offer, type PlanSearch } from "./search.ts";

/** Graphs for which relief gets nowhere with little work, while a run of look-ahead does. */
const HUGE = 3000;
/** Plans of look-ahead that are varied. */
const STARTS = 6;
/** Where repetitions of look-ahead's best plan cost so many times those of another, variations of it are no match. */
const FAR = 1.5;

export const isHuge = ({ graph }: PlanSearch): boolean => graph.ops > HUGE;

/** Whether plans are made from nothing: there is none to start from, or it could not be repaired. */
export const isFresh = ({ options, best }: PlanSearch): boolean => !(options.start && best);

function repair(search: PlanSearch, meter: Meter): void {
  const { graph, budget, options } = search;
  if (options.start) offer(search, relieve(graph, budget, { start: options.start, meter }), "relief");
}

function relieveAll(search: PlanSearch, meter: Meter): void {
  const sequence = relieve(search.graph, search.budget, { meter });
  search.others.push(sequence);
  offer(search, sequence, "relief");
}

function lookAheadAll(search: PlanSearch, meter: Meter): void {
  const { graph, budget, options } = search;
  search.runs = runScorings(graph, budget, { worth: options.worth, meter });
  offer(search, search.runs[0]?.sequence ?? null, "look-ahead");
}

/** Whether variations of look-ahead's plans may become the best. */
function isNear({ runs: [first], best, cost, graph }: PlanSearch): boolean {
  return first !== undefined && best !== null && first.cost - graph.baseCost < FAR * (cost - graph.baseCost);
}

function vary(search: PlanSearch, meter: Meter): void {
  const { graph, budget, runs } = search;
  search.runs = tournament(graph, budget, runs.slice(0, STARTS), { seed: 1, meter });
  offer(search, search.runs[0]?.sequence ?? null, "look-ahead");
}

/** Relief of a plan that fits takes away repetitions that it does not need. */
function tidy(search: PlanSearch, meter: Meter): void {
  const { graph, budget, runs } = search;
  const [first] = runs;
  if (first) offer(search, relieve(graph, budget, { start: first.sequence, meter }), "look-ahead");
}

/** Rounds of annealing: the first temperature of each, and where it starts. */
export interface AnnealRound {
  readonly hot: number;
  readonly from: "best" | "other" | "nothing";
}

const ROUNDS: readonly AnnealRound[] = [
  { hot: 0.3, from: "best" },
  { hot: 1, from: "other" },
  { hot: 1, from: "best" },
];

/** Anneals in rounds of equal shares, from the best plan and from others, until nothing is left. */
export function annealRounds(search: PlanSearch, meter: Meter, rounds: readonly AnnealRound[] = ROUNDS): void {
  const { graph, budget, problem, others, runs } = search;
  const starts = [...others, ...runs.map(({ sequence }) => sequence)];
  const allowance = new Allowance(meter);
  rounds.forEach(({ hot, from }, seed) => {
    if (allowance.isSpent) return;
    const nothing = baseSequence(problem);
    const other = starts[(seed >> 1) % Math.max(1, starts.length)] ?? nothing;
    const start = { best: search.best ?? other, other, nothing }[from];
    const annealed = (part: Meter) => anneal(graph, budget, start, { seed, meter: part, hot, cold: 0.01 });
    offer(search, allowance.spend(1 / rounds.length, annealed), "anneal");
  });
}

export const REPAIR: Member = {
  name: "repair of a start",
  when: ({ options }) => options.start !== undefined,
  share: 0.4,
  run: repair,
};

export const LOOK_AHEAD: Member = { name: "look-ahead", when: isFresh, share: 0.4, run: lookAheadAll };

export const RELIEF: Member = {
  name: "relief",
  when: (search) => isFresh(search) && !(isHuge(search) && search.best),
  share: 0.4,
  run: relieveAll,
};

export const VARIATIONS: Member = { name: "variations", when: isNear, share: 0.1, run: vary, improves: true };

export const TIDY: Member = { name: "tidy", when: isNear, share: 0.1, run: tidy, improves: true };

export const ANNEALING: Member = {
  name: "annealing",
  when: () => true,
  share: 0.2,
  run: (search, meter) => annealRounds(search, meter),
  improves: true,
};

/** A member that comes earlier on huge graphs, of which it finds plans sooner than the others. */
export const early = (member: Member): Member => ({
  ...member,
  when: (search) => isHuge(search) && member.when(search),
});

/** The same where it did not come earlier. */
export const late = (member: Member): Member => ({
  ...member,
  when: (search) => !isHuge(search) && member.when(search),
});

export const COMPILER_PORTFOLIO: readonly Member[] = [
  REPAIR,
  early(LOOK_AHEAD),
  RELIEF,
  late(LOOK_AHEAD),
  VARIATIONS,
  TIDY,
  ANNEALING,
];
