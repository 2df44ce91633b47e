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
 * Each attempt plans with what the ones before have taught, starting from their best sequence, and is then realised by
 * whoever knows how. Under `effort` the outcome depends on the arguments alone.
 */
import { at } from "../../base/invariant.ts";
import { liveBytes } from "../bound.ts";
import type { Answer, AutoOptions } from "./auto.ts";
import { flatGraph } from "./flat-graph.ts";
import { lifetimesOf } from "./lifetimes.ts";
import type { RecomputeProblem, Sequence } from "./problem.ts";
import { relieve } from "./relief.ts";
import { simulate } from "./simulate.ts";
import { planRecompute, type StrategyName } from "./strategies.ts";

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

/** What a sequence needs once its values have addresses, as found by whoever realises it. */
export interface Realised<R> {
  readonly arenaBytes: number;
  readonly result: R;
  /** Empty if it fits. */
  readonly conflicts: readonly Conflict[];
  /** Bytes that each stage needs beyond what `simulate` counts (below it if negative), for the next attempt to count. */
  readonly correction?: readonly number[];
}

export interface FitOptions extends AutoOptions {
  readonly strategy?: StrategyName;
  /** Plans to realise, at most. */
  readonly attempts?: number;
  /** `Realised.correction` for the first attempt, where it is known before. */
  readonly correction?: readonly number[];
}

export interface Fit<R> {
  /** Costs and bytes are those of the problem as given; `peakBytes` counts live bytes. */
  readonly plan: Answer;
  readonly realised: Realised<R>;
  readonly attempts: number;
}

const ATTEMPTS = 6;
/** What values around holes are worth, after each attempt in which they are. */
const CHEAPER = 0.5;
/** Attempts that fail before bytes are reserved in all stages. */
const LOCAL = 2;
/** A plan whose repetitions cost so many times those of another is no start for the next. */
const POOR = 1.5;
/** Of the time or effort, what the first plan gets; the others share the rest. */
const FIRST = 0.5;

interface Lessons {
  /** Bytes to leave free in each stage, and in all of them. */
  readonly reserved: Float64Array;
  everywhere: number;
  readonly worth: Float64Array;
  correction: readonly number[] | undefined;
  learned: boolean;
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

/** `problem` with what is to be left free counted as if it were constants. */
function adjusted(problem: RecomputeProblem, lessons: Lessons): RecomputeProblem {
  if (!lessons.learned && !lessons.correction) return problem;
  const pinnedBytes = problem.pinnedBytes.map(
    (bytes, stage) =>
      bytes + Math.max(at(lessons.reserved, stage), lessons.everywhere) + (lessons.correction?.[stage] ?? 0),
  );
  return { ...problem, pinnedBytes };
}

/** Reserves bytes in the fullest stages of each conflict, so many that the same plan would no longer fit. */
function learn(lessons: Lessons, conflicts: readonly Conflict[], filled: Float64Array, targetBytes: number): void {
  const wanted = new Float64Array(lessons.reserved.length);
  const beside = new Set<number>();
  for (const { fromOp, toOp, bytes, values } of conflicts) {
    let most = 0;
    for (let k = fromOp; k <= toOp; k++) most = Math.max(most, at(filled, k));
    for (let k = fromOp; k <= toOp; k++) {
      if (at(filled, k) + bytes <= most) continue;
      wanted[k] = Math.max(at(wanted, k), targetBytes - most + bytes);
    }
    for (const value of values) beside.add(value);
  }
  // once an attempt, in however many of its conflicts a value is
  for (const value of beside) lessons.worth[value] = at(lessons.worth, value) * CHEAPER;
  wanted.forEach((bytes, k) => {
    lessons.reserved[k] = Math.max(at(lessons.reserved, k), bytes);
  });
  lessons.learned = true;
}

/** Options of attempt `k` of `attempts`: its share of the time or effort, where to start and what lies badly. */
function optionsOf(options: FitOptions, k: number, attempts: number, began: number, lessons: Lessons): AutoOptions {
  const { seconds = 10, effort, solver } = options;
  const shared = lessons.learned ? { solver, worth: lessons.worth } : { solver };
  const rest = attempts > 1 ? (1 - FIRST) / (attempts - 1) : 1;
  if (effort !== undefined) return { ...shared, effort: k === 0 ? effort : effort * rest * 2 };
  const left = seconds - (performance.now() - began) / 1000;
  return { ...shared, seconds: Math.max(0.05, k === 0 ? seconds * FIRST : left / (attempts - k)) };
}

/** Keeps half of what was reserved: with all of it there is no plan. */
function relent(lessons: Lessons): void {
  lessons.reserved.forEach((bytes, k) => {
    lessons.reserved[k] = Math.floor(bytes / 2);
  });
  lessons.everywhere = Math.floor(lessons.everywhere / 2);
}

/** Shares of the target that a plan is repaired to live within, until its arena is within the target. */
const TIGHTER: readonly number[] = [0.99, 0.98, 0.96, 0.94, 0.92, 0.9, 0.87];
/** Of the time, when that ends. */
const REPAIRED_UNTIL = 0.9;

/**
 * A plan that lives within the target but has holes, repaired rather than made anew: where time is short, what is made anew
 * is a rule's plan, and costs more. Null where no repair fits in time.
 */
function repaired<R>(
  problem: RecomputeProblem,
  targetBytes: number,
  planned: Answer,
  realise: (sequence: Sequence) => Realised<R>,
  deadline: number,
): Pick<Fit<R>, "plan" | "realised"> | null {
  const graph = flatGraph(problem);
  const start = planned.sequence;
  for (const share of TIGHTER) {
    if (performance.now() > deadline) return null;
    const sequence = relieve(graph, Math.floor(targetBytes * share), { start, deadline });
    const { cost, peakBytes } = simulate(problem, sequence);
    const realised = peakBytes <= targetBytes ? realise(sequence) : null;
    if (!realised || realised.arenaBytes > targetBytes) continue;
    const boundCost = Math.min(planned.boundCost, cost);
    return { plan: { ...planned, sequence, peakBytes, cost, boundCost, proven: false }, realised };
  }
  return null;
}

/**
 * The cheapest plan found whose realisation needs at most `targetBytes`; null if none of the attempts does. A plan that
 * fits ends it, but for one more that looks for a cheaper one in the time that is left, or with a new correction.
 */
export function fitArena<R>(
  problem: RecomputeProblem,
  targetBytes: number,
  realise: (sequence: Sequence) => Realised<R>,
  options: FitOptions = {},
): Fit<R> | null {
  const began = performance.now();
  const attempts = Math.max(1, options.attempts ?? ATTEMPTS);
  const lessons: Lessons = {
    reserved: new Float64Array(problem.ops.length + 1),
    worth: new Float64Array(problem.bytes.length).fill(1),
    everywhere: 0,
    correction: options.correction,
    learned: false,
  };
  let best: { readonly plan: Answer; readonly realised: Realised<R> } | null = null;
  let [start, bound, tried] = [options.start, 0, 0];
  let [last, least, holes] = [false, Number.POSITIVE_INFINITY, 0];
  while (tried < attempts) {
    const work = optionsOf(options, tried, last ? tried + 1 : attempts, began, lessons);
    const planned = planRecompute(adjusted(problem, lessons), targetBytes, options.strategy, { ...work, start });
    if (tried++ === 0) bound = planned.boundCost;
    const late = options.effort === undefined && performance.now() - began > (options.seconds ?? 10) * 950;
    if (!planned.feasible) {
      if (!lessons.learned || late) break;
      relent(lessons);
      continue;
    }
    const { sequence } = planned;
    const realised = realise(sequence);
    const { cost, peakBytes } = simulate(problem, sequence);
    const fits = realised.arenaBytes <= targetBytes;
    if (fits && (best === null || cost < best.plan.cost)) {
      const proven = planned.proven && !lessons.learned;
      best = { plan: { ...planned, peakBytes, cost, boundCost: Math.min(bound, cost), proven }, realised };
    }
    const until = began + (options.seconds ?? 10) * 1000 * REPAIRED_UNTIL;
    const isFirst = tried === 1 && !fits && options.effort === undefined;
    if (isFirst) best = repaired(problem, targetBytes, planned, realise, until);
    // go on from the latest, which has had the most lessons, unless that attempt ended with a poor plan
    const extra = cost - planned.baseCost;
    least = Math.min(least, extra);
    if (best) start = best.plan.sequence;
    else if (extra <= POOR * least) start = sequence;
    const same = realised.correction === undefined || (fits && options.effort !== undefined && tried > 1);
    lessons.correction = realised.correction ?? lessons.correction;
    if (late || last || (fits && same && (options.effort !== undefined || planned.proven))) break;
    if (fits) last = same;
    else learn(lessons, realised.conflicts, stageBytes(problem, sequence), targetBytes);
    if (!fits) holes = Math.max(holes, realised.arenaBytes - peakBytes);
    // where local remedies do not help, the next plan is tighter as a whole: by the most that was lost in holes so far
    if (!fits && tried > LOCAL) {
      lessons.everywhere = Math.max(lessons.everywhere + realised.arenaBytes - targetBytes, holes);
    }
  }
  return best && { ...best, attempts: tried };
}
