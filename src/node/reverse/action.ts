/**
 * @file The vocabulary of loop reversal, without tensors. A loop computes states x₀ → x₁ → … → x_L, step i taking xᵢ to
 * xᵢ₊₁; its adjoint needs the steps' *tapes* (the values that the adjoint of a step reads) in the order L-1, …, 0. A
 * schedule is a stream of actions on a small machine:
 *
 * ```
 *   current state        one xᵢ, or none; the loop starts with x₀ here, and taping step L-1 leaves the result x_L
 *   working tape         the tape of one step; always available, needs no slot
 *   levels of units      memory, disk …: a state takes `stateUnits` consecutive units of a level, a tape `tapeUnits`
 * ```
 *
 * The schedule fixes the number of units and all slots in advance, so that an executor allocates once. Streams are
 * lazy: a million steps need no list. `check.ts` defines the requirements of each action.
 */

export type Action =
  /** Runs steps `from` … `to - 1`, keeping nothing but the state. */
  | { readonly kind: "advance"; readonly from: number; readonly to: number }
  /** Copies the current state x_step into an empty slot. */
  | { readonly kind: "snapshot"; readonly step: number; readonly level: number; readonly slot: number }
  /** Makes a snapshot the current state. */
  | { readonly kind: "restore"; readonly step: number; readonly level: number; readonly slot: number }
  /** Runs one step on the current state and keeps its tape in a slot, or as the working tape (level `WORK`). */
  | { readonly kind: "tape"; readonly step: number; readonly level: number; readonly slot: number }
  /** Runs the adjoint of a step on its tape. */
  | { readonly kind: "reverse"; readonly step: number; readonly level: number; readonly slot: number }
  /** The content of a slot is no longer needed. */
  | { readonly kind: "free"; readonly level: number; readonly slot: number };

/** The level of the working tape; its slot is 0. */
export const WORK = -1;

/** Storage for states and tapes. A slot is the index of the first unit that a state or tape occupies. */
export interface Level {
  readonly name: string;
  /** Infinity if there is no limit. */
  readonly units: number;
  /** Units per state; null if the level keeps no states. */
  readonly stateUnits: number | null;
  readonly tapeUnits: number | null;
  /** Of one snapshot or restore, in evaluations of a step. */
  readonly writeCost: number;
  readonly readCost: number;
}

export type Actions = Generator<Action, void, undefined>;

export interface ReversalSchedule {
  readonly name: string;
  readonly steps: number;
  readonly levels: readonly Level[];
  /** A stream from the beginning. */
  actions(): Actions;
}

/** A slot for a snapshot. */
export interface SnapshotSlot {
  readonly level: number;
  readonly slot: number;
}

/** A level as written by users: `mem:4`, `disk:20:w=2:r=1`. */
export type LevelSpec = Pick<Level, "name" | "units" | "writeCost" | "readCost">;

/** A level of snapshots. */
export function stateLevel(spec: LevelSpec): Level {
  return { ...spec, stateUnits: 1, tapeUnits: null };
}

/** Snapshots in memory, free of cost. */
export function memoryLevel(snapshots: number): Level {
  return stateLevel({ name: "memory", units: snapshots, writeCost: 0, readCost: 0 });
}
