/**
 * @file Budgets on the arena itself. Planners count live bytes; a placement needs as many or more, because of holes:
 *
 * ```
 *   target ┄┄┄┄┄┄┄┌────┐┄┄┄     x sticks out although enough is free below it: in two pieces. Only in the stages
 *          ░░░░░░░│ x  │         where x lives are bytes reserved, as many as it sticks out, so that the next plan
 *          ┌──────┴────┴──┐     drops something there and nowhere else; and a, b, which lie around the holes, become
 *          └──────b───────┘     worth less than what lies well.
 *          ░░░░░┌───┐░░░░░░
 *          ─────┴─a─┴──────
 * ```
 *
 * Each attempt plans with the reservations of the ones before it, starting from their best sequence, and is then realised
 * by the caller. Under `effort` the outcome depends on the arguments alone.
 */
import { at } from "../../base/invariant.ts";
import { liveBytes } from "../bound.ts";
import type { Answer } from "./auto.ts";
import { type FlatGraph, flatGraph } from "./flat-graph.ts";
import { lifetimesOf } from "./lifetimes.ts";
import { Allowance, type Meter, meterOf } from "./meter.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";
import { relieve } from "./relief.ts";
import { simulate } from "./simulate.ts";
import { planRecompute } from "./strategies.ts";
import type { RecomputeOptions, Strategy } from "./strategy.ts";

/** A place where the arena is above the target. */
export interface Conflict {
  /** Stages, by the operation whose first execution ends each: the first and the last that are concerned. */
  readonly fromOp: number;
  readonly toOp: number;
  /** Bytes too many. */
  readonly bytes: number;
  /** Values that stick out or lie around a hole. */
  readonly values: readonly number[];
}

/** The arena of a sequence once its values have addresses. */
export interface Realised<R> {
  readonly arenaBytes: number;
  readonly result: R;
  /** Empty if it fits. */
  readonly conflicts: readonly Conflict[];
}

export interface FitOptions extends RecomputeOptions {
  readonly strategy?: Strategy;
  /** Plans to realise, at most. */
  readonly attempts?: number;
  /**
   * For callers to whom a realisation costs little: a first plan with holes is repaired in several ways, and after a plan
   * that fits one more is looked for that is cheaper.
   */
  readonly thorough?: boolean;
}

export interface Fit<R> {
  /** Costs and bytes are those of the problem as given; `peakBytes` counts live bytes. */
  readonly plan: Answer;
  readonly realised: Realised<R>;
  readonly attempts: number;
}

const ATTEMPTS = 6;
/** Factor of what values around holes are worth, for each attempt in which they are. */
const CHEAPER = 0.5;
/** Attempts that fail before bytes are reserved in all stages. */
const LOCAL = 2;
/** A plan whose repetitions cost so many times those of another is no start for the next. */
const POOR = 1.5;
/** Of all work, the first plan's share; the others have the rest in equal shares. `effort` is the work of the first. */
const FIRST = 0.5;
/** Shares of the target that a plan is repaired to live within, until its arena is within the target. */
const TIGHTER: readonly number[] = [0.99, 0.98, 0.96, 0.94, 0.92, 0.9, 0.87];
/** Of all work, what all repairs may take. */
const REPAIRS = 0.4;

/** What the next attempt counts with. */
interface Reservations {
  /** Bytes to leave free in each stage, and in all of them. */
  readonly inStage: Float64Array;
  inAll: number;
  /** Factors of what values are worth. */
  readonly worth: Float64Array;
  /** Whether there are any. */
  isSet: boolean;
}

interface Fitting<R> {
  readonly problem: RecomputeProblem;
  readonly targetBytes: number;
  readonly realise: (sequence: Sequence) => Realised<R>;
  readonly options: FitOptions;
  readonly attempts: number;
  readonly allowance: Allowance;
  readonly reserved: Reservations;
  best: Pick<Fit<R>, "plan" | "realised"> | null;
  /** Where the next attempt starts. */
  start: Sequence | undefined;
  /** No plan of the problem as given costs less. */
  boundCost: number;
  tried: number;
  /** The least that repetitions of an attempt cost. */
  leastExtra: number;
  /** The most bytes that an attempt lost in holes. */
  mostHoles: number;
  /** A plan fits, and one attempt is left to find a cheaper one. */
  isLast: boolean;
}

/** An attempt that was realised; figures are those of the problem as given. */
interface Attempt<R> {
  readonly planned: Answer;
  readonly realised: Realised<R>;
  readonly cost: number;
  readonly peakBytes: number;
}

/** The most live bytes of each stage, and of the end. */
export function stageBytes(problem: RecomputeProblem, sequence: Sequence): Float64Array {
  const { buffers, stageOf } = lifetimesOf(problem, sequence);
  const live = liveBytes({ buffers, capacity: Number.POSITIVE_INFINITY, alignment: 1 }, sequence.length);
  const most = new Float64Array(problem.ops.length + 1);
  stageOf.forEach((stage, step) => {
    most[stage] = Math.max(at(most, stage), at(live, step));
  });
  return most;
}

/** `problem` with bytes that are to be left free counted as if they were constants. */
function withReservations(problem: RecomputeProblem, { inStage, inAll, isSet }: Reservations): RecomputeProblem {
  if (!isSet) return problem;
  const pinnedBytes = problem.pinnedBytes.map((bytes, stage) => bytes + Math.max(at(inStage, stage), inAll));
  return { ...problem, pinnedBytes };
}

/** Reserves bytes in the fullest stages of each conflict, so many that the same plan would no longer fit. */
function reserveLocally<R>({ reserved, problem, targetBytes }: Fitting<R>, { planned, realised }: Attempt<R>): void {
  const filled = stageBytes(problem, planned.sequence);
  const beside = new Set<number>();
  const { inStage, worth } = reserved;
  for (const { fromOp, toOp, bytes, values } of realised.conflicts) {
    let most = 0;
    for (let k = fromOp; k <= toOp; k++) most = Math.max(most, at(filled, k));
    for (let k = fromOp; k <= toOp; k++) {
      if (at(filled, k) + bytes > most) inStage[k] = Math.max(at(inStage, k), targetBytes - most + bytes);
    }
    for (const value of values) beside.add(value);
  }
  // once an attempt, in however many of its conflicts a value is
  for (const value of beside) worth[value] = at(worth, value) * CHEAPER;
  reserved.isSet = true;
}

/** After an attempt that does not fit. */
function reserve<R>(fitting: Fitting<R>, attempt: Attempt<R>): void {
  const { reserved, targetBytes, tried } = fitting;
  const { realised, peakBytes } = attempt;
  reserveLocally(fitting, attempt);
  fitting.mostHoles = Math.max(fitting.mostHoles, realised.arenaBytes - peakBytes);
  // where that does not help, the next plan is tighter as a whole: by the most that was lost in holes so far
  if (tried > LOCAL) reserved.inAll = Math.max(reserved.inAll + realised.arenaBytes - targetBytes, fitting.mostHoles);
}

/** Keeps half of the reservations: with all of them there is no plan. */
function loosen(reserved: Reservations): void {
  reserved.inStage.forEach((bytes, k) => {
    reserved.inStage[k] = Math.floor(bytes / 2);
  });
  reserved.inAll = Math.floor(reserved.inAll / 2);
}

function planNext<R>(fitting: Fitting<R>): Answer {
  const { problem, targetBytes, options, reserved, allowance, attempts, tried, isLast, start } = fitting;
  const { strategy, portfolio, solver, effort } = options;
  const rest = isLast ? 1 : (1 - FIRST) / (attempts - 1);
  const worth = reserved.isSet ? reserved.worth : undefined;
  const planned = allowance.spend(tried === 0 ? FIRST : rest, (meter) => {
    const chosen = { portfolio, solver, effort, worth, start, meter };
    return planRecompute(withReservations(problem, reserved), targetBytes, strategy, chosen);
  });
  if (fitting.tried++ === 0) fitting.boundCost = planned.boundCost;
  return planned;
}

/** Takes an attempt that fits if it is the cheapest. */
function take<R>(fitting: Fitting<R>, { planned, realised, cost, peakBytes }: Attempt<R>): void {
  if (fitting.best && cost >= fitting.best.plan.cost) return;
  const proven = planned.proven && !fitting.reserved.isSet;
  const boundCost = Math.min(fitting.boundCost, cost);
  fitting.best = { plan: { ...planned, peakBytes, cost, boundCost, proven }, realised };
}

/**
 * A plan that lives within the target but has holes, repaired rather than planned again: where time is short, a new plan
 * is a rule's, and costs more. Nothing where no repair fits in time.
 */
function repair<R>(fitting: Fitting<R>, { planned }: Attempt<R>, meter: Meter): void {
  const { problem, targetBytes, realise } = fitting;
  const graph: FlatGraph = flatGraph(problem);
  const allowance = new Allowance(meter);
  for (const share of TIGHTER) {
    if (allowance.isSpent) return;
    const sequence = relieve(graph, Math.floor(targetBytes * share), { start: planned.sequence, meter });
    const { cost, peakBytes } = simulate(problem, sequence);
    const realised = peakBytes <= targetBytes ? realise(sequence) : null;
    if (!realised || realised.arenaBytes > targetBytes) continue;
    take(fitting, { planned: { ...planned, sequence, proven: false }, realised, cost, peakBytes });
    return;
  }
}

/** The next attempt goes on from the latest, which has the most reservations, unless that ended with a poor plan. */
function chooseStart<R>(fitting: Fitting<R>, { planned, cost }: Attempt<R>): void {
  const extra = cost - planned.baseCost;
  fitting.leastExtra = Math.min(fitting.leastExtra, extra);
  if (fitting.best) fitting.start = fitting.best.plan.sequence;
  else if (extra <= POOR * fitting.leastExtra) fitting.start = planned.sequence;
}

/** Plans once and realises the plan; returns whether to go on. */
function attempt<R>(fitting: Fitting<R>): boolean {
  const { problem, targetBytes, realise, reserved, allowance, options } = fitting;
  const planned = planNext(fitting);
  if (!planned.feasible) {
    loosen(reserved);
    return reserved.isSet;
  }
  const { cost, peakBytes } = simulate(problem, planned.sequence);
  const tried: Attempt<R> = { planned, realised: realise(planned.sequence), cost, peakBytes };
  const fits = tried.realised.arenaBytes <= targetBytes;
  if (fits) take(fitting, tried);
  else if (options.thorough && fitting.tried === 1) allowance.spend(REPAIRS, (meter) => repair(fitting, tried, meter));
  chooseStart(fitting, tried);
  if (fitting.isLast || (fits && (!options.thorough || planned.proven))) return false;
  fitting.isLast = fits;
  if (!fits) reserve(fitting, tried);
  return true;
}

/**
 * The cheapest plan found whose realisation needs at most `targetBytes`; null if none of the attempts does. `realise` gives
 * addresses to the values of a sequence.
 */
export function fitArena<R>(
  problem: RecomputeProblem,
  targetBytes: number,
  realise: (sequence: Sequence) => Realised<R>,
  options: FitOptions = {},
): Fit<R> | null {
  const meter = meterOf(problem.ops.length, options);
  const fitting: Fitting<R> = {
    problem,
    targetBytes,
    realise,
    options,
    attempts: Math.max(1, options.attempts ?? ATTEMPTS),
    allowance: new Allowance({ ...meter, left: meter.left / FIRST }),
    reserved: {
      inStage: new Float64Array(problem.ops.length + 1),
      inAll: 0,
      worth: new Float64Array(problem.bytes.length).fill(1),
      isSet: false,
    },
    best: null,
    start: options.start,
    boundCost: 0,
    tried: 0,
    leastExtra: Number.POSITIVE_INFINITY,
    mostHoles: 0,
    isLast: false,
  };
  while (fitting.tried < fitting.attempts && attempt(fitting) && !fitting.allowance.isSpent);
  return fitting.best && { ...fitting.best, attempts: fitting.tried };
}
