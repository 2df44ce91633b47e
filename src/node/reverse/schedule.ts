/**
 * @file Schedules by name. Each entry has a summary and makes a schedule from the same few numbers; numbers it cannot
 * use are the caller's error, reported with the numbers.
 */
import { grouped, TidemarkError } from "../../base/errors.ts";
import { guess } from "../../base/suggest.ts";
import { binomialSplit } from "../../loops/binomial.ts";
import { type LevelSpec, memoryLevel, type ReversalSchedule, stateLevel } from "./action.ts";
import { byLevels, planLevels } from "./levels.ts";
import { mixed, mixedLevel } from "./mixed.ts";
import { type MixedSizes, mixedTable } from "./mixed-table.ts";
import { online } from "./online.ts";
import { periodic, periodicLevels } from "./periodic.ts";
import { bySplits, slotsOf } from "./segments.ts";
import { variablePlan } from "./variable.ts";

export interface ScheduleOptions {
  readonly steps: number;
  /** The number of states that can be kept; for `mixed`, units of one state or tape each. */
  readonly snapshots: number;
  /** For `periodic`: steps between kept states; by default as few as the snapshots allow. */
  readonly every?: number | undefined;
  /** For `variable`: the cost of each step. */
  readonly costs?: ArrayLike<number> | undefined;
  /** For `multi-level`, fastest first. */
  readonly levels?: readonly LevelSpec[] | undefined;
  /** For `mixed`: units of a state and of a tape, one each by default. */
  readonly sizes?: MixedSizes | undefined;
}

interface Entry {
  readonly summary: string;
  make(options: ScheduleOptions): Omit<ReversalSchedule, "name" | "steps">;
}

function infeasible(summary: string, help: string): never {
  throw new TidemarkError("PlanInfeasible", summary, { help });
}

/** More than one step cannot be reversed from the current state alone. */
function requireSnapshot({ steps, snapshots }: ScheduleOptions): void {
  if (steps > 1 && snapshots < 1) {
    infeasible(`${grouped(steps)} steps cannot be reversed without a snapshot`, "give one snapshot or more");
  }
}

function makePeriodic(steps: number, snapshots: number, every: number): Omit<ReversalSchedule, "name" | "steps"> {
  const levels = periodicLevels(steps, every);
  const needed = Math.max(0, Math.ceil(steps / every) - 1);
  if (needed > snapshots) {
    const help = `give ${grouped(needed)} snapshots, or keep one every ${grouped(Math.ceil(steps / (snapshots + 1)))}`;
    infeasible(`a state every ${grouped(every)} steps is ${grouped(needed)}, ${grouped(snapshots)} can be kept`, help);
  }
  return { levels, actions: () => periodic(steps, every) };
}

function makeMixed({ steps, snapshots, sizes = { stateUnits: 1, tapeUnits: 1 } }: ScheduleOptions) {
  // at most one tape per step but the last is useful
  const units = Math.min(snapshots, Math.max(0, steps - 1) * Math.max(sizes.stateUnits, sizes.tapeUnits));
  const table = mixedTable(steps, units, sizes);
  if (!Number.isFinite(table.evaluations(steps, units))) {
    const minimum = Math.min(sizes.stateUnits, (steps - 1) * sizes.tapeUnits);
    infeasible(`${grouped(steps)} steps cannot be reversed in ${grouped(snapshots)} units`, `give ${grouped(minimum)}`);
  }
  return { levels: [mixedLevel(units, sizes)], actions: () => mixed(steps, units, sizes, table) };
}

function makeVariable(options: ScheduleOptions): Omit<ReversalSchedule, "name" | "steps"> {
  requireSnapshot(options);
  const { steps, snapshots, costs } = options;
  if (costs?.length !== steps) {
    const help = "one cost for each step";
    throw new TidemarkError("InvalidArgument", `${costs?.length ?? 0} costs for ${grouped(steps)} steps`, { help });
  }
  const useful = Math.max(1, Math.min(snapshots, steps - 1));
  const { split } = variablePlan(costs, useful);
  return { levels: [memoryLevel(useful)], actions: () => bySplits(steps, slotsOf(0, useful), split) };
}

function makeLevels(options: ScheduleOptions): Omit<ReversalSchedule, "name" | "steps"> {
  const specs = options.levels ?? [memoryLevel(options.snapshots)];
  const { steps } = options;
  const snapshots = specs.reduce((sum, { units }) => sum + units, 0);
  requireSnapshot({ steps, snapshots });
  const plan = planLevels(steps, specs);
  return { levels: specs.map(stateLevel), actions: () => byLevels(steps, specs, plan) };
}

/** A schedule in memory whose splits depend on the number of steps and snapshots alone. */
function makeSplit(options: ScheduleOptions, split: (l: number, s: number) => number) {
  requireSnapshot(options);
  const { steps } = options;
  const snapshots = Math.min(options.snapshots, Math.max(0, steps - 1));
  return {
    levels: [memoryLevel(snapshots)],
    actions: () => bySplits(steps, slotsOf(0, snapshots), (from, end, s) => split(end - from, s)),
  };
}

const SCHEDULES = {
  "store-all": {
    summary: "keep the tape of every step; nothing runs twice",
    make: ({ steps }) => makePeriodic(steps, 0, Math.max(1, steps)),
  },
  periodic: {
    summary: "keep every k-th state, then all tapes of one piece at a time",
    make: ({ steps, snapshots, every }) =>
      makePeriodic(steps, snapshots, every ?? Math.max(1, Math.ceil(steps / (snapshots + 1)))),
  },
  "square-root": {
    summary: "periodic with pieces of √L steps",
    make: ({ steps, snapshots }) => makePeriodic(steps, snapshots, Math.max(1, Math.ceil(Math.sqrt(steps)))),
  },
  binary: {
    summary: "keep the middle state, then that of each half",
    make: (options) => makeSplit(options, (l) => l >> 1),
  },
  binomial: {
    summary: "the fewest evaluations when only states are kept (Revolve)",
    make: (options) => makeSplit(options, binomialSplit),
  },
  mixed: {
    summary: "the fewest evaluations when a slot holds a state or a tape",
    make: makeMixed,
  },
  online: {
    summary: "for a loop whose length is known only at the end",
    make(options) {
      requireSnapshot(options);
      const { steps } = options;
      // more than one per step are never used, whether the length is known or not
      const snapshots = Math.min(options.snapshots, steps);
      const isLast = (step: number): boolean => step === steps - 1;
      return { levels: [memoryLevel(snapshots)], actions: () => (steps === 0 ? none() : online(snapshots, isLast)) };
    },
  },
  "multi-level": {
    summary: "the least cost with memory and slower levels",
    make: makeLevels,
  },
  variable: {
    summary: "the least cost for steps of unequal cost",
    make: makeVariable,
  },
} as const satisfies Record<string, Entry>;

function* none(): ReturnType<ReversalSchedule["actions"]> {}

export type ScheduleName = keyof typeof SCHEDULES;

export const SCHEDULE_NAMES = Object.keys(SCHEDULES) as readonly ScheduleName[];

/** A one-line description of a schedule. */
export function summaryOf(name: ScheduleName): string {
  return SCHEDULES[name].summary;
}

function requireCount(what: string, n: number): void {
  if (Number.isSafeInteger(n) && n >= 0) return;
  throw new TidemarkError("InvalidArgument", `${n} ${what}`, { help: "give a whole number, 0 or more" });
}

/** The schedule of a name for a loop of `steps` steps; a loop without steps has no actions. */
export function scheduleNamed(name: string, options: ScheduleOptions): ReversalSchedule {
  const scheduleName = SCHEDULE_NAMES.find((each) => each === name);
  if (!scheduleName) {
    const help = `${guess(name, SCHEDULE_NAMES)}schedules are ${SCHEDULE_NAMES.join(", ")}`;
    throw new TidemarkError("InvalidArgument", `there is no schedule ${name}`, { help });
  }
  requireCount("steps", options.steps);
  requireCount("snapshots", options.snapshots);
  if (options.every !== undefined && !(Number.isSafeInteger(options.every) && options.every >= 1)) {
    throw new TidemarkError("InvalidArgument", `a state every ${options.every} steps`, { help: "give 1 or more" });
  }
  return { name: scheduleName, steps: options.steps, ...SCHEDULES[scheduleName].make(options) };
}
