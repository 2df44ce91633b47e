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
 */
import { formatBytes } from "../base/bytes.ts";
import { at } from "../base/invariant.ts";
import type { Candidate } from "../plan/budget/budget-levels.ts";
import { stepMs } from "../plan/cost/model.ts";
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

/** A plan with values in the file that takes so many times as long as storing everything is the answer without a search. */
const ENOUGH = 1.005;
/** Budgets between the one that is asked for and storing everything for which plans that recompute are made at first. */
const SHARES = [0, 0.25, 0.5, 0.75, 1] as const;
/** How often two more are tried beside the best. */
const ROUNDS = 2;
/** How often a plan is made smaller because its placement leaves gaps. */
const ATTEMPTS = 6;
/** Schedules that are placed, fastest first, until one fits. */
const PLACED = 3;

/** A plan of recomputation, with what has to be moved for the budget. */
interface Scheduled {
  readonly candidate: Candidate<PlannedProgram>;
  readonly schedule: MoveSchedule;
}

export type SpilledPlan = (
  storeAll: Candidate<PlannedProgram>,
  budgetBytes: number,
  search: ((bytes: number) => Candidate<PlannedProgram>) | null,
  tools: PlanTools,
) => Candidate<PlannedProgram> | null;

/**
 * The fastest plan within a budget, where values may be moved to a file; null where there is none.
 * @param search a plan that recomputes for so many bytes, or the smallest there is; null: nothing is recomputed
 */
export const spilledPlan: SpilledPlan = (storeAll, budgetBytes, search, tools) => {
  const first = spilledWithin([storeAll], budgetBytes, tools);
  if (!search || (first && first.predictedMs <= ENOUGH * storeAll.predictedMs)) return first;
  const { arenaBytes } = storeAll;
  const made = SHARES.map((share): Shared => {
    const candidate = share === 1 ? storeAll : search(Math.ceil(budgetBytes * (arenaBytes / budgetBytes) ** share));
    return { share, candidate, ms: msWithin(candidate, budgetBytes, tools) };
  });
  for (let round = 0; round < ROUNDS; round++) {
    const best = made.reduce((i, { ms }, k) => (ms < at(made, i).ms ? k : i), 0);
    const neighbours = [made[best - 1], made[best + 1]].filter((one) => one !== undefined);
    const middles = neighbours.map(({ share }) => (share + at(made, best).share) / 2);
    for (const share of middles) {
      const candidate = search(Math.ceil(budgetBytes * (arenaBytes / budgetBytes) ** share));
      made.push({ share, candidate, ms: msWithin(candidate, budgetBytes, tools) });
    }
    made.sort((a, b) => a.share - b.share);
  }
  return spilledWithin([...new Set(made.map(({ candidate }) => candidate))], budgetBytes, tools);
};

/** A plan that recomputes for a budget between the one that is asked for and storing everything. */
interface Shared {
  readonly share: number;
  readonly candidate: Candidate<PlannedProgram>;
  /** With what has to be moved then. */
  readonly ms: number;
}

/** Milliseconds of a plan with what is above the budget moved; infinite where that is not enough. */
function msWithin(candidate: Candidate<PlannedProgram>, budgetBytes: number, tools: PlanTools): number {
  if (candidate.arenaBytes <= budgetBytes) return candidate.predictedMs;
  const schedule = scheduleMoves(candidate.result.plan, budgetBytes, timesOf(candidate, tools));
  return schedule?.ms ?? Number.POSITIVE_INFINITY;
}

/** The fastest of some plans within a budget, where values may be moved to a file; null where none fits. */
function spilledWithin(
  candidates: readonly Candidate<PlannedProgram>[],
  budgetBytes: number,
  tools: PlanTools,
): Candidate<PlannedProgram> | null {
  const fitting = candidates.filter(({ arenaBytes }) => arenaBytes <= budgetBytes);
  let best = fitting.reduce<Candidate<PlannedProgram> | null>(
    (a, b) => (a && a.predictedMs <= b.predictedMs ? a : b),
    null,
  );
  const scheduled = candidates.flatMap((candidate): readonly Scheduled[] => {
    if (candidate.arenaBytes <= budgetBytes) return [];
    const schedule = scheduleMoves(candidate.result.plan, budgetBytes, timesOf(candidate, tools));
    return schedule ? [{ candidate, schedule }] : [];
  });
  const byTime = scheduled.sort((a, b) => a.schedule.ms - b.schedule.ms);
  let placed = 0;
  for (const { candidate, schedule } of byTime) {
    if (placed === PLACED || (best && schedule.ms >= best.predictedMs)) break;
    const plan = movedWithin(candidate, schedule, budgetBytes, tools);
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
  };
}

/** The plan with its values moved, in an arena of at most the budget. */
function movedWithin(
  candidate: Candidate<PlannedProgram>,
  first: MoveSchedule,
  budgetBytes: number,
  tools: PlanTools,
): Candidate<PlannedProgram> | null {
  const { result, strategy } = candidate;
  const { program } = result.plan;
  const times = timesOf(candidate, tools);
  let target = budgetBytes;
  let schedule: MoveSchedule | null = first;
  for (let attempt = 0; attempt < ATTEMPTS && schedule; attempt++) {
    const moved = moveAt(program, schedule.moves, { device: program.spaces[0], host: FILE });
    const plan = planUnlimited(moved, { keepOrder: true });
    if (plan.height <= budgetBytes) {
      const bytes = schedule.moves.length === 0 ? "" : ` of ${formatBytes(plan.others[0]?.height ?? 0)}`;
      return candidateOf(boundTo(result, plan, tools), `${strategy}, file${bytes}`, tools);
    }
    // gaps between buffers are about as large the next time
    target -= Math.max(plan.height - budgetBytes, program.spaces[0].alignment);
    schedule = target > 0 ? scheduleMoves(result.plan, target, times) : null;
  }
  return null;
}
