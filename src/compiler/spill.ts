/**
 * @file Plans within a budget, with a file as second memory: each value is kept, recomputed, or moved to the file and back, by what
 * the whole program is predicted to take.
 *
 *   budget of recomputation   everything stored ───────────── … ───────────── the budget itself
 *   what is still above         moved                 moved   …   moved          nothing
 *                                      ╰────────────── the fastest ──────────────╯
 *
 * Plans that recompute for a larger budget than the one that is asked for exist already (budget/family.ts); what they hold beyond
 * the budget is moved, by a simulation of the link with predicted times (plan/schedule-moves.ts). Both ends are among the candidates:
 * only moving, and only recomputing. So a file never makes a plan slower, by prediction, and arithmetic stays what it is: the same
 * kernels on the same numbers.
 *
 * What persists may have its home in the file as well (plan/homes.ts): none of it, or more and more, those values first that need
 * the fewest copies for their bytes (moments of an optimizer: one each way), whichever makes the program fastest.
 */
import { formatBytes } from "../base/bytes.ts";
import { at } from "../base/invariant.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { stepMs } from "../plan/cost/model.ts";
import { type Homeable, homeableValues } from "../plan/homes.ts";
import { moveAt } from "../plan/move.ts";
import { planUnlimited } from "../plan/plan.ts";
import { type MoveSchedule, type MoveTimes, scheduleMoves } from "../plan/schedule-moves.ts";
import { type MemorySpace, memorySpace } from "../target/space.ts";
import type { PlannedProgram } from "./assembler.ts";
import { candidateOf, type PlanTools } from "./candidate.ts";
import { boundTo } from "./offload.ts";

/** A page: files are read and written in multiples of it, past the system's cache. */
export const FILE_ALIGNMENT = 4096;

const FILE: MemorySpace = memorySpace(FILE_ALIGNMENT, { name: "file", hostVisible: false });
const HOST: MemorySpace = memorySpace(FILE_ALIGNMENT, { name: "host" });

/** A plan with values in the file that takes so many times as long as storing everything is the answer without a search. */
const ENOUGH = 1.01;
/** Budgets between the one that is asked for and storing everything for which plans that recompute are made at first. */
const SHARES = [0, 0.25, 0.5, 0.75, 1] as const;
/** How often two more are tried beside the best. */
const ROUNDS = 2;
/** How often a plan is made smaller because its placement leaves gaps. */
const ATTEMPTS = 6;
/** Schedules that are placed, fastest first, until one fits. */
const PLACED = 3;
/** How near the smallest plan is looked for, as a part of its bytes. */
const CLOSE = 0.01;
/** Parts of what persists that are tried with the file as their home. */
const HOMES = 8;

/** A plan of recomputation, with what has to be moved for the budget. */
interface Scheduled {
  readonly candidate: Candidate<PlannedProgram>;
  readonly schedule: MoveSchedule;
  readonly atHome: readonly Homeable[];
}

/** Plans with a file as second memory. */
export interface SpilledPlans {
  /**
   * The fastest plan within a budget, where values may be moved to a file; null where there is none.
   * @param search a plan that recomputes for so many bytes, or null where none is found; null: nothing is recomputed
   */
  within(
    storeAll: Candidate<PlannedProgram>,
    budgetBytes: number,
    search: ((bytes: number) => Candidate<PlannedProgram> | null) | null,
    tools: PlanTools,
  ): Candidate<PlannedProgram> | null;
  /** The smallest plan that moves whatever it can. */
  least(storeAll: Candidate<PlannedProgram>, tools: PlanTools): Candidate<PlannedProgram>;
}

export const spilledPlans: SpilledPlans = {
  within(storeAll, budgetBytes, search, tools) {
    const schedules = new Schedules(budgetBytes, tools);
    const first = spilledWithin([storeAll], schedules);
    if (!search || (first && first.predictedMs <= ENOUGH * storeAll.predictedMs)) return first;
    const { arenaBytes } = storeAll;
    const planAt = (share: number): Shared => {
      const candidate = share === 1 ? storeAll : search(Math.ceil(budgetBytes * (arenaBytes / budgetBytes) ** share));
      return { share, candidate, ms: candidate ? schedules.msOf(candidate) : Number.POSITIVE_INFINITY };
    };
    const made = SHARES.map(planAt);
    for (let round = 0; round < ROUNDS; round++) {
      const best = made.reduce((i, { ms }, k) => (ms < at(made, i).ms ? k : i), 0);
      const neighbours = [made[best - 1], made[best + 1]].filter((one) => one !== undefined);
      const middles = neighbours.map(({ share }) => (share + at(made, best).share) / 2);
      made.push(...middles.map(planAt));
      made.sort((a, b) => a.share - b.share);
    }
    const candidates = made.flatMap(({ candidate }) => (candidate ? [candidate] : []));
    return spilledWithin([...new Set(candidates)], schedules);
  },

  least(storeAll, tools) {
    let [least, most] = [0, storeAll.arenaBytes];
    let best = storeAll;
    while (most - least > CLOSE * most) {
      const middle = Math.floor((least + most) / 2);
      const plan = spilledWithin([storeAll], new Schedules(middle, tools));
      if (plan) [best, most] = [plan, Math.min(middle, plan.arenaBytes)];
      else least = middle;
    }
    return best;
  },
};

/** A plan that recomputes for a budget between the one that is asked for and storing everything. */
interface Shared {
  readonly share: number;
  readonly candidate: Candidate<PlannedProgram> | null;
  /** With what has to be moved then. */
  readonly ms: number;
}

/** What has to be moved of plans for a budget; each is looked at once. */
class Schedules {
  readonly budgetBytes: number;
  readonly tools: PlanTools;
  readonly #of = new Map<Candidate<PlannedProgram>, Scheduled | null>();

  constructor(budgetBytes: number, tools: PlanTools) {
    this.budgetBytes = budgetBytes;
    this.tools = tools;
  }

  /** The fastest way for a plan above the budget; null where moving is not enough. */
  of(candidate: Candidate<PlannedProgram>): Scheduled | null {
    const known = this.#of.get(candidate);
    if (known !== undefined) return known;
    const { plan } = candidate.result;
    const times = timesOf(candidate, this.tools);
    let best: Scheduled | null = null;
    for (const atHome of homesToTry(homeableValues(plan, FILE_ALIGNMENT))) {
      const schedule = scheduleMoves(plan, this.budgetBytes, times, atHome);
      if (schedule && (!best || schedule.ms < best.schedule.ms)) best = { candidate, schedule, atHome };
    }
    this.#of.set(candidate, best);
    return best;
  }

  /** Milliseconds of a plan with what is above the budget moved; infinite where that is not enough. */
  msOf(candidate: Candidate<PlannedProgram>): number {
    if (candidate.arenaBytes <= this.budgetBytes) return candidate.predictedMs;
    return this.of(candidate)?.schedule.ms ?? Number.POSITIVE_INFINITY;
  }
}

/** None of some values, and the first of them with more and more of their bytes. */
function homesToTry(homeable: readonly Homeable[]): readonly (readonly Homeable[])[] {
  const total = homeable.reduce((sum, { bytes }) => sum + bytes, 0);
  const counts = new Set([0]);
  let [count, bytes] = [0, 0];
  for (let part = 1; part <= HOMES; part++) {
    for (; count < homeable.length && bytes < (total * part) / HOMES; count++) bytes += at(homeable, count).bytes;
    counts.add(count);
  }
  return [...counts].map((first) => homeable.slice(0, first));
}

/** The fastest of some plans within a budget, where values may be moved to a file; null where none fits. */
function spilledWithin(
  candidates: readonly Candidate<PlannedProgram>[],
  schedules: Schedules,
): Candidate<PlannedProgram> | null {
  const { budgetBytes, tools } = schedules;
  const fitting = candidates.filter(({ arenaBytes }) => arenaBytes <= budgetBytes);
  let best = fitting.reduce<Candidate<PlannedProgram> | null>(
    (a, b) => (a && a.predictedMs <= b.predictedMs ? a : b),
    null,
  );
  const scheduled = candidates.flatMap((candidate): readonly Scheduled[] => {
    const one = candidate.arenaBytes <= budgetBytes ? null : schedules.of(candidate);
    return one ? [one] : [];
  });
  const byTime = scheduled.sort((a, b) => a.schedule.ms - b.schedule.ms);
  let placed = 0;
  for (const one of byTime) {
    if (placed === PLACED || (best && one.schedule.ms >= best.predictedMs)) break;
    const plan = movedWithin(one, budgetBytes, tools);
    if (!plan) continue;
    placed++;
    if (!best || plan.predictedMs < best.predictedMs) best = plan;
  }
  return best;
}

function timesOf({ result }: Candidate<PlannedProgram>, { costs }: PlanTools): MoveTimes {
  const { plan } = result;
  const { linkRate = costs.rates.byteRate, callSeconds } = costs.rates;
  return {
    stepMs: plan.program.steps.map((step) => stepMs(plan, step, costs)),
    copyMs: (bytes) => 1000 * (bytes / linkRate + callSeconds),
    leastBytes: FILE_ALIGNMENT,
    blocks: costs.copiesBlock,
  };
}

/** The plan with its values moved, in an arena of at most the budget. */
function movedWithin(
  { candidate, schedule: first, atHome }: Scheduled,
  budgetBytes: number,
  tools: PlanTools,
): Candidate<PlannedProgram> | null {
  const { result, strategy } = candidate;
  const { program } = result.plan;
  const times = timesOf(candidate, tools);
  const second = tools.request.memory.spill?.isHost ? HOST : FILE;
  let target = budgetBytes;
  let schedule: MoveSchedule | null = first;
  for (let attempt = 0; attempt < ATTEMPTS && schedule; attempt++) {
    const { moves, homes } = schedule;
    const moved = moveAt(program, moves, { device: program.spaces[0], host: second, homes });
    const plan = planUnlimited(moved, { keepOrder: true });
    if (plan.height <= budgetBytes) {
      const bytes = plan.others[0]?.height ?? 0;
      const name =
        bytes === 0
          ? strategy
          : `${strategy}, ${second.name} ${second === HOST ? "memory " : ""}of ${formatBytes(bytes)}`;
      return candidateOf(boundTo(result, plan, tools), name, tools);
    }
    // gaps between buffers are about as large the next time
    target -= Math.max(plan.height - budgetBytes, program.spaces[0].alignment);
    schedule = target > 0 ? scheduleMoves(result.plan, target, times, atHome) : null;
  }
  return null;
}
