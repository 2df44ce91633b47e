/** @file A schedule of a loop's reversal as moves on a machine, followed one by one for the drawing. */
import type { Action, LevelSpec, ReversalSchedule } from "../../../src/node/reverse/action.ts";
import { checkActions } from "../../../src/node/reverse/check.ts";
import { scheduleNamed } from "../../../src/node/reverse/schedule.ts";

/** A state in a slot, for columns [from, to). */
export interface KeptState {
  readonly step: number;
  readonly level: number;
  readonly slot: number;
  readonly from: number;
  readonly to: number;
}

/** Forward steps of one column, or the reversal of one. */
export interface Move {
  readonly column: number;
  readonly kind: "forward" | "reverse";
  readonly from: number;
  readonly to: number;
}

export interface Followed {
  readonly schedule: ReversalSchedule;
  readonly columns: number;
  readonly kept: readonly KeptState[];
  readonly moves: readonly Move[];
  /** Per column: what happens, in words. */
  readonly words: readonly string[];
  readonly forwardSteps: number;
  readonly recomputedSteps: number;
  readonly peakSnapshots: number;
  readonly mostRuns: number;
  /** Advances weighted with the costs of writing and reading. */
  readonly cost: number;
}

export const KINDS = ["binomial", "square-root", "binary", "online", "multi-level", "store-all"] as const;
export type Kind = (typeof KINDS)[number];

/** Room on the second level of a schedule with two, and what a write and a read cost in steps. */
export const DISK: LevelSpec = { name: "disk", units: 64, writeCost: 2, readCost: 2 };

export function scheduleOf(kind: Kind, steps: number, snapshots: number): ReversalSchedule {
  const memory: LevelSpec = { name: "memory", units: snapshots, writeCost: 0, readCost: 0 };
  const levels = kind === "multi-level" ? { levels: [memory, DISK] } : {};
  const slots = kind === "square-root" || kind === "store-all" ? steps : snapshots;
  return scheduleNamed(kind, { steps, snapshots: slots, ...levels });
}

const place = (level: number, slot: number): string => `${level}:${slot}`;

function wordsOf(action: Action): string {
  switch (action.kind) {
    case "advance":
      return `runs forward from state ${action.from} to ${action.to}`;
    case "snapshot":
      return `keeps state ${action.step}${action.level > 0 ? " on disk" : ""}`;
    case "restore":
      return `goes back to state ${action.step}${action.level > 0 ? ", from disk" : ""}`;
    case "tape":
      return `runs step ${action.step} and keeps its inside`;
    case "reverse":
      return `reverses step ${action.step}`;
    case "free":
      return "gives up a slot";
  }
}

/** All moves of a schedule; a column is one move that takes time. */
export function followed(schedule: ReversalSchedule): Followed {
  const open = new Map<string, Omit<KeptState, "to">>();
  const [kept, moves, words]: [KeptState[], Move[], string[]] = [[], [], []];
  let column = 0;
  const close = (key: string): void => {
    const state = open.get(key);
    if (state) kept.push({ ...state, to: column });
    open.delete(key);
  };
  const move = (kind: Move["kind"], from: number, to: number, action: Action): void => {
    moves.push({ column, kind, from, to });
    words.push(wordsOf(action));
    column++;
  };
  for (const action of schedule.actions()) {
    if (action.kind === "advance") move("forward", action.from, action.to, action);
    else if (action.kind === "reverse") move("reverse", action.step, action.step + 1, action);
    else if (action.kind === "snapshot" || (action.kind === "tape" && action.level >= 0)) {
      const { step, level, slot } = action;
      open.set(place(level, slot), { step, level, slot, from: column });
    } else if (action.kind === "free") close(place(action.level, action.slot));
  }
  for (const key of [...open.keys()]) close(key);
  const evaluations = new Uint32Array(schedule.steps);
  const counts = checkActions(schedule.steps, schedule.levels, schedule.actions(), { evaluations });
  if (counts.problem !== null) throw new Error(counts.problem);
  const { forwardSteps, recomputedSteps, peakSnapshots, cost } = counts;
  const mostRuns = evaluations.reduce((most, n) => Math.max(most, n), 0);
  return {
    schedule,
    columns: column,
    kept,
    moves,
    words,
    forwardSteps,
    recomputedSteps,
    peakSnapshots,
    mostRuns,
    cost,
  };
}
