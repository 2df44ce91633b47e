/**
 * @file Running the adjoint of a loop backward, without tensors. A loop makes states x₀ → x₁ → … → x_L, step i taking xᵢ
 * to xᵢ₊₁; its adjoint wants the steps' *tapes* (what the adjoint of a step reads) in the order L-1, …, 0. A schedule is a
 * stream of actions on a small machine:
 *
 * ```
 *   current state        one xᵢ, or none; the loop starts with x₀ here, and taping step L-1 leaves the result x_L
 *   working tape         the tape of one step; always there, no slot
 *   levels of units      memory, disk …: a state takes `stateUnits` of a level, a tape `tapeUnits`, side by side
 * ```
 *
 * Numbers of units and places in them are fixed by the schedule, so that whoever follows it allocates once. Streams are
 * made lazily: a million steps need no list. `check.ts` says what each action requires.
 */

export type Action =
  /** Runs steps `from` … `to - 1`, keeping nothing but the state. */
  | { readonly kind: "advance"; readonly from: number; readonly to: number }
  /** Copies the current state x_step into a place that is empty. */
  | { readonly kind: "snapshot"; readonly step: number; readonly level: number; readonly slot: number }
  /** Makes a copy the current state. */
  | { readonly kind: "restore"; readonly step: number; readonly level: number; readonly slot: number }
  /** Runs one step on the current state and keeps its tape at a place, or as the working tape (level `WORK`). */
  | { readonly kind: "tape"; readonly step: number; readonly level: number; readonly slot: number }
  /** Runs the adjoint of a step on its tape. */
  | { readonly kind: "reverse"; readonly step: number; readonly level: number; readonly slot: number }
  /** What is at a place is not needed any more. */
  | { readonly kind: "free"; readonly level: number; readonly slot: number };

/** The level of the working tape; its slot is 0. */
export const WORK = -1;

/** Where states and tapes are kept. A slot is the first of the units that are taken. */
export interface Level {
  readonly name: string;
  /** Infinity where there is no limit. */
  readonly units: number;
  /** Units that a state takes; null where states are not kept. */
  readonly stateUnits: number | null;
  readonly tapeUnits: number | null;
  /** Of one snapshot or restore, in evaluations of a step. */
  readonly writeCost: number;
  readonly readCost: number;
}

export type Actions = Generator<Action, void, undefined>;

export interface Schedule {
  readonly name: string;
  readonly steps: number;
  readonly levels: readonly Level[];
  /** A stream from the beginning. */
  actions(): Actions;
}

/** A place for snapshots. */
export interface Place {
  readonly level: number;
  readonly slot: number;
}

/** Levels as they are described: `mem:4`, `disk:20:w=2:r=1`. */
export type LevelSpec = Pick<Level, "name" | "units" | "writeCost" | "readCost">;

/** A level of snapshots. */
export function stateLevel(spec: LevelSpec): Level {
  return { ...spec, stateUnits: 1, tapeUnits: null };
}

/** Snapshots in memory, at no cost. */
export function memoryLevel(snapshots: number): Level {
  return stateLevel({ name: "memory", units: snapshots, writeCost: 0, readCost: 0 });
}
